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

// intervalLength is how often the meter starts a new interval and progress is
// told.
const intervalLength = time.Second

// phase is one attack: the warm-up or the measured part.
type phase struct {
	cfg       Config
	planned   time.Duration
	began     time.Time
	stopped   time.Duration // when sending ended, from the start
	gids      gids
	transport *transport
	journal   *journal
	files     *files // nil while warming up
	meter     *meter
	watcher   Watcher
	ended     atomic.Uint64 // requests that were sent and are not in flight any more
	schedule  *schedule     // nil in a closed loop
	open      *openPacer    // likewise
}

// newPhase begins a phase: its requests are due from now, in an open loop at the
// rate of the profile.
func newPhase(ctx context.Context, cfg Config, profile Profile, planned time.Duration, t *transport, j *journal) *phase {
	p := &phase{cfg: cfg, planned: planned, began: time.Now(), stopped: planned, gids: cfg.newGIDs(), transport: t, journal: j, watcher: cfg.watcher()}
	var rate func(time.Duration) float64
	if profile.IsOpen() {
		p.schedule = cfg.schedule(profile, planned)
		p.open = &openPacer{ctx: ctx, began: p.began, arrivals: p.schedule.arrivals(), cap: uint64(cfg.workers()), ended: &p.ended}
		rate = p.open.Rate
	}
	p.watcher.Begins(rate)
	p.meter = newMeter(cfg.workers(), p.began, p.schedule)
	return p
}

// run attacks until the time is over or ctx ends, and takes all results. Its
// error is that of a file.
func (p *phase) run(ctx context.Context) (err error) {
	attacker := vegeta.NewAttacker(
		vegeta.MaxWorkers(uint64(p.cfg.workers())),
		vegeta.Client(&http.Client{Transport: p.sender()}),
		vegeta.Redirects(vegeta.NoFollow),
	)
	var pacer vegeta.Pacer = vegeta.Rate{} // closed loop: as soon as a worker is free
	if p.open != nil {
		pacer = p.open
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
				failed = p.take(r)
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
	_, failed := p.meter.endInterval(time.Now())
	var lateFull int64
	if p.open != nil {
		lateFull = p.open.lateFull
	}
	p.meter.finish(p.stopped, lateFull)
	p.watcher.Ends(p.meter.res.Dropped)
	return errors.Join(err, failed)
}

// sender counts the requests on their way. What has been answered is not in flight,
// even if nobody has got round to taking the result yet: that would be the load
// generator's own doing.
func (p *phase) sender() http.RoundTripper {
	next := &submitter{p.gids, p.transport}
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		p.watcher.Sends()
		defer p.ended.Add(1)
		return next.RoundTrip(req)
	})
}

// roundTrip is a function as a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (p *phase) take(r *vegeta.Result) error {
	outcome, gid, kind := classify(r, p.gids.of(r.Seq))
	late := p.meter.add(r, outcome, kind)
	p.watcher.Answered(Answer{outcome, kind, r.Latency + late, r.Latency, late > result.LateAfter})
	if kind == "" {
		if err := p.journal.add(outcome, r.Timestamp, gid); err != nil {
			return err
		}
	}
	if p.files == nil {
		return nil
	}
	return p.files.add(r)
}

// tick ends an interval and tells how the run stands.
func (p *phase) tick() error {
	now := time.Now()
	i, err := p.meter.endInterval(now)
	if p.cfg.Progress != nil {
		p.cfg.Progress(p.progress(now, i))
	}
	return err
}

func (p *phase) progress(now time.Time, last result.Interval) Progress {
	return Progress{
		WarmingUp: p.files == nil,
		Elapsed:   now.Sub(p.began),
		Planned:   p.planned,
		Requests:  p.meter.res.Requests,
		Errors:    p.meter.res.Errors,
		PerS:      last.PerS(),
		P50:       last.P50,
		P99:       last.P99,
	}
}
