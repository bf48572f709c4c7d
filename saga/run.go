package saga

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/store"
)

// run is one saga under way in this coordinator.
type run struct {
	saga    *Saga
	plan    Plan
	epoch   uint32
	state   State
	until   time.Time // when the lease ends, by our clock's monotonic reading
	created time.Time // by the same
	record  time.Time // Created of its record; zero: it was created here
	abortAt time.Time // when it is to be aborted, by the same; zero: never
	after   func()    // called when the run is over; may be nil
	// moveOn, if set, is asked before branches are called, and may want the saga
	// deferred; see recovery.
	moveOn func(calls []store.Branch) time.Duration

	events []Event // that happened since state was written
	failed error   // what became of the first attempt to write what they lead to; nil: there was none
	gone   error   // the saga is not in the store any more; nil: it is
	behind bool    // the store was found to have lost writes, and is not known to have them again

	looked chan struct{} // of one: somebody else has changed the saga
	calls  calls
}

// newRun is a saga that is about to be run, of which age is how long ago it was
// created.
func (c *Coordinator) newRun(s *Saga, epoch uint32, state State, leased time.Time, age time.Duration) *run {
	r := &run{
		saga: s, plan: s.plan(&c.cfg), epoch: epoch, state: state,
		until: leased.Add(c.cfg.Lease), created: leased.Add(-age), looked: make(chan struct{}, 1),
	}
	if state.Busy > 0 {
		r.calls.busy = leased.Add(state.Busy)
	}
	if s.Timeout > 0 {
		r.abortAt = r.created.Add(s.Timeout)
	}
	return r
}

// What keeps a decision from being written, beside the store's own errors.
var (
	errTakenOver = errors.New("taken over") // another coordinator has raised the epoch, or it was let go
	errDemanded  = errors.New("changed on demand")
)

// drive takes the saga from decision to decision until it has ended, is put
// off, is taken over, or the coordinator lets go.
func (c *Coordinator) drive(r *run) {
	defer c.over(r)
	defer r.calls.stop()
	events := r.events
	if r.failed == nil && r.timedOut() { // what failed is decided on already
		events = append(events, timeout(r.saga))
	}
	for {
		d := Decide(&r.plan, r.state, events...)
		err := c.write(r, &d)
		if err == nil && len(d.Calls) > 0 {
			if r.moveOn != nil {
				if delay := r.moveOn(d.Calls); delay > 0 {
					c.stats.putOff.Add(1)
					c.handBack(r, delay)
					return
				}
			}
			err = c.renew(r, d.Calls)
		}
		switch {
		case errors.Is(err, errDemanded) && !r.state.Status.Final():
			events = events[:0] // r.state is what it was changed to: decide anew
			continue
		case errors.Is(err, errDemanded):
		case err != nil:
			c.leave(r, err)
			return
		}
		if r.state.Status.Final() {
			c.stats.ended(r.state.Status)
			return
		}
		if d.PutOff > 0 {
			c.stats.putOff.Add(1)
			return
		}
		events = c.callAll(r, d.Calls, events[:0])
		if len(events) > 0 {
			continue
		}
		if events, err = c.next(r, events); err != nil {
			c.leave(r, err)
			return
		}
	}
}

// next waits for what happens next.
func (c *Coordinator) next(r *run, events []Event) ([]Event, error) {
	var timedOut <-chan time.Time
	if !r.abortAt.IsZero() && r.state.Status == store.StatusSubmitted {
		timer := time.NewTimer(time.Until(r.abortAt))
		defer timer.Stop()
		timedOut = timer.C
	}
	select {
	case a := <-r.calls.answers:
		events = r.calls.more(append(events, r.calls.take(a)))
	case <-timedOut:
		events = append(events, timeout(r.saga))
	case <-r.looked:
		if err := c.look(r); err != nil {
			return nil, err
		}
	case <-c.ctx.Done():
		if events = r.calls.stop(); len(events) == 0 {
			return nil, c.ctx.Err()
		}
	}
	return events, nil
}

func (r *run) timedOut() bool { return !r.abortAt.IsZero() && time.Until(r.abortAt) <= 0 }

func timeout(s *Saga) Event { return Event{Reason: fmt.Sprintf("not done within %v", s.Timeout)} }

// look reads what somebody else, who has the right to, may have made of the saga.
func (c *Coordinator) look(r *run) error {
	record, err := c.store.Get(c.ctx, r.saga.GID)
	if err != nil {
		return nil // the next write will find out
	}
	if record.Epoch == r.epoch && record.Owner == c.owner && record.Status != r.state.Status && !r.lacks(record) {
		return c.adopt(r, record, r.state.Calling)
	}
	return nil // what the store lacks the next write finds out
}

// adopt moves the run to where somebody else has moved the saga under our own
// epoch: to aborting, or to its end. Branches under way stay so.
func (c *Coordinator) adopt(r *run, record store.Record, calling []store.Branch) error {
	info, err := Read(record)
	if err != nil {
		return err
	}
	info.State.Calling = calling
	c.move(r, info.State)
	return nil
}

// move has the run know what is written. Of an abort this process knows also when
// the run is over.
func (c *Coordinator) move(r *run, to State) {
	if r.state.Status == store.StatusSubmitted && (to.Status == store.StatusAborting || to.Status == store.StatusFailed) {
		c.aborts.add(r.saga.GID, to, c.store.Retention())
	}
	r.state = to
}

// renew makes sure that the lease outlasts the calls to come, and that there are
// to be any.
func (c *Coordinator) renew(r *run, calls []store.Branch) error {
	longest := time.Duration(0)
	for _, b := range calls {
		if r.saga.url(b) != "" {
			longest = max(longest, c.limit(r.saga, b))
		}
	}
	if len(calls) > 0 && calls[0].IsCompensation() { // they are of one kind
		longest += r.calls.left() // for which they wait
	}
	// Again if need be: while the store is away the new lease ends, too.
	for time.Until(r.until) <= longest+c.cfg.Lease/10 {
		lease := max(c.cfg.Lease, 2*longest)
		began := time.Now()
		before := r.state
		before.Calling = withoutAll(r.state.Calling, calls)
		t := &store.Transition{GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: r.state.Status, Due: lease}
		if err := c.persist(r, t, before); err != nil {
			return err
		}
		r.until = began.Add(lease)
	}
	return c.ctx.Err()
}

// limit bounds one call of a branch.
func (c *Coordinator) limit(s *Saga, b store.Branch) time.Duration {
	switch step := &s.Steps[b.Step()]; {
	case step.Timeout > 0:
		return step.Timeout
	case s.RequestTimeout > 0:
		return s.RequestTimeout
	default:
		return c.cfg.RequestTimeout
	}
}

// transition is what is written of a decision.
func (r *run) transition(d *Decision) *store.Transition {
	t := &store.Transition{
		GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: d.State.Status,
		Marks: d.Marks, Due: d.PutOff, Release: d.PutOff > 0,
	}
	if t.Release && !r.abortAt.IsZero() && t.To == store.StatusSubmitted {
		t.Due = max(min(t.Due, time.Until(r.abortAt)), time.Millisecond)
		for i := range d.State.Holds { // or what is held would be called by whoever takes it up a moment early
			d.State.Holds[i].Wait += d.PutOff - t.Due
		}
	}
	if d.Note {
		t.Note = d.State.note()
	}
	return t
}

// write makes a decision durable and moves the run to it.
func (c *Coordinator) write(r *run, d *Decision) error {
	if d.Change {
		d.State.Busy = r.calls.left()
		t := r.transition(d)
		before := d.State
		before.Calling = withoutAll(d.State.Calling, d.Calls)
		if err := c.persist(r, t, before); err != nil {
			return err
		}
	}
	if r.state.Status == store.StatusAborting {
		d.State.Aborted = r.state.Aborted // to which persist may have added
	}
	c.move(r, d.State)
	return nil
}

// Pauses between attempts while the store does not answer.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// persist writes t, after which the saga is as want says. While the store is
// away it tries again: what t rests on has happened, and would otherwise have
// to happen again. Before each further attempt it looks whether an earlier one
// was applied and only its answer was lost. An error means that there is no
// point in writing it again; after errDemanded r is in the state that was
// demanded, with the branches under way that want has. An attempt under way is
// not cut off when the coordinator lets go: we could not hand back what we do not
// know.
func (c *Coordinator) persist(r *run, t *store.Transition, want State) error {
	unsure := false // whether an earlier attempt may have been applied
	failure := r.failed
	if r.failed = nil; failure == nil {
		failure = c.commit.Apply(context.Background(), t)
	}
	for pause := firstPause; failure != nil; pause = min(2*pause, lastPause) {
		if errors.Is(failure, store.ErrClosed) || errors.Is(failure, store.ErrInvalid) || errors.Is(failure, store.ErrUnreadable) {
			return failure
		}
		refused := errors.Is(failure, store.ErrConflict) || errors.Is(failure, store.ErrNotFound)
		if !refused { // the store is away or overloaded
			unsure = true
			select {
			case <-time.After(pause):
				c.stats.storeErrors.Add(1)
			case <-c.ctx.Done():
				return c.ctx.Err()
			}
		}
		record, err := c.store.Get(c.ctx, t.GID)
		if err == nil && c.another(r, record) {
			err = fmt.Errorf("%w: its gid is another saga's", store.ErrNotFound)
		}
		if lacks := err == nil && r.lacks(record); err == nil && !lacks {
			r.behind = false
		} else if lacks {
			if failure = c.restore(r, record); failure != nil {
				continue
			}
			if record.Epoch == t.Epoch && record.Owner == c.owner && !record.Status.Final() {
				if r.state.Status == store.StatusAborting && t.Note != "" {
					want.Aborted = r.state.Aborted
					again := *t // which may still be on its way
					again.Note = want.note()
					t = &again
				}
				failure = c.commit.Apply(context.Background(), t)
				continue
			}
		}
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case errors.Is(err, store.ErrNotFound) && t.To.Final() && unsure && c.store.Retention() == 0 && time.Now().Before(r.until):
			return nil // it is not kept, and nobody else ends it under our lease; see ForceStop
		case errors.Is(err, store.ErrNotFound):
			r.gone = c.gone(r, t, unsure, err)
			return r.gone
		case err != nil:
			failure = err
			continue
		case record.Epoch != t.Epoch && record.Owner == "":
			return fmt.Errorf("%w, and deferred since", errTakenOver)
		case record.Epoch != t.Epoch:
			return fmt.Errorf("%w by %s", errTakenOver, record.Owner)
		case t.Release && record.Owner == "" && unsure:
			return nil // nobody else releases what is ours
		case record.Owner != c.owner:
			return fmt.Errorf("%w: it was let go", errTakenOver)
		case record.Status == want.Status && record.Marks == want.Marks && t.Due == 0:
			return nil // under our epoch nobody else marks, or wants the same
		case record.Status != t.From:
			if err := c.adopt(r, record, want.Calling); err != nil {
				return err
			}
			return errDemanded
		case refused:
			return fmt.Errorf("%w: it is %v with marks %s under our own epoch", errTakenOver, record.Status, record.Marks)
		}
		failure = c.commit.Apply(context.Background(), t)
	}
	return nil
}

// leave is the end of a run that did not end its saga.
func (c *Coordinator) leave(r *run, why error) {
	r.calls.stop()
	if c.ctx.Err() != nil { // we are told to stop
		due := time.Duration(atOnce)
		if cut := time.Until(r.calls.after); cut > 0 {
			due = upToMillis(cut)
		}
		c.handBack(r, due)
		return
	}
	if r.gone == nil || c.store.Retention() == 0 { // or the store has lost it, and nobody took it over
		c.stats.lost.Add(1)
	}
	c.log.Warn("left a saga", "gid", r.saga.GID, "why", why)
}

// atOnce is the due time, as in store.Transition, of what anyone may claim now.
const atOnce = -1

// handBack lets others take over the saga before the lease ends, when it is due:
// not while a branch may be at work whose call was cut off. If it fails they will
// when the lease ends.
func (c *Coordinator) handBack(r *run, due time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		t := &store.Transition{
			GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: r.state.Status, Due: due, Release: true,
		}
		if r.state.Busy = r.calls.left(); r.state.Busy > 0 { // for whoever is asked to abort it before it is due
			t.Note = r.state.note()
		}
		if !errors.Is(c.commit.Apply(ctx, t), store.ErrConflict) {
			return
		}
		record, err := c.store.Get(ctx, r.saga.GID)
		aborted := err == nil && record.Epoch == r.epoch && record.Owner == c.owner &&
			r.state.Status == store.StatusSubmitted && record.Status == store.StatusAborting
		if !aborted || c.adopt(r, record, nil) != nil {
			return
		}
	}
}
