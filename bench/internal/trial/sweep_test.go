package trial

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
	"sagabench/store/open"
	"sagabench/store/pebblestore"
)

const (
	asServer  = "TEST_AS_SWEPT_SERVER"
	announced = "at: "
)

// It is the child of the sweeps below: a server that acknowledges sagas, and stores
// none. It ends after as many as it is told, if it is.
func TestSwept_Server(t *testing.T) {
	most, err := strconv.ParseInt(os.Getenv(asServer), 10, 64)
	if err != nil {
		t.Skip("it is a child of other tests")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	var sagas atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		acknowledge(w, r)
		if sagas.Add(1) == most {
			os.Exit(1)
		}
	}))
	fmt.Println(announced + url)
	<-ctx.Done()
}

func swept(t *testing.T, sweep func(context.Context, Measure) error) (result.Summary, Config, error) {
	t.Helper()
	return sweptUntil(t.Context(), t, 0, sweep)
}

// sweptUntil is a sweep that ctx ends, or its server after so many sagas.
func sweptUntil(ctx context.Context, t *testing.T, sagas int, sweep func(context.Context, Measure) error) (result.Summary, Config, error) {
	t.Helper()
	cfg := pitfallConfig(t.TempDir())
	target, err := open.Parse(open.Pebble, open.Config{Pebble: pebblestore.DefaultConfig()})
	require.NoError(t, err)
	s, err := Sweep(ctx, cfg, Own(target, Child{
		Path: os.Args[0], Args: []string{"-test.run=^TestSwept_Server$"}, Announce: announced,
		Env: func(open.Target) []string { return append(os.Environ(), fmt.Sprintf("%s=%d", asServer, sagas)) },
	}), sweep)
	return s, cfg, err
}

// shape is a short closed loop.
func shape(inFlight int) load.Config {
	cfg := load.Default()
	cfg.InFlight, cfg.Duration, cfg.Warmup = inFlight, 100*time.Millisecond, 50*time.Millisecond
	return cfg
}

func TestSweep_AddsUpAndAuditsAllMeasurements(t *testing.T) {
	t.Parallel()
	var requests int64
	s, cfg, err := swept(t, func(ctx context.Context, measure Measure) error {
		for _, n := range []int{1, 4} {
			m, err := measure(ctx, shape(n))
			if err != nil {
				return err
			}
			require.Equal(t, n, m.Load.InFlight)
			require.True(t, m.Validity.Valid, m.Validity.Warnings)
			require.Positive(t, m.StartS)
			requests += m.Load.Requests
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, requests, s.Load.Requests)
	require.Greater(t, s.Check.Acknowledged, requests, "with the warm-ups")
	require.Equal(t, s.Check.Acknowledged, *s.Check.Lost, "the journals of all were looked at")
	require.False(t, s.Validity.Valid)
	require.NotContains(t, strings.Join(s.Validity.Warnings, "\n"), "incomplete")

	for _, step := range []string{"01", "02"} {
		files, err := os.ReadDir(filepath.Join(cfg.Dir, stepsDir, step))
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.Equal(t, result.FileHistogramLog, files[0].Name())
	}
	require.NoDirExists(t, storeDir(cfg.Dir))
}

func TestSweep_KeepsWhatWasMeasuredBeforeAnError(t *testing.T) {
	t.Parallel()
	s, _, err := swept(t, func(ctx context.Context, measure Measure) error {
		_, err := measure(ctx, shape(2))
		return errors.Join(err, errors.New("enough of it"))
	})
	require.NoError(t, err)
	require.Positive(t, s.Load.Requests)
	requireInvalid(t, s, "incomplete: enough of it")
}

func TestSweep_LeavesNothingWhenNothingWasMeasured(t *testing.T) {
	t.Parallel()
	_, cfg, err := swept(t, func(ctx context.Context, measure Measure) error {
		one := shape(2)
		one.Duration = -1
		_, err := measure(ctx, one)
		return err
	})
	require.ErrorContains(t, err, "duration -1ns: must be more than 0")
	require.NoDirExists(t, cfg.Dir)
}

// An interrupted sweep has what was measured, and goes on with nothing.
func TestSweep_Interrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s, _, err := sweptUntil(ctx, t, 0, func(ctx context.Context, measure Measure) error {
		if _, err := measure(ctx, shape(2)); err != nil {
			return err
		}
		one := shape(2)
		one.Duration = time.Hour
		one.Progress = func(load.Progress) { interrupt() }
		m, err := measure(ctx, one)
		require.ErrorIs(t, err, context.Canceled)
		require.Positive(t, m.Load.Requests)
		require.False(t, m.Validity.Valid)
		m, err = measure(ctx, shape(2))
		require.ErrorIs(t, err, context.Canceled)
		return err
	})
	require.NoError(t, err)
	requireInvalid(t, s, "incomplete: interrupted")
}

func TestSweep_TheServerEnds(t *testing.T) {
	t.Parallel()
	s, _, err := sweptUntil(t.Context(), t, 1000, func(ctx context.Context, measure Measure) error {
		one := shape(2)
		one.Duration, one.Warmup = time.Hour, 0
		m, err := measure(ctx, one)
		require.GreaterOrEqual(t, m.Load.Requests, int64(900))
		return err
	})
	require.NoError(t, err)
	requireInvalid(t, s, "incomplete: the bench server ended in the middle")
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

func TestSweep_OfServersThatRun(t *testing.T) {
	t.Parallel()
	var driven [2]atomic.Int64
	var urls []string
	for i := range driven {
		urls = append(urls, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			driven[i].Add(1)
			acknowledge(w, r)
		})))
	}
	s, err := Sweep(t.Context(), pitfallConfig(t.TempDir()), Running(urls, nil), func(ctx context.Context, measure Measure) error {
		for range 2 {
			m, err := measure(ctx, shape(2))
			if err != nil {
				return err
			}
			require.Nil(t, m.CostPerSaga.AppCPUUS, "they have no metrics")
			require.Nil(t, m.CostPerSaga.StoreCPUUS)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, s.Run.AppHosts)
	require.Equal(t, "load on this machine, 2 servers that ran before", s.Run.Topology)
	require.Nil(t, s.Check.Lost, "nobody knows their store")
	require.Positive(t, driven[0].Load())
	require.Positive(t, driven[1].Load())
}

// With one server less the rest of a sweep would be about something else.
func TestSweep_EndsWithAServerThatRan(t *testing.T) {
	t.Parallel()
	var end func()
	var sagas atomic.Int64
	going, end := goneServer(t, func(w http.ResponseWriter, r *http.Request) {
		acknowledge(w, r)
		if sagas.Add(1) == 500 {
			end()
		}
	})
	urls := []string{serve(t, http.HandlerFunc(acknowledge)), going}
	s, err := Sweep(t.Context(), pitfallConfig(t.TempDir()), Running(urls, nil), func(ctx context.Context, measure Measure) error {
		for {
			m, err := measure(ctx, shape(2))
			if err != nil {
				require.False(t, m.Validity.Valid)
				return err
			}
		}
	})
	require.NoError(t, err)
	requireInvalid(t, s, "incomplete: not all servers answer any more: target: "+going+": ")
}

// A server that refuses some requests is there, and what it refuses is measured.
func TestSweep_GoesOnWithErrors(t *testing.T) {
	t.Parallel()
	busy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	urls := []string{serve(t, http.HandlerFunc(acknowledge)), busy}
	s, err := Sweep(t.Context(), pitfallConfig(t.TempDir()), Running(urls, nil), func(ctx context.Context, measure Measure) error {
		m, err := measure(ctx, shape(2))
		require.Positive(t, m.Load.Errors)
		return err
	})
	require.NoError(t, err)
	require.NotContains(t, strings.Join(s.Validity.Warnings, "\n"), "incomplete")
}

func TestSweep_RefusesServersThatAreNone(t *testing.T) {
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
		_, err := Sweep(t.Context(), cfg, Running([]string{serve(t, http.HandlerFunc(acknowledge)), url}, nil), func(context.Context, Measure) error {
			t.Error("driven all the same")
			return nil
		})
		require.ErrorContains(t, err, says)
		require.NoDirExists(t, cfg.Dir)
	}
}
