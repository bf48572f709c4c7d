package microbench

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// load is what is sent in one window.
type load struct {
	calls    calls
	wants    []int         // per call how many items its answer must have; nil: any answer that is no error
	pipeline float64       // calls sent before their answers are read, on average
	every    time.Duration // from one sending of a connection to its next; 0: as soon as it can
}

// drive sends the load over the connections, each of which waits for the answers
// to what it sent before it sends more. It returns how long that took. An error
// of type refused is the first answer that was not as wanted; the load was sent
// all the same.
func drive(conns []*client, l *load) (time.Duration, error) {
	parts := cut(len(l.calls.ends), l.pipeline)
	failures := make([]error, len(conns))
	var group sync.WaitGroup
	if l.every > 0 {
		defer crowd()()
	}
	began := time.Now()
	for c := range conns {
		group.Go(func() { failures[c] = drivePart(conns[c], l, parts, c, len(conns)) })
	}
	group.Wait()
	took := time.Since(began)
	var refusal error
	for _, err := range failures { // a lost connection matters more than a refusal
		switch {
		case err != nil && !isRefused(err):
			return took, err
		case refusal == nil:
			refusal = err
		}
	}
	return took, refusal
}

// drivePart sends one part of so many, and from it on every so many.
func drivePart(conn *client, l *load, parts []int, first, many int) error {
	var failure error
	var memory []byte
	if l.every > 0 {
		memory = make([]byte, footprint)
	}
	next := time.Now()
	for i := first; i < len(parts)-1; i += many {
		if l.every > 0 {
			workUntil(next, memory)
			next = next.Add(l.every)
		}
		from, to := parts[i], parts[i+1]
		if err := conn.write(l.calls.part(from, to)); err != nil {
			return err
		}
		for call := from; call < to; call++ {
			r, err := readReply(conn.r, false)
			if err != nil {
				return err
			}
			if failure == nil {
				failure = l.judge(call, r)
			}
		}
	}
	return failure
}

// crowd keeps the cores busy that drive leaves idle, until stop: in a run of sagas app
// and load do, and a server that runs on them is then not woken from an idle core,
// which costs it more.
func crowd() (stop func()) {
	var stopped atomic.Bool
	var group sync.WaitGroup
	for range runtime.NumCPU() - 1 {
		group.Go(func() {
			memory := make([]byte, footprint)
			for !stopped.Load() {
				workUntil(time.Now().Add(100*time.Microsecond), memory)
			}
		})
	}
	return func() {
		stopped.Store(true)
		group.Wait()
	}
}

// footprint is what an application and its load go through between two round
// trips: some MB, which is more than a core's own cache.
const footprint = 2 << 20

// workUntil passes the time as an application would that shares the machine with
// the server: it keeps its core busy, for timers are too coarse for parts of a
// millisecond, and takes room in the caches.
func workUntil(when time.Time, memory []byte) {
	const line = 64 // bytes of a cache line
	for i := 0; time.Now().Before(when); i++ {
		for at := i % line; at < len(memory); at += line {
			memory[at]++
		}
	}
}

func (l *load) judge(call int, r reply) error {
	switch {
	case r.kind == '-':
		return refused(r.text)
	case l.wants == nil || r.n == l.wants[call]:
		return nil
	default:
		return refused(fmt.Sprintf("an answer of %d items where %d mean that all was done", r.n, l.wants[call]))
	}
}

// cut divides n calls into parts of size on average: the ends of the parts, with
// 0 before them.
func cut(n int, size float64) []int {
	ends := []int{0}
	for i := 0; ends[len(ends)-1] < n; i++ {
		ends = append(ends, min(n, ends[len(ends)-1]+share(i, size)))
	}
	return ends
}

// share is how many go into part i, from 0, when parts are to hold size on
// average: whole numbers that differ by at most one, and at least 1.
func share(i int, size float64) int {
	return max(1, int(float64(i+1)*size)-int(float64(i)*size))
}
