package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"go.uber.org/goleak"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sagas answers as the bench server does and remembers what it told.
type sagas struct {
	mu   sync.Mutex
	told map[string]store.Status
	n    atomic.Int64
}

func (s *sagas) answer(w http.ResponseWriter, outcome store.Status) {
	gid := fmt.Sprintf("gid-%d", s.n.Add(1))
	s.mu.Lock()
	if s.told == nil {
		s.told = map[string]store.Status{}
	}
	s.told[gid] = outcome
	s.mu.Unlock()
	if outcome == store.StatusFailed {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"dtm_result":"FAILURE","gid":"%s","message":"asked to"}`, gid)
		return
	}
	fmt.Fprintf(w, `{"dtm_result":"SUCCESS","gid":"%s"}`, gid)
}

func serve(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/bench/saga"
}

func config(t *testing.T, target string) Config {
	t.Helper()
	cfg := Default()
	cfg.Targets = []Target{{URL: target}}
	cfg.InFlight = 8
	cfg.Duration = 300 * time.Millisecond
	cfg.Warmup = 0
	cfg.Timeout = time.Minute
	cfg.Grace = 100 * time.Millisecond
	cfg.Dir = filepath.Join(t.TempDir(), "result")
	return cfg
}

func TestRun_ClosedLoopKeepsInFlightBoundedAndRecordsAll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		var inFlight, most atomic.Int64
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			now := inFlight.Add(1)
			defer inFlight.Add(-1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			time.Sleep(5 * time.Millisecond)
			outcome := store.StatusSucceeded
			if s.n.Load()%4 == 3 {
				outcome = store.StatusFailed
			}
			s.answer(w, outcome)
		})
		// The connections to each are bounded too: only two show the requests.
		cfg.Targets = append(cfg.Targets, Target{URL: "http://b/bench/saga"})
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Empty(t, res.Incomplete)
		require.EqualValues(t, 8, most.Load())

		require.Equal(t, res.Requests, res.Sagas())
		require.Positive(t, res.Failed)
		require.Zero(t, res.Errors)
		require.Empty(t, res.ErrorsByKind)
		require.Equal(t, res.Requests, res.Latency.TotalCount())
		require.Equal(t, res.Requests, res.Service.TotalCount())
		require.True(t, res.Latency.Equals(res.Service), "a closed loop has no due time but the send")
		require.GreaterOrEqual(t, res.Latency.Min(), int64(5000))
		require.InEpsilon(t, 8*200, res.AchievedPerS, 0.05)

		l := res.Load()
		require.Equal(t, result.Closed, l.Mode)
		require.Equal(t, 8, l.InFlight)
		require.Nil(t, l.OfferedPerS)
		require.Nil(t, l.LatenessMS)
		require.Nil(t, l.Delayed)
		require.Nil(t, l.Dropped)

		acks := readAll(t, cfg.Dir)
		require.Equal(t, s.told, acks)
		require.EqualValues(t, len(acks), res.Acknowledged)
		require.Equal(t, res.Requests, countResults(t, cfg.Dir))
		requireHistogramLog(t, cfg.Dir, res)
	})
}

func readAll(t *testing.T, dir string) map[string]store.Status {
	t.Helper()
	told := map[string]store.Status{}
	require.NoError(t, Acknowledged(dir, func(a Acknowledgement) error {
		require.NotContains(t, told, a.GID)
		require.WithinDuration(t, time.Now(), a.Sent, time.Hour)
		told[a.GID] = a.Outcome
		return nil
	}))
	return told
}

// countResults reads results.bin the way vegeta does.
func countResults(t *testing.T, dir string) (n int64) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, result.FileResults))
	require.NoError(t, err)
	defer f.Close()
	decode := vegeta.DecoderFor(f)
	require.NotNil(t, decode)
	for {
		var r vegeta.Result
		err := decode(&r)
		if errors.Is(err, io.EOF) {
			return n
		}
		require.NoError(t, err)
		require.False(t, r.Timestamp.IsZero())
		require.NotEmpty(t, r.URL)
		require.Empty(t, r.Body)
		n++
	}
}

func requireHistogramLog(t *testing.T, dir string, res Result) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, result.FileHistogramLog))
	require.NoError(t, err)
	defer f.Close()
	rec, err := result.ReadHistogramLog(f)
	require.NoError(t, err)
	require.Equal(t, res.Latency.TotalCount(), rec.Latency.TotalCount())
	require.Equal(t, res.Latency.ValueAtQuantile(99), rec.Latency.ValueAtQuantile(99))
	require.Equal(t, res.Service.TotalCount(), rec.Service.TotalCount())
	require.Len(t, rec.Intervals, len(res.Intervals))
}

func TestRun_OpenLoopSendsAtTheRateToAllTargets(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		var toA, toB atomic.Int64
		cfg := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "a" {
				toA.Add(1)
			} else {
				toB.Add(1)
			}
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Targets = append(cfg.Targets, Target{URL: "http://b/bench/saga"})
		cfg.Rate = Constant(333.3)
		cfg.Duration = 600 * time.Millisecond
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, []int64{100, 100, 200, 0}, []int64{toA.Load(), toB.Load(), res.Requests, res.Dropped})
		l := res.Load()
		require.Equal(t, result.Open, l.Mode)
		require.InDelta(t, 333.3, *l.OfferedPerS, 0)
		require.Equal(t, "333.3/s", l.Profile)
		require.Equal(t, "constant", l.Arrival)
		require.NotNil(t, l.LatenessMS)
		require.NotNil(t, l.Delayed)
		require.NotNil(t, l.Dropped)
	})
}

// A stall is seen by all requests that were due while it lasted, though only
// those under way had been sent.
func TestRun_LatencyFromTheDueTimeShowsAStall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const stall = 300 * time.Millisecond
		var s sagas
		began := make(chan time.Time, 1)
		began <- time.Time{}
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			first := <-began
			if first.IsZero() {
				first = time.Now()
			}
			began <- first
			if at := time.Since(first); at > 100*time.Millisecond && at < 100*time.Millisecond+stall {
				time.Sleep(100*time.Millisecond + stall - at)
			}
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Rate = Constant(500)
		cfg.MaxInFlight = 4
		cfg.Duration = time.Second
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		// 150 of 500 were due while nothing was answered, and 4 of them sent.
		latency := time.Duration(res.Latency.ValueAtQuantile(85)) * time.Microsecond
		service := time.Duration(res.Service.ValueAtQuantile(85)) * time.Microsecond
		require.Greater(t, latency, 50*time.Millisecond)
		require.Less(t, service, latency/2)
		require.Greater(t, res.Delayed, int64(100), "the cap on requests in flight held them back, not the generator")
		require.Equal(t, res.Requests-res.Delayed, res.Lateness.TotalCount())
		require.Less(t, res.Lateness.ValueAtQuantile(90), int64(50_000))
	})
}

// Requests that are late because nobody takes the results are the load generator's
// own doing, even if as many as allowed are under way.
func TestRun_AGeneratorThatDoesNotTakeItsResultsIsLateByItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, store.StatusSucceeded) })
		cfg.Rate, cfg.MaxInFlight, cfg.Duration = Constant(300), 30, intervalLength+500*time.Millisecond
		cfg.Progress = func(Progress) { time.Sleep(400 * time.Millisecond) }
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Greater(t, over(res.Lateness, 50*time.Millisecond), int64(20), "120 were due meanwhile, and 30 could go")
	})
}

func TestRun_OverloadDropsAndAchievesLess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(10 * time.Millisecond)
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Rate = Constant(1000)
		cfg.MaxInFlight = 2
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.EqualValues(t, 300, res.Requests+res.Dropped)
		require.Greater(t, res.Dropped, int64(200))
		require.Less(t, res.AchievedPerS, 250.0)
		require.True(t, res.Load().Overloaded())
	})
}

func TestRun_InterruptStillGivesAResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		release := make(chan struct{})
		cfg := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			if s.n.Load() >= 100 {
				interrupt()
				<-release // until after Run has returned
				return
			}
			s.answer(w, store.StatusSucceeded)
		})
		t.Cleanup(func() { close(release) })
		cfg.Duration = time.Hour
		began := time.Now()
		res, err := Run(ctx, cfg)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), cfg.Grace)
		require.Equal(t, "interrupted", res.Incomplete)
		require.GreaterOrEqual(t, res.Succeeded, int64(100))
		require.Equal(t, res.Errors, res.ErrorsByKind["interrupted"])
		require.Equal(t, res.Succeeded, res.Acknowledged)
		require.Equal(t, res.Requests, countResults(t, cfg.Dir))
		requireHistogramLog(t, cfg.Dir, res)
	})
}

func TestRun_InterruptOfASlowOpenLoopIsHeard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			s.answer(w, store.StatusSucceeded)
			time.AfterFunc(50*time.Millisecond, interrupt)
		})
		cfg.Rate = Constant(1.0 / 3600)
		cfg.Duration = 2 * time.Hour
		res, err := Run(ctx, cfg)
		require.NoError(t, err)
		require.EqualValues(t, 1, res.Requests)
		require.Zero(t, res.Dropped, "the next one is due in an hour")
		require.Equal(t, "interrupted", res.Incomplete)
	})
}

func TestRun_ProgressIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		var told []Progress
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Millisecond)
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Rate = Constant(100)
		cfg.Duration = intervalLength + 200*time.Millisecond
		cfg.Progress = func(p Progress) { told = append(told, p) }
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Len(t, told, 1)
		require.False(t, told[0].WarmingUp)
		require.Equal(t, cfg.Duration, told[0].Planned)
		require.InDelta(t, 100, told[0].PerS, 1)
		require.InDelta(t, time.Millisecond, told[0].P99, float64(10*time.Microsecond))
		require.Len(t, res.Intervals, 2)
		require.InEpsilon(t, float64(res.Requests)/res.Elapsed.Seconds(), res.AchievedPerS, 0.1)
	})
}
