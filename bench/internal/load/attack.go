package load

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// intervalLength is how often the recorder starts a new interval, and how often progress
// is reported.
const intervalLength = time.Second

// attack sends the requests of the warm-up and of the measured part: one attack of
// vegeta's, so that the load goes on from one to the other.
type attack struct {
	cfg       Config
	start     time.Time
	began     time.Time     // of the measured part
	stopped   time.Duration // when sending ended, since began
	gids      gids
	transport *transport
	acks      *ackFile
	files     *files
	recorder  *recorder
	observer  Observer
	ended     atomic.Uint64 // requests that were sent and are no longer in flight
	schedule  *schedule     // nil in a closed loop
	pacer     *openPacer    // nil in a closed loop

	begun     chan error   // result of cfg.Begin
	begunAt   atomic.Int64 // when it returned, in ns since began; 0: not yet
	measuring bool
}

// newAttack starts an attack: its first request is due now. Without a warm-up, it calls
// cfg.Begin before.
func newAttack(ctx context.Context, cfg Config, t *transport, acks *ackFile) (*attack, error) {
	if cfg.Warmup == 0 && cfg.Begin != nil {
		if err := cfg.Begin(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	a := &attack{
		cfg: cfg, start: start, began: start.Add(cfg.Warmup), stopped: cfg.Duration,
		gids: cfg.newGIDs(), transport: t, acks: acks, observer: cfg.observer(),
		begun: make(chan error, 1),
	}
	var err error
	if a.files, err = createFiles(cfg.Dir, a.began); err != nil {
		return nil, err
	}
	if cfg.open() {
		a.schedule = cfg.schedule()
		a.pacer = &openPacer{ctx: ctx, began: a.began, warmup: cfg.Warmup, arrivals: a.schedule.arrivals(), limit: uint64(cfg.workers()), ended: &a.ended}
	}
	a.recorder = newRecorder(cfg, a.began, a.schedule)
	if a.pacer != nil {
		a.recorder.delayed = &a.pacer.delayed
	}
	a.recorder.log = a.files.log
	if cfg.Warmup == 0 {
		a.begunAt.Store(1)
	}
	return a, nil
}

// begin calls cfg.Begin while load is being sent.
func (a *attack) begin(ctx context.Context) {
	var err error
	if a.cfg.Begin != nil {
		err = a.cfg.Begin(context.WithoutCancel(ctx))
	}
	a.begunAt.Store(max(1, int64(time.Since(a.began))))
	a.begun <- err
}

// run sends requests until the time is over or ctx ends, and records all results. begun
// reports whether cfg.Begin was called and returned no error. The attack ends early if a
// file cannot be written, if cfg.Begin fails and if all requests of the warm-up failed.
func (a *attack) run(ctx context.Context) (begun bool, err error) {
	attacker := vegeta.NewAttacker(
		vegeta.MaxWorkers(uint64(a.cfg.workers())),
		vegeta.Client(&http.Client{Transport: a}),
		vegeta.Redirects(vegeta.NoFollow),
	)
	var pacer vegeta.Pacer = vegeta.Rate{} // closed loop: as soon as a worker is free
	var rate func(time.Duration) float64
	if a.pacer != nil {
		pacer, rate = a.pacer, a.pacer.Rate
	}
	a.observer.Started(rate)
	results := attacker.Attack(a.cfg.targeter(), pacer, a.cfg.Warmup+a.cfg.Duration, "")
	stop := func() {
		attacker.Stop()
		time.AfterFunc(a.cfg.Grace, a.transport.abort)
	}

	boundary := time.NewTimer(time.Until(a.began))
	defer boundary.Stop()
	begun = a.cfg.Warmup == 0
	waiting := !begun     // for begin
	var begin *time.Timer // has a goroutine of its own: this one takes the results
	if waiting {
		begin = time.AfterFunc(time.Until(a.began), func() { a.begin(ctx) })
	}
	ticker := time.NewTicker(intervalLength)
	defer ticker.Stop()
	interrupt := ctx.Done()
	for more := true; more; {
		var failed error
		select {
		case r, ok := <-results:
			if more = ok; more && err == nil {
				failed = a.record(ctx, r)
			}
		case <-ticker.C:
			failed = a.tick()
		case <-boundary.C:
			a.measure()
			ticker.Reset(intervalLength)
		case failed = <-a.begun:
			waiting, begun = false, failed == nil
		case <-interrupt:
		}
		if interrupt != nil && (ctx.Err() != nil || a.recorder.tooMany()) {
			interrupt = nil
			a.stopped = max(0, min(a.cfg.Duration, time.Since(a.began)))
			stop()
			if waiting && begin.Stop() {
				waiting = false
			}
		}
		if failed != nil && err == nil {
			err = failed
			stop()
		}
	}
	if waiting && begin.Stop() {
		waiting = a.measuring
		if waiting { // the last answer was faster than the timer
			a.begin(ctx)
		}
	}
	if waiting {
		failed := <-a.begun
		begun = failed == nil
		err = errors.Join(err, failed)
	}
	if err == nil && ctx.Err() == nil {
		err = a.recorder.allFailed(true)
	}
	_, failed := a.recorder.endInterval(time.Now())
	a.recorder.finish(a.stopped)
	a.observer.Ended(a.recorder.res.Dropped)
	res := a.recorder.res
	return begun, errors.Join(err, failed, a.files.close(res.Service, a.began, a.began.Add(res.Elapsed)))
}

// measure begins the measured part, unless it has begun.
func (a *attack) measure() {
	if !a.measuring {
		a.measuring = true
		a.recorder.begin()
	}
}

func (a *attack) record(ctx context.Context, r *vegeta.Result) error {
	outcome, gid, kind := classify(r, a.gids.of(r.Seq))
	due := a.recorder.due(r)
	if due >= 0 {
		a.measure() // this result may be seen before the timer
	}
	late := a.recorder.add(r, due, a.stopped, outcome, kind)
	a.observer.RequestDone(Answer{outcome, kind, r.Latency + late, r.Latency})
	if kind == "" {
		if err := a.acks.add(outcome, r.Timestamp, r.End(), gid); err != nil {
			return err
		}
		if at := a.begunAt.Load(); at > 0 && int64(r.End().Sub(a.began)) > at {
			a.recorder.res.Costed++
		}
	} else if ctx.Err() == nil {
		if err := a.recorder.allFailed(false); err != nil {
			return err
		}
	}
	if due < 0 {
		return nil
	}
	return a.files.add(r)
}

// tick ends an interval and reports progress.
func (a *attack) tick() error {
	now := time.Now()
	i, err := a.recorder.endInterval(now)
	if a.cfg.Progress != nil {
		p := Progress{
			WarmingUp: !a.measuring, Elapsed: now.Sub(a.start), Planned: a.cfg.Warmup,
			Requests: a.recorder.warm.Requests, Errors: a.recorder.warm.Errors,
			PerS: i.PerS(), P50: i.P50, P99: i.P99,
		}
		if a.measuring {
			p.Elapsed, p.Planned = now.Sub(a.began), a.cfg.Duration
			p.Requests, p.Errors = a.recorder.res.Requests, a.recorder.res.Errors
		}
		a.cfg.Progress(p)
	}
	return err
}
