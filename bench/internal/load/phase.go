package load

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
)

// intervalLength is how often the recorder starts a new interval, and how often progress
// is reported.
const intervalLength = time.Second

// phase is the warm-up or the measured part: one attack of vegeta's.
type phase struct {
	cfg       Config
	planned   time.Duration
	began     time.Time
	stopped   time.Duration // when sending ended, since began
	gids      gids
	transport *transport
	acks      *ackFile
	files     *files // nil in the warm-up
	recorder  *recorder
	observer  Observer
	ended     atomic.Uint64 // requests that were sent and are no longer in flight
	schedule  *schedule     // nil in a closed loop
	pacer     *openPacer    // nil in a closed loop
}

// newPhase starts a phase: its requests are due from now on, in an open loop at the rate
// of the profile.
func newPhase(ctx context.Context, cfg Config, profile Profile, planned time.Duration, t *transport, acks *ackFile) *phase {
	p := &phase{cfg: cfg, planned: planned, began: time.Now(), stopped: planned, gids: cfg.newGIDs(), transport: t, acks: acks, observer: cfg.observer()}
	var rate func(time.Duration) float64
	if profile.IsOpen() {
		p.schedule = cfg.schedule(profile, planned)
		p.pacer = &openPacer{ctx: ctx, began: p.began, arrivals: p.schedule.arrivals(), limit: uint64(cfg.workers()), ended: &p.ended}
		rate = p.pacer.Rate
	}
	p.observer.PhaseStarted(rate)
	p.recorder = newRecorder(cfg.workers(), p.began, p.schedule)
	return p
}

// run sends requests until the time is over or ctx ends, and records all results. It
// returns errors of files only.
func (p *phase) run(ctx context.Context) (err error) {
	attacker := vegeta.NewAttacker(
		vegeta.MaxWorkers(uint64(p.cfg.workers())),
		vegeta.Client(&http.Client{Transport: p}),
		vegeta.Redirects(vegeta.NoFollow),
	)
	var pacer vegeta.Pacer = vegeta.Rate{} // closed loop: as soon as a worker is free
	if p.pacer != nil {
		pacer = p.pacer
	}
	results := attacker.Attack(p.cfg.targeter(), pacer, p.planned, "")

	ticker := time.NewTicker(intervalLength)
	defer ticker.Stop()
	interrupt := ctx.Done()
	for more := true; more; {
		var failed error
		select {
		case r, ok := <-results:
			if more = ok; more && err == nil {
				failed = p.record(r)
			}
		case <-ticker.C:
			failed = p.tick()
		case <-interrupt:
		}
		if interrupt != nil && ctx.Err() != nil {
			interrupt = nil
			p.stopped = min(p.planned, time.Since(p.began))
			attacker.Stop()
			time.AfterFunc(p.cfg.Grace, p.transport.abort)
		}
		if failed != nil && err == nil {
			err = failed
			attacker.Stop()
		}
	}
	_, failed := p.recorder.endInterval(time.Now())
	var lateFull int64
	if p.pacer != nil {
		lateFull = p.pacer.lateFull
	}
	p.recorder.finish(p.stopped, lateFull)
	p.observer.PhaseEnded(p.recorder.res.Dropped)
	return errors.Join(err, failed)
}

func (p *phase) record(r *vegeta.Result) error {
	outcome, gid, kind := classify(r, p.gids.of(r.Seq))
	late := p.recorder.add(r, outcome, kind)
	p.observer.RequestDone(Answer{outcome, kind, r.Latency + late, r.Latency, late > result.LateAfter})
	if kind == "" {
		if err := p.acks.add(outcome, r.Timestamp, gid); err != nil {
			return err
		}
	}
	if p.files == nil {
		return nil
	}
	return p.files.add(r)
}

// tick ends an interval and reports progress.
func (p *phase) tick() error {
	now := time.Now()
	i, err := p.recorder.endInterval(now)
	if p.cfg.Progress != nil {
		p.cfg.Progress(Progress{
			WarmingUp: p.files == nil, Elapsed: now.Sub(p.began), Planned: p.planned,
			Requests: p.recorder.res.Requests, Errors: p.recorder.res.Errors,
			PerS: i.PerS(), P50: i.P50, P99: i.P99,
		})
	}
	return err
}
