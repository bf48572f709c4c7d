package load

import (
	"context"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
)

// openPacer sends the requests of an open loop when they are due. vegeta's own constant
// pacer rounds the interval to nanoseconds, does not report due times, and ignores
// interrupts while it sleeps.
//
// Timers are late by up to 1 ms, half of that on average: Go waits for them in whole
// milliseconds. That is part of the latency, but not of the service time.
type openPacer struct {
	ctx      context.Context
	began    time.Time
	arrivals *arrivals
	limit    uint64         // of requests in flight
	ended    *atomic.Uint64 // requests that are no longer in flight

	// full is true after the limit has delayed a request, until requests are on time
	// again. Late requests are then the fault of the system.
	full     bool
	lateFull int64 // requests that the limit has delayed
}

var _ vegeta.Pacer = (*openPacer)(nil)

// Pace implements vegeta.Pacer. It waits itself, so that an interrupt ends the wait.
func (p *openPacer) Pace(_ time.Duration, hits uint64) (wait time.Duration, stop bool) {
	due := p.arrivals.due(hits)
	if due >= p.arrivals.planned {
		return 0, true
	}
	switch late := time.Since(p.began) - due; {
	case late <= 0:
		p.full = false
		select {
		case <-time.After(-late):
		case <-p.ctx.Done():
		}
	case late > result.LateAfter:
		// Nearly full counts as full: a worker that has just ended a request and not yet
		// begun the next one is not free.
		if inFlight := hits - p.ended.Load(); inFlight >= p.limit-p.limit/10 {
			p.full = true
		}
		if p.full {
			p.lateFull++
		}
	}
	return 0, p.ctx.Err() != nil
}

// Rate implements vegeta.Pacer.
func (p *openPacer) Rate(elapsed time.Duration) float64 {
	return p.arrivals.profile.rate(elapsed, p.arrivals.planned)
}
