package groupcommit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sagabench/store"
)

// BenchmarkApply measures one change through a committer, for so many callers
// that each send their next change when they have the answer to the last. The
// store does nothing, or takes as long as a round trip. Beside the time it
// reports the CPU time and the size of the batches.
func BenchmarkApply(b *testing.B) {
	for _, to := range []struct {
		name  string
		apply applierFunc
	}{
		{"nothing", func(_ context.Context, changes []store.Change) []error { return make([]error, len(changes)) }},
		{"100us", func(_ context.Context, changes []store.Change) []error {
			time.Sleep(100 * time.Microsecond)
			return make([]error, len(changes))
		}},
	} {
		for _, callers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("store=%s/callers=%d", to.name, callers), func(b *testing.B) {
				benchmarkApply(b, to.apply, callers)
			})
		}
	}
}

func benchmarkApply(b *testing.B, to store.Applier, callers int) {
	var batches atomic.Int64
	cfg := DefaultConfig()
	cfg.Observe = func(int, time.Duration) { batches.Add(1) }
	c, err := New(to, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			next := change(fmt.Sprint("g", i), 1)
			for left.Add(-1) >= 0 {
				if err := c.Apply(b.Context(), next); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/float64(batches.Load()), "changes/batch")
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
