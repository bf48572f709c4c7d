package storetest

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sagabench/store"
)

// Benchmark measures the stores of h. An iteration is one saga of two steps, created,
// marked and finished in three batches. The sub-benchmark's name is the number of sagas
// per batch. It also reports cpu_us/saga: the CPU time, user and system, of this process
// without a server.
func Benchmark(b *testing.B, h Harness) {
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := h.Open(b, Options{Retention: long})
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime(b)
			for first := 0; first < b.N; first += size {
				runSagas(b, s, first, min(size, b.N-first))
			}
			b.StopTimer()
			b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/1e3/float64(b.N), "cpu_us/saga")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// runSagas runs n sagas in three batches.
func runSagas(b *testing.B, s store.Store, first, n int) {
	body := []byte(`{"steps":[{"action":"http://a/in"},{"action":"http://b/out"}]}`)
	creates := make([]store.Change, n)
	marks := make([]store.Change, n)
	ends := make([]store.Change, n)
	for i := range n {
		gid := strconv.Itoa(first + i)
		creates[i] = &store.Create{GID: gid, Body: body, Steps: 2, Owner: "bench", Due: long}
		marks[i] = &store.Transition{
			GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted,
			Marks: []store.SetMark{{Branch: store.Action(0), Mark: store.MarkSucceeded}},
		}
		ends[i] = &store.Transition{
			GID: gid, Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded,
			Marks: []store.SetMark{{Branch: store.Action(1), Mark: store.MarkSucceeded}},
		}
	}
	for _, batch := range [][]store.Change{creates, marks, ends} {
		for _, err := range s.Apply(b.Context(), batch) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// cpuTime returns the CPU time of this process so far.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
