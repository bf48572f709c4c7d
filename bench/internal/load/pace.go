package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// openPacer sends the requests of an open loop when they are due. vegeta's own constant
// pacer rounds the interval to nanoseconds, does not report due times, and ignores
// interrupts while it sleeps.
//
// Timers are late by up to 1 ms, half of that on average: Go waits for them in whole
// milliseconds. That is part of the latency, but not of the service time.
type openPacer struct {
	ctx      context.Context
	began    time.Time     // of the measured part
	warmup   time.Duration // before it
	arrivals *arrivals
	limit    uint64         // of requests in flight
	ended    *atomic.Uint64 // requests that are no longer in flight

	// full is true after the limit has delayed a request, until requests are on time
	// again. Late requests are then the fault of the system.
	full    bool
	delayed delayed
}

// delayed has the requests that the limit of requests in flight has delayed, by number.
type delayed struct {
	mu       sync.Mutex
	requests map[uint64]struct{}
}

func (d *delayed) add(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requests == nil {
		d.requests = map[uint64]struct{}{}
	}
	d.requests[n] = struct{}{}
}

// take reports whether a request was delayed, and forgets it.
func (d *delayed) take(n uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, found := d.requests[n]
	delete(d.requests, n)
	return found
}

var _ vegeta.Pacer = (*openPacer)(nil)

// Pace implements vegeta.Pacer. It waits itself, so that an interrupt ends the wait.
func (p *openPacer) Pace(_ time.Duration, hits uint64) (wait time.Duration, stop bool) {
	due := p.arrivals.due(hits)
	if due >= p.arrivals.planned {
		return 0, true
	}
	if early := due - time.Since(p.began); early >= 0 {
		p.full = false
		select {
		case <-time.After(early):
		case <-p.ctx.Done():
		}
	}
	if hits-p.ended.Load() >= p.limit {
		p.full = true
	}
	if p.full {
		p.delayed.add(hits)
	}
	return 0, p.ctx.Err() != nil
}

// Rate implements vegeta.Pacer.
func (p *openPacer) Rate(elapsed time.Duration) float64 {
	return p.arrivals.profile.rate(elapsed-p.warmup, p.arrivals.planned)
}
