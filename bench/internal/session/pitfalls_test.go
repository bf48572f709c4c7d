package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/server"
	"sagabench/bench/internal/simserver"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/secret"
	"sagabench/store"
	"sagabench/store/open"
)

// These tests make what spoils a measurement happen, and want the result to say so.

func pitfallConfig(dir string) Config {
	cfg := Config{ID: "a-run", Command: "a test", Dir: filepath.Join(dir, "result"), Scenario: server.DefaultConfig().Scenario, Load: load.Default()}
	cfg.Load.InFlight, cfg.Load.Duration, cfg.Load.Warmup = 8, 500*time.Millisecond, 0
	return cfg
}

// serve has nothing but the endpoints of a bench server that make sagas and are their
// branches.
func serve(t testing.TB, saga http.Handler) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/bench/saga", saga)
	mux.HandleFunc(server.BranchesOf("", secret.Text{}).Action, acknowledge)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// acknowledge answers each request at once, with a gid of its own.
func acknowledge(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, `{"dtm_result":"SUCCESS","gid":"%s"}`, rand.Text())
}

func judged(ctx context.Context, t testing.TB, cfg Config, url string, target *open.Target) result.Summary {
	t.Helper()
	s, err := Run(ctx, cfg, &External{URLs: []string{url}, Store: target})
	require.NoError(t, err)
	return s
}

// requireWarning wants a warning that begins so. Whether such a result is valid is
// not said: a busy machine may make the load generator late besides.
func requireWarning(t testing.TB, s result.Summary, warning string) {
	t.Helper()
	require.Contains(t, "\n"+strings.Join(s.Validity.Warnings, "\n"), "\n"+warning)
}

func requireInvalid(t testing.TB, s result.Summary, why string) {
	t.Helper()
	require.Contains(t, "\n"+strings.Join(s.Validity.Because, "\n"), "\n"+why)
	require.False(t, s.Validity.Valid)
}

func TestRun_SaysThatTheHostIsSharedAndTheSamplesAreFew(t *testing.T) {
	t.Parallel()
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate = load.Constant(100)
	s := judged(t.Context(), t, cfg, serve(t, http.HandlerFunc(acknowledge)), nil)
	requireWarning(t, s, "shared host: ")
	requireWarning(t, s, fmt.Sprintf("too few samples: %d latency values; p99 needs 1,000", s.Load.Requests))
	require.Nil(t, s.LatencyMS.P99)
	require.NotNil(t, s.Load.LatenessMS, "by which it is judged whether the generator was late")
	requireWarning(t, s, "not audited: ")
}

func TestRun_SaysThatRequestsWaitedToBeSent(t *testing.T) {
	t.Parallel()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var mu sync.Mutex
	n := 0
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate, cfg.Load.MaxInFlight, cfg.Load.Duration, cfg.Load.Grace = load.Constant(600), 4, time.Hour, time.Minute
	s := judged(ctx, t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		switch n {
		case 100: // all wait: only 4 of 1,200 have been sent
			time.Sleep(300 * time.Millisecond)
		case 1200:
			enough()
		}
		mu.Unlock()
		acknowledge(w, r)
	})), nil)
	requireWarning(t, s, "waiting to be sent: p99 is ")
}

func TestRun_SaysThatTheSystemCouldNotFollow(t *testing.T) {
	t.Parallel()
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate, cfg.Load.MaxInFlight = load.Constant(1000), 4
	s := judged(t.Context(), t, cfg, serve(t, simserver.Law{PerS: 100}.Handler(1)), nil)
	requireWarning(t, s, "overloaded: ")
	require.Positive(t, *s.Load.Dropped)
	require.Less(t, s.Load.AchievedPerS, 500.0)
}

func TestRun_IsInvalidWithMoreErrorsThanAllowed(t *testing.T) {
	t.Parallel()
	var n, failed atomic.Int64
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate = load.Constant(200)
	s := judged(t.Context(), t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%4 == 0 { // of how many a busy machine gets through
			failed.Add(1)
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		acknowledge(w, r)
	})), nil)
	require.Positive(t, failed.Load())
	requireInvalid(t, s, fmt.Sprintf("%d of %d requests failed (", s.Load.Errors, s.Load.Requests))
	require.GreaterOrEqual(t, s.Load.Errors, failed.Load())
	because := strings.Join(s.Validity.Because, "\n")
	require.Contains(t, because, "; 0.100% are allowed): ")
	require.Contains(t, because, fmt.Sprintf("%d × http 503", failed.Load()))
}

func TestRun_IsInvalidWhenItEndsEarly(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var n atomic.Int64
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Duration = time.Hour
	s := judged(ctx, t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 100 {
			interrupt()
		}
		acknowledge(w, r)
	})), nil)
	requireInvalid(t, s, "it is incomplete: interrupted; ")
}

func TestRun_SaysThatTheRateDrifts(t *testing.T) {
	t.Parallel()
	const half = 4 * time.Second
	began := sync.OnceValue(time.Now)
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.InFlight, cfg.Load.Duration = 2, 2*half
	s := judged(t.Context(), t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if time.Since(began()) < half {
			time.Sleep(5 * time.Millisecond)
		} else {
			time.Sleep(time.Second)
		}
		acknowledge(w, r)
	})), nil)
	requireWarning(t, s, "not steady: ")
}

// onRedis is a store on a Redis of its own.
func onRedis(t *testing.T) (target open.Target, s store.Store, client *redis.Client) {
	t.Helper()
	started := labtest.Start(t, lab.Redis, lab.Config{})
	target, err := open.Parse(started.URL(), open.DefaultConfig())
	require.NoError(t, err)
	s, err = target.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	client = redis.NewClient(&redis.Options{Addr: started.Addr(), Password: started.Password()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return target, s, client
}

// create puts sagas into the store, that have not ended.
func create(s store.Store, n int) (gid string, err error) {
	for range n {
		gid = rand.Text()
		errs := s.Apply(context.Background(), []store.Change{&store.Create{GID: gid, Body: []byte(`{}`), Steps: 1, Owner: "test", Due: time.Hour}})
		if errs[0] != nil {
			return "", errs[0]
		}
	}
	return gid, nil
}

func TestRun_IsInvalidWhenSettingsChangeOrSagasAreMissing(t *testing.T) {
	t.Parallel()
	target, s, client := onRedis(t)
	_, err := create(s, 3)
	require.NoError(t, err)
	var changed atomic.Bool
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate = load.Constant(100)
	summary := judged(t.Context(), t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !changed.Swap(true) {
			assert.NoError(t, client.ConfigSet(r.Context(), "appendonly", "yes").Err())
		}
		acknowledge(w, r) // and stores nothing
	})), &target)
	requireInvalid(t, summary, `a setting of the store changed during the run: appendonly "no", then "yes"`)
	requireInvalid(t, summary, "the durability changed during the run: D")
	n := summary.Check.Acknowledged
	require.Positive(t, n)
	requireInvalid(t, summary, fmt.Sprintf("the audit found %d of %d acknowledged sagas lost", n, n))
	requireInvalid(t, summary, fmt.Sprintf("clients got answers for %d sagas, the store counts 0", n))
	requireWarning(t, summary, "leftovers: the store held 3 sagas before the run")
}

func TestRun_SaysThatSomebodyElseUsesTheStore(t *testing.T) {
	t.Parallel()
	target, s, _ := onRedis(t)
	cfg := pitfallConfig(t.TempDir())
	cfg.Load.Rate = load.Constant(100)
	summary := judged(t.Context(), t, cfg, serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		gid, err := create(s, 2)
		assert.NoError(t, err)
		fmt.Fprintf(w, `{"dtm_result":"SUCCESS","gid":"%s"}`, gid)
	})), &target)
	n := summary.Check.Acknowledged
	require.Positive(t, n)
	requireWarning(t, summary, fmt.Sprintf("counts differ: the store counts %d sagas, clients got answers for %d", 2*n, n))
}
