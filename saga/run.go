package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// run is one saga under way in this coordinator. Its times are readings of our
// monotonic clock.
type run struct {
	saga     *Saga
	plan     machine.Plan
	epoch    uint32
	state    machine.State // as the store holds it
	leaseEnd time.Time
	created  time.Time
	abortAt  time.Time // when the saga's timeout ends; zero: never

	recordCreated time.Time // Created of the record, by the store's clock; zero: the saga was created here
	onFinish      func()    // called when the run is over; may be nil
	// beforeCalls, if set, is called before branches are. If it returns a delay, the
	// saga is deferred instead.
	beforeCalls func(calls []store.Branch) time.Duration

	events     []machine.Event // since state was written
	writeErr   error           // of the first attempt to write the decision on events
	gone       error           // why the saga is no longer in the store; nil: it is there
	lostWrites bool            // the store has lost writes, and they are not known to be restored

	changed chan struct{} // capacity 1: a control command has changed the saga
	calls   calls
}

// newRun makes a run of a saga that was created age before it was leased.
func (c *Coordinator) newRun(s *Saga, epoch uint32, state machine.State, leased time.Time, age time.Duration) *run {
	r := &run{
		saga: s, plan: s.Plan(&c.cfg), epoch: epoch, state: state,
		leaseEnd: leased.Add(c.cfg.Lease), created: leased.Add(-age), changed: make(chan struct{}, 1),
	}
	if state.Busy > 0 {
		r.calls.busyUntil = leased.Add(state.Busy)
	}
	if s.Timeout > 0 {
		r.abortAt = r.created.Add(s.Timeout)
	}
	return r
}

// drive takes the saga from decision to decision. It returns true when the run is over:
// the saga has ended or is deferred, another coordinator has taken it over, or this one
// is stopping.
//
// If mayWait is false, it returns false before it would have to wait for more than one
// answer of the store. A second call, with mayWait, continues from there. So a saga
// without calls runs in the goroutine of its client. That saves 2 of its 7 µs here:
// starting a goroutine and waiting for it.
func (c *Coordinator) drive(ctx context.Context, r *run, mayWait bool) (over bool) {
	over = true // also if the store panics
	defer func() {
		if over {
			r.calls.stop()
			c.finish(r)
		}
	}()
	if mayWait && r.writeErr == nil && r.timedOut() { // a decision that is half written stays as it is
		r.events = append(r.events, timeout(r.saga))
	}
	for {
		d := machine.Decide(&r.plan, r.state, r.events...)
		if !mayWait && c.mustWait(r, &d) {
			return false
		}
		err := c.write(ctx, r, &d, mayWait)
		switch {
		case errors.Is(err, errMustWait):
			return false
		case err == nil && mayWait && len(d.Calls) > 0:
			if r.beforeCalls != nil {
				if delay := r.beforeCalls(d.Calls); delay > 0 {
					atomic.AddInt64(&c.stats.Deferred, 1)
					c.releaseLease(r, delay)
					return true
				}
			}
			err = c.renew(r, d.Calls)
		}
		switch {
		case errors.Is(err, errChanged) && !r.state.Status.Final():
			r.events = r.events[:0] // decide anew, from the state that was found
			continue
		case err != nil && !errors.Is(err, errChanged):
			c.abandon(r, err)
			return true
		case r.state.Status.Final():
			c.stats.ended(r.state.Status)
			return true
		case d.Deferred > 0:
			atomic.AddInt64(&c.stats.Deferred, 1)
			return true
		}
		if r.events = c.startCalls(r, d.Calls, r.events[:0]); len(r.events) > 0 {
			continue
		}
		if err := c.awaitEvents(r); err != nil {
			c.abandon(r, err)
			return true
		}
	}
}

// mustWait reports whether a decision leads to waiting for branches or for time to pass,
// or the run has lasted so long that the client's MaxWait matters.
func (c *Coordinator) mustWait(r *run, d *machine.Decision) bool {
	return d.Deferred > 0 || slices.ContainsFunc(d.Calls, func(b store.Branch) bool { return r.saga.url(b) != "" }) ||
		r.timedOut() || c.ctx.Err() != nil ||
		d.Change && time.Until(r.leaseEnd) < c.cfg.Lease-c.cfg.PollInterval
}

// awaitEvents waits until something happens to the saga, and adds it to the events. It
// adds none if a control command has changed the saga's state.
func (c *Coordinator) awaitEvents(r *run) error {
	var timedOut <-chan time.Time
	if !r.abortAt.IsZero() && r.state.Status == store.StatusSubmitted {
		timer := time.NewTimer(time.Until(r.abortAt))
		defer timer.Stop()
		timedOut = timer.C
	}
	select {
	case a := <-r.calls.answers:
		r.events = r.calls.drain(append(r.events, r.calls.take(a)))
	case <-timedOut:
		r.events = append(r.events, timeout(r.saga))
	case <-r.changed:
		return c.refresh(r)
	case <-c.ctx.Done():
		if r.events = r.calls.stop(); len(r.events) == 0 {
			return c.ctx.Err()
		}
	}
	return nil
}

func (r *run) timedOut() bool { return !r.abortAt.IsZero() && time.Until(r.abortAt) <= 0 }

func timeout(s *Saga) machine.Event {
	return machine.Event{Reason: fmt.Sprintf("not done within %v", s.Timeout)}
}

// refresh reads the saga after a control command. What it cannot read, or what the store
// has lost, the next write finds out.
func (c *Coordinator) refresh(r *run) error {
	record, err := c.store.Get(c.ctx, r.saga.GID)
	if err == nil && record.Epoch == r.epoch && record.Owner == c.owner && record.Status != r.state.Status && !r.lacks(record, c.owner) {
		return c.applyStored(r, record, r.state.Calling)
	}
	return nil
}

// applyStored sets the run to the state of a record under our own epoch: a control
// command has changed it. Calls under way stay so.
func (c *Coordinator) applyStored(r *run, record store.Record, calling []store.Branch) error {
	info, err := Read(record)
	if err != nil {
		return err
	}
	info.State.Calling = calling
	c.setState(r, info.State)
	return nil
}

// setState follows every change in the store. The coordinator remembers an abort when
// the run is over, too.
func (c *Coordinator) setState(r *run, to machine.State) {
	if r.state.Status == store.StatusSubmitted && (to.Status == store.StatusAborting || to.Status == store.StatusFailed) {
		c.aborts.add(r.saga.GID, to, c.store.Retention())
	}
	r.state = to
}

// renew makes sure that the lease outlasts the calls that follow, and that the
// coordinator is not stopping.
func (c *Coordinator) renew(r *run, calls []store.Branch) error {
	longest := time.Duration(0)
	for _, b := range calls {
		if r.saga.url(b) != "" {
			longest = max(longest, c.requestTimeout(r.saga, b))
		}
	}
	if len(calls) > 0 && calls[0].IsCompensation() { // so are the others
		longest += r.calls.busyFor() // which they wait for
	}
	// More than once if need be: while the store is away the new lease ends, too.
	for time.Until(r.leaseEnd) <= longest+c.cfg.Lease/10 {
		lease := max(c.cfg.Lease, 2*longest)
		began := time.Now()
		want := r.state
		want.Calling = withoutAll(r.state.Calling, calls)
		t := &store.Transition{GID: r.saga.GID, Epoch: r.epoch, Owner: c.owner, From: r.state.Status, To: r.state.Status, Due: lease}
		if err := c.commit.Apply(context.Background(), t); err != nil {
			if err = c.writeAgain(r, t, want, err); err != nil {
				return err
			}
		}
		r.leaseEnd = began.Add(lease)
	}
	return c.ctx.Err()
}

// requestTimeout bounds one call of a branch.
func (c *Coordinator) requestTimeout(s *Saga, b store.Branch) time.Duration {
	return cmp.Or(s.Steps[b.Step()].Timeout, s.RequestTimeout, c.cfg.RequestTimeout)
}

// abandon ends a run that did not end its saga.
func (c *Coordinator) abandon(r *run, why error) {
	r.calls.stop()
	if c.ctx.Err() != nil { // we are stopping
		due := time.Duration(dueNow)
		if busy := time.Until(r.calls.cutOffBusyUntil); busy > 0 {
			due = ceilMillis(busy)
		}
		c.releaseLease(r, due)
		return
	}
	if r.gone == nil || c.store.Retention() == 0 { // else the store has lost it, and nobody took it over
		atomic.AddInt64(&c.stats.Lost, 1)
	}
	c.log.Warn("the saga is no longer run here", "gid", r.saga.GID, "reason", why)
}

// dueNow is the due time, as in store.Transition, of a saga that anyone may claim now.
const dueNow = -1

// releaseLease lets others claim the saga when it is due, before the lease ends. It is
// not due while a branch may be at work whose call was cut off. If the release fails, they
// claim the saga when the lease ends.
func (c *Coordinator) releaseLease(r *run, due time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		t := &store.Transition{
			GID: r.saga.GID, Epoch: r.epoch, Owner: c.owner, From: r.state.Status, To: r.state.Status, Due: due, Release: true,
		}
		if r.state.Busy = r.calls.busyFor(); r.state.Busy > 0 { // for an abort before it is due
			t.Note = r.state.Note()
		}
		if !errors.Is(c.commit.Apply(ctx, t), store.ErrConflict) {
			return
		}
		record, err := c.store.Get(ctx, r.saga.GID)
		aborted := err == nil && record.Epoch == r.epoch && record.Owner == c.owner &&
			r.state.Status == store.StatusSubmitted && record.Status == store.StatusAborting
		if !aborted || c.applyStored(r, record, nil) != nil {
			return
		}
	}
}
