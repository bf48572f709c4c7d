package load

import (
	"context"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
)

// openPacer is the open loop: requests are sent when they are due, whatever the
// answers do. vegeta's own constant pacer rounds the interval to nanoseconds,
// keeps the due times to itself and sleeps through an interrupt.
//
// Timers overshoot by up to about 1 ms, by half of that on average: Go waits for
// them in whole milliseconds. That is part of the latency from the due time, and
// no part of the service time.
type openPacer struct {
	ctx      context.Context
	began    time.Time
	arrivals *arrivals
	cap      uint64         // requests that may be in flight
	ended    *atomic.Uint64 // requests that are not in flight any more

	// full is true from the moment that the cap was seen to hold requests
	// back until they are on time again: lateness then is the system's.
	full     bool
	lateFull int64 // handed out late because of the cap
}

var _ vegeta.Pacer = (*openPacer)(nil)

// Pace implements vegeta.Pacer. It waits itself, so that an interrupt is heard.
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
		// Nearly full counts as full: a worker that has just answered and not
		// yet taken the next request is not a free one.
		if inFlight := hits - p.ended.Load(); inFlight >= p.cap-p.cap/10 {
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
