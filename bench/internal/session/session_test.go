package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/store/open"
)

const (
	asServer  = "TEST_AS_MEASURED_SERVER"
	announced = "at: "
	logged    = 5 // sagas after which the server logs a line
)

// TestMeasured_Server is the server that the sessions below start: it acknowledges sagas
// and stores none. It ends after a number of sagas, if it is told one.
func TestMeasured_Server(t *testing.T) {
	most, err := strconv.ParseInt(os.Getenv(asServer), 10, 64)
	if err != nil {
		t.Skip("it is a child of other tests")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	var sagas atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		acknowledge(w, r)
		n := sagas.Add(1)
		if n == logged {
			fmt.Fprintln(os.Stderr, "so many sagas") // while it is measured
		}
		if n == most {
			os.Exit(1)
		}
	}))
	fmt.Println(announced + url)
	<-ctx.Done()
}

// start opens a session with a server of its own, which ends after so many sagas; 0:
// it does not.
func start(t *testing.T, sagas int) *Session {
	t.Helper()
	target, err := open.Parse(open.Pebble, open.DefaultConfig())
	require.NoError(t, err)
	return openSession(t, &Started{Store: target, Program: Program{
		Path: os.Args[0], Args: []string{"-test.run=^TestMeasured_Server$"}, Announce: announced,
		Env: func(open.Target) []string { return append(os.Environ(), fmt.Sprintf("%s=%d", asServer, sagas)) },
	}})
}

func openSession(t *testing.T, servers Servers) *Session {
	t.Helper()
	s, err := Open(t.Context(), pitfallConfig(t.TempDir()), servers)
	require.NoError(t, err)
	return s
}

// closed ends a session that measured something.
func closed(ctx context.Context, t *testing.T, s *Session, ended error) result.Summary {
	t.Helper()
	summary, err := s.Close(ctx, ended)
	require.NoError(t, err)
	return summary
}

// shape is a short closed loop.
func shape(inFlight int) load.Config {
	cfg := load.Default()
	cfg.InFlight, cfg.Duration, cfg.Warmup = inFlight, 500*time.Millisecond, 50*time.Millisecond
	return cfg
}

func TestSession_AddsUpAndAuditsAllMeasurements(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	var requests int64
	for _, n := range []int{1, 4} {
		m, err := s.Measure(t.Context(), shape(n))
		require.NoError(t, err)
		require.Equal(t, n, m.Load.InFlight)
		require.True(t, m.Validity.Valid, m.Validity.Because)
		require.Positive(t, m.StartS)
		requests += m.Load.Requests
	}
	summary := closed(t.Context(), t, s, nil)
	require.Equal(t, requests, summary.Load.Requests)
	require.GreaterOrEqual(t, summary.Check.Acknowledged, requests, "with the warm-ups")
	require.Equal(t, summary.Check.Acknowledged, *summary.Check.Lost, "the journals of all were looked at")
	require.False(t, summary.Validity.Valid)
	require.NotContains(t, strings.Join(summary.Validity.Because, "\n"), "incomplete")
	require.Empty(t, summary.Run.Targets, "it was started for this")
	require.InDelta(t, s.site.store.Config.Retention.Seconds(), *summary.Run.Store.RetentionS, 0)

	for _, step := range []string{"01", "02"} {
		files, err := os.ReadDir(filepath.Join(s.cfg.Dir, stepsDir, step))
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.Equal(t, result.FileHistogramLog, files[0].Name())
	}
	log, err := os.ReadFile(filepath.Join(s.cfg.Dir, "server.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "so many sagas")
	require.NoDirExists(t, storeDir(s.cfg.Dir))
}

func TestClose_KeepsWhatWasMeasuredBeforeAnError(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	_, err := s.Measure(t.Context(), shape(2))
	require.NoError(t, err)
	summary := closed(t.Context(), t, s, errors.New("enough of it"))
	require.Positive(t, summary.Load.Requests)
	requireInvalid(t, summary, "it is incomplete: enough of it")
}

func TestClose_LeavesNothingWhenNothingWasMeasured(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	one := shape(2)
	one.Duration = -1
	_, err := s.Measure(t.Context(), one)
	_, err = s.Close(t.Context(), err)
	require.ErrorContains(t, err, "duration -1ns: must be more than 0")
	require.NoDirExists(t, s.cfg.Dir)
}

// An interrupted session keeps what was measured, and measures nothing more.
func TestMeasure_Interrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := start(t, 0)
	_, err := s.Measure(ctx, shape(2))
	require.NoError(t, err)
	one := shape(2)
	one.Duration = time.Hour
	one.Progress = func(load.Progress) { interrupt() }
	m, err := s.Measure(ctx, one)
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, m.Load.Requests)
	require.False(t, m.Validity.Valid)
	_, err = s.Measure(ctx, shape(2))
	require.ErrorIs(t, err, context.Canceled)
	requireInvalid(t, closed(ctx, t, s, err), "it is incomplete: interrupted")
}

func TestMeasure_TheServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, 1000)
	one := shape(2)
	one.Duration, one.Warmup = time.Hour, 0
	m, err := s.Measure(t.Context(), one)
	require.GreaterOrEqual(t, m.Load.Requests, int64(900))
	require.ErrorContains(t, err, "the bench server ended in the middle")
	requireInvalid(t, closed(t.Context(), t, s, err), "it is incomplete: the bench server ended in the middle")
}

func TestMeasure_SaysWhatElseFailedWhenTheServerEnds(t *testing.T) {
	t.Parallel()
	s := start(t, 100)
	one := shape(2)
	one.Duration, one.Warmup = time.Hour, 0
	dir := filepath.Join(s.cfg.Dir, stepsDir, "01")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir, result.FileResults)))
	_, err := s.Measure(t.Context(), one)
	require.ErrorContains(t, err, result.FileResults)
	require.ErrorContains(t, err, "the bench server ended in the middle")
	requireInvalid(t, closed(t.Context(), t, s, err), "it is incomplete: ")
}

func TestClose_SaysThatTheServerHadEnded(t *testing.T) {
	t.Parallel()
	s := start(t, 0)
	_, err := s.Measure(t.Context(), shape(2))
	require.NoError(t, err)
	process := s.servers.(*Started).process
	process.Kill()
	<-process.Done()
	requireInvalid(t, closed(t.Context(), t, s, nil), "it is incomplete: the bench server ended in the middle")
}

// goneServer is one that a test can end.
func goneServer(t *testing.T, saga http.HandlerFunc) (url string, end func()) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", saga)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, func() {
		s.Listener.Close()
		s.CloseClientConnections()
	}
}

func TestSession_OfServersThatRun(t *testing.T) {
	t.Parallel()
	var driven [2]atomic.Int64
	var urls []string
	for i := range driven {
		urls = append(urls, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			driven[i].Add(1)
			acknowledge(w, r)
		})))
	}
	s := openSession(t, &External{URLs: urls})
	require.False(t, s.site.appHere)
	for range 2 {
		m, err := s.Measure(t.Context(), shape(2))
		require.NoError(t, err)
		require.Nil(t, m.CostPerSaga.AppCPUUS, "they have no metrics")
		require.Nil(t, m.CostPerSaga.StoreCPUUS)
	}
	summary := closed(t.Context(), t, s, nil)
	require.Equal(t, 2, summary.Run.AppHosts)
	require.Equal(t, urls, summary.Run.Targets)
	require.Nil(t, summary.Run.Store.RetentionS, "their own configuration says")
	require.Equal(t, "load on this machine, 2 servers that ran before", summary.Run.Topology)
	require.Nil(t, summary.Check.Lost, "nobody knows their store")
	require.Positive(t, driven[0].Load())
	require.Positive(t, driven[1].Load())
}

// What each server may use is the whole machine, and all of them together no more.
func TestMeasure_ServersOfThisMachineShareItsCores(t *testing.T) {
	t.Parallel()
	var urls []string
	for range 2 {
		here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				fmt.Fprint(w, "# TYPE go_sched_gomaxprocs_threads gauge\ngo_sched_gomaxprocs_threads 1000\n")
				return
			}
			w.Header().Set(server.HeaderMachine, r.Header.Get(server.HeaderMachine))
			acknowledge(w, r)
		}))
		t.Cleanup(here.Close)
		urls = append(urls, here.URL)
	}
	s := openSession(t, &External{URLs: urls})
	m, err := s.Measure(t.Context(), shape(2))
	require.NoError(t, err)
	require.LessOrEqual(t, *m.Resources.AppCoresUsable, 1000.0)
	closed(t.Context(), t, s, nil)
}

// With one server less, later measurements would be of another system.
func TestMeasure_EndsWithAServerThatRan(t *testing.T) {
	t.Parallel()
	going, end := goneServer(t, acknowledge)
	s := openSession(t, &External{URLs: []string{serve(t, http.HandlerFunc(acknowledge)), going}})
	_, err := s.Measure(t.Context(), shape(2))
	require.NoError(t, err)
	end()
	m, err := s.Measure(t.Context(), shape(2))
	require.Error(t, err)
	require.False(t, m.Validity.Valid)
	requireInvalid(t, closed(t.Context(), t, s, err), "it is incomplete: not all servers answer any more: target: "+going+": ")
}

// A server that refuses some requests is there, and what it refuses is measured.
func TestMeasure_GoesOnWithErrors(t *testing.T) {
	t.Parallel()
	busy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	s := openSession(t, &External{URLs: []string{serve(t, http.HandlerFunc(acknowledge)), busy}})
	m, err := s.Measure(t.Context(), shape(2))
	require.NoError(t, err)
	require.Positive(t, m.Load.Errors)
	require.NotContains(t, strings.Join(closed(t.Context(), t, s, nil).Validity.Because, "\n"), "incomplete")
}

func TestOpen_TouchesNoDirectoryIfTheStoreCannotBeOpened(t *testing.T) {
	t.Parallel()
	target, err := open.Parse("redis://127.0.0.1:1", open.DefaultConfig())
	require.NoError(t, err)
	parent := t.TempDir()
	for _, dir := range []string{parent, filepath.Join(parent, "not", "there")} {
		cfg := pitfallConfig(t.TempDir())
		cfg.Dir = dir
		_, err := Open(t.Context(), cfg, &Started{Store: target})
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	require.DirExists(t, parent)
	require.NoDirExists(t, filepath.Join(parent, "not"))
}

func TestOpen_RefusesServersThatAreNone(t *testing.T) {
	t.Parallel()
	page, _ := goneServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") })
	gone, end := goneServer(t, acknowledge)
	end()
	for says, url := range map[string]string{
		page + " is no bench server, or has another token (200 OK)": page,
		gone + ": dial tcp":                     gone,
		`target "nowhere": must be http://HOST`: "nowhere",
	} {
		cfg := pitfallConfig(t.TempDir())
		_, err := Open(t.Context(), cfg, &External{URLs: []string{serve(t, http.HandlerFunc(acknowledge)), url}})
		require.ErrorContains(t, err, says)
		require.NoDirExists(t, cfg.Dir)
	}
	one := serve(t, http.HandlerFunc(acknowledge))
	_, err := Open(t.Context(), pitfallConfig(t.TempDir()), &External{URLs: []string{one, one + "/"}})
	require.ErrorContains(t, err, one+" is named twice")
}
