package load

import (
	"context"
	"errors"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/report"
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
	open      *openPacer // nil in a closed loop
}

// newPhase begins a phase: its requests are due from now.
func newPhase(ctx context.Context, cfg Config, planned time.Duration, t *transport, j *journal) *phase {
	p := &phase{cfg: cfg, planned: planned, began: time.Now(), stopped: planned, gids: cfg.newGIDs(), transport: t, journal: j}
	if cfg.open() {
		p.open = &openPacer{ctx: ctx, began: p.began, duration: planned, rate: cfg.Rate, cap: uint64(cfg.workers())}
	}
	p.meter = newMeter(cfg, p.began, p.open)
	return p
}

// run attacks until the time is over or ctx ends, and takes all results. Its
// error is that of a file.
func (p *phase) run(ctx context.Context) (err error) {
	attacker := vegeta.NewAttacker(
		vegeta.MaxWorkers(uint64(p.cfg.workers())),
		vegeta.Client(&http.Client{Transport: &submitter{p.gids, p.transport}}),
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
	return errors.Join(err, failed)
}

func (p *phase) take(r *vegeta.Result) error {
	if p.open != nil {
		p.open.answered.Add(1)
	}
	outcome, gid, kind := classify(r, p.gids.of(r.Seq))
	p.meter.add(r, outcome, kind)
	if kind == "" {
		if err := p.journal.add(outcome, gid); err != nil {
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

func (p *phase) progress(now time.Time, last report.Interval) Progress {
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
