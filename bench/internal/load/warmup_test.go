package load

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/simserver"
	"sagabench/store"
)

func TestRun_GoesOnFromTheWarmUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate    Profile
		arrival Arrival
		fail    int64 // requests at the start that fail
	}{
		"closed":           {},
		"constant":         {rate: Constant(500)},
		"Poisson":          {rate: Constant(500), arrival: ArrivalPoisson},
		"ramp":             {rate: Ramp(300, 700)},
		"few":              {rate: Constant(2)},
		"warm-up's errors": {rate: Constant(500), fail: 40},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var s sagas
				var all, atBegin atomic.Int64
				var calls []string
				cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(5 * time.Millisecond)
					if all.Add(1) <= c.fail {
						http.Error(w, "no", http.StatusServiceUnavailable)
						return
					}
					s.answer(w, store.StatusSucceeded)
				})
				cfg.Rate, cfg.Arrival, cfg.Seed = c.rate, cmp.Or(c.arrival, ArrivalConstant), 1
				cfg.Warmup, cfg.Duration = 200*time.Millisecond, 500*time.Millisecond
				cfg.Begin = func(context.Context) error {
					calls = append(calls, "begin")
					time.Sleep(100 * time.Millisecond) // load goes on meanwhile
					atBegin.Store(all.Load())
					return nil
				}
				cfg.End = func(context.Context) error { calls = append(calls, "end"); return nil }
				res, err := Run(t.Context(), cfg)
				require.NoError(t, err)
				require.Equal(t, []string{"begin", "end"}, calls)
				require.Equal(t, s.told, readAll(t, cfg.Dir), "the warm-up's too")
				require.Equal(t, s.n.Load(), res.Acknowledged)
				require.Equal(t, res.Requests, countResults(t, cfg.Dir))
				require.Zero(t, res.Errors)
				require.Positive(t, res.Requests)
				require.Less(t, res.Requests, all.Load())
				requireHistogramLog(t, cfg.Dir, res)
				if cfg.open() {
					schedule := cfg.schedule()
					require.Equal(t, schedule.before(cfg.Duration), res.Requests+res.Dropped)
					require.InDelta(t, schedule.warmup, all.Load()-res.Requests, 1+schedule.warmup/4)
				}
				require.GreaterOrEqual(t, res.Costed, all.Load()-atBegin.Load()-8, "some are answered before Begin returns")
				require.Less(t, res.Costed, res.Acknowledged)
			})
		})
	}
}

// A server that is stopped for the second half of the warm-up: the requests due then are
// answered after it and not counted, and those due later wait behind them.
func TestRun_WhatTheWarmUpLeftIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		law := simserver.Law{PerS: 1e5, StallEvery: time.Hour, StallFor: 400 * time.Millisecond}
		cfg := bubbled(t, law.Handler(1).ServeHTTP)
		cfg.Rate, cfg.Warmup, cfg.Duration = Constant(200), 200*time.Millisecond, time.Second
		cfg.Limits = []result.OverLimit{{MS: 50, Most: math.MaxInt64}}
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.EqualValues(t, 200, res.Requests+res.Dropped)
		require.EqualValues(t, 40, res.Acknowledged-res.Requests)
		require.EqualValues(t, 40, res.UnansweredStart)
		require.GreaterOrEqual(t, res.Latency.Max(), int64(150_000), "0.2 s of the stall were left")
		require.Len(t, res.Seconds, 1)
		require.EqualValues(t, 200, res.Seconds[0].Due)
		require.GreaterOrEqual(t, res.Seconds[0].Over(50), int64(25))
		require.Equal(t, &res.UnansweredStart, res.Load().UnansweredStart)
	})
}

func TestRun_ErrorsAndDroppedAreOverEveryLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s sagas
		cfg := bubbled(t, func(w http.ResponseWriter, _ *http.Request) {
			if s.n.Load()%4 == 3 {
				s.n.Add(1)
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			time.Sleep(10 * time.Millisecond)
			s.answer(w, store.StatusSucceeded)
		})
		cfg.Rate, cfg.MaxInFlight, cfg.Limits = Constant(1000), 2, []result.OverLimit{{MS: 1, Most: math.MaxInt64}}
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Positive(t, res.Errors)
		require.Positive(t, res.Dropped)
		require.Len(t, res.Seconds, 1)
		second := res.Seconds[0]
		require.Equal(t, []int64{300, res.Errors, res.Dropped}, []int64{second.Due, second.Errors, second.Dropped})
		require.EqualValues(t, res.Errors+res.Dropped, second.Over(3_600_000))
		require.EqualValues(t, 300, second.Over(0.001))
		require.GreaterOrEqual(t, res.UnansweredEnd, res.Dropped)
	})
}

func TestRun_EndsWhenTooManyAreOverALimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		law := simserver.Law{PerS: 1e5, StallEvery: 10 * time.Second, StallFor: 500 * time.Millisecond}
		cfg := bubbled(t, law.Handler(1).ServeHTTP)
		cfg.Rate, cfg.Warmup, cfg.Duration = Constant(200), 0, time.Minute
		cfg.Limits = []result.OverLimit{{MS: 10_000, Most: 10}, {MS: 50, Most: 10}}
		began := time.Now()
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, res.Incomplete)
		require.Greater(t, res.Seconds[0].Over(50), int64(10))
	})
}
