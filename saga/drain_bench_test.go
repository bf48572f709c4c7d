package saga_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
)

// BenchmarkDrain leaves b.N unfinished sagas of two empty steps behind, as a
// coordinator does that dies, and measures how long another one takes for them.
// Meanwhile it is given fresh sagas, one every two milliseconds: how long those take
// is reported beside what they take when there is nothing else to do.
func BenchmarkDrain(b *testing.B) {
	b.Run("pebble", func(b *testing.B) {
		cfg := pebblestore.DefaultConfig()
		cfg.Dir = b.TempDir()
		s, err := pebblestore.Open(b.Context(), cfg)
		require.NoError(b, err)
		defer s.Close()
		drain(b, s)
	})
	b.Run("redis", func(b *testing.B) {
		cfg := redisstore.DefaultConfig()
		cfg.URL, cfg.Prefix = labtest.Start(b, lab.Redis, lab.Config{}).URL(), "drain-"+rand.Text()[:8]
		s, err := redisstore.Open(b.Context(), cfg)
		require.NoError(b, err)
		defer s.Close()
		drain(b, s)
	})
}

func drain(b *testing.B, s store.Store) {
	cfg := saga.DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	before, err := saga.New(s, &branches{}, cfg)
	require.NoError(b, err)
	idle := percentile(fresh(b, before, time.After(2*time.Second)), 0.99)
	kill(before)

	for left := b.N; left > 0; left -= 1000 {
		changes := make([]store.Change, min(left, 1000))
		for i := range changes {
			changes[i] = &store.Create{GID: saga.NewGID(), Body: []byte(`{"steps":[{},{}]}`), Steps: 2, Owner: "dead"}
		}
		for _, err := range s.Apply(b.Context(), changes) {
			require.NoError(b, err)
		}
	}
	b.ResetTimer()
	c, err := saga.New(s, &branches{}, cfg)
	require.NoError(b, err)
	over := make(chan time.Time)
	var during []time.Duration
	var load sync.WaitGroup
	load.Go(func() { during = fresh(b, c, over) })
	for c.Counters().Recovered < int64(b.N) || c.Counters().InFlight > 1 {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	close(over)
	load.Wait()
	kill(c)
	stats, err := s.Stats(b.Context())
	require.NoError(b, err)
	require.Zero(b, stats.Unfinished)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sagas/s")
	b.ReportMetric(float64(percentile(during, 0.99).Microseconds())/1000, "fresh-p99-ms")
	b.ReportMetric(float64(idle.Microseconds())/1000, "idle-p99-ms")
}

// fresh runs new sagas until it is over, and says how long each took from when it
// was due.
func fresh(b *testing.B, c *saga.Coordinator, over <-chan time.Time) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var running sync.WaitGroup
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case due := <-pace.C:
			running.Go(func() {
				_, err := c.Run(b.Context(), &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, 2)})
				if err != nil {
					b.Error(fmt.Errorf("a fresh saga: %w", err))
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(due))
			})
		case <-over:
			running.Wait()
			return took
		}
	}
}

func percentile(of []time.Duration, p float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(int(p*float64(len(of))), len(of)-1)]
}
