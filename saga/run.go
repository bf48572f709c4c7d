package saga

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sagabench/store"
)

// run is one saga under way in this coordinator.
type run struct {
	saga   *Saga
	epoch  uint32
	state  State
	reason string
	until  time.Time // when the lease ends, by our clock's monotonic reading
	after  func()    // called when the run is over; may be nil
}

// errTakenOver: another coordinator has raised the epoch, or the saga is gone.
var errTakenOver = errors.New("taken over")

// drive takes the saga from decision to decision until it has ended, is put
// off, is taken over, or the coordinator lets go.
func (c *Coordinator) drive(r *run) {
	var result *Result
	defer func() {
		c.stats.inFlight.Add(-1)
		c.sagas.end(r.saga.GID, result)
		if r.after != nil {
			r.after()
		}
	}()
	c.stats.inFlight.Add(1)

	for event := (Event{}); ; {
		d := Decide(r.state, event, c.cfg.RetryInterval)
		if err := c.write(r, d); err != nil {
			c.leave(r, err)
			return
		}
		if r.state.Status.Final() {
			c.stats.ended(r.state.Status)
			end := resultOf(r.state.Status, r.reason)
			result = &end
			return
		}
		if d.Call == NoCall {
			c.stats.putOff.Add(1)
			return
		}
		if err := c.renew(r); err != nil {
			c.leave(r, err)
			return
		}
		event = c.call(r, d.Call)
		if err := c.ctx.Err(); err != nil && event.Outcome == Unknown { // the call was cut off
			c.leave(r, err)
			return
		}
	}
}

// call asks a branch. Its answer counts only if the saga is still ours, which
// the next write finds out.
func (c *Coordinator) call(r *run, b store.Branch) Event {
	url := r.saga.url(b)
	if url == "" {
		return Event{Answered: true, Branch: b, Outcome: Succeeded}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.RequestTimeout)
	defer cancel()
	outcome, reason := c.caller.Call(ctx, Call{
		GID: r.saga.GID, Branch: b, URL: url, Payload: r.saga.Steps[b.Step()].Payload,
	})
	if reason != "" {
		// A store takes no zero byte and no more than so many. Part of this was
		// written by the branch, and must not keep the saga from being written.
		reason = fmt.Sprintf("step %d, %s: %s", b.Step()+1, Op(b), strings.ReplaceAll(reason, "\x00", ""))
		reason = strings.ToValidUTF8(reason[:min(len(reason), store.MaxReasonBytes)], "")
	}
	return Event{Answered: true, Branch: b, Outcome: outcome, Reason: reason}
}

// renew makes sure that the lease outlasts the call to come, and that there is
// to be one.
func (c *Coordinator) renew(r *run) error {
	// Again if need be: while the store is away the new lease ends, too.
	for time.Until(r.until) <= c.cfg.RequestTimeout+c.cfg.Lease/10 {
		began := time.Now()
		if err := c.write(r, Decision{State: r.state, Change: true, Due: c.cfg.Lease}); err != nil {
			return err
		}
		r.until = began.Add(c.cfg.Lease)
	}
	return c.ctx.Err()
}

// write makes a decision durable and moves the run to it.
func (c *Coordinator) write(r *run, d Decision) error {
	if d.Change {
		t := &store.Transition{
			GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: d.State.Status,
			Marks: d.Marks, Due: d.Due, Reason: d.Reason,
		}
		if err := c.persist(t, d.State, r.until); err != nil {
			return err
		}
	}
	r.state = d.State
	if d.Reason != "" {
		r.reason = d.Reason
	}
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
// point in writing it again. An attempt under way is not cut off when the
// coordinator lets go: we could not hand back what we do not know.
func (c *Coordinator) persist(t *store.Transition, want State, until time.Time) error {
	unsure := false // whether an earlier attempt may have been applied
	failure := c.commit.Apply(context.Background(), t)
	for pause := firstPause; failure != nil; pause = min(2*pause, lastPause) {
		if errors.Is(failure, store.ErrClosed) || errors.Is(failure, store.ErrInvalid) {
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
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case errors.Is(err, store.ErrNotFound) && t.To.Final() && unsure && time.Now().Before(until):
			return nil // it is not kept, and nobody else can have ended it under our lease
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("%w: it is gone", errTakenOver)
		case err != nil:
			failure = err
			continue
		case record.Epoch != t.Epoch || record.Owner != c.owner:
			return fmt.Errorf("%w by %s", errTakenOver, record.Owner)
		case record.Status == want.Status && record.Marks == want.Marks && t.Due == 0:
			return nil // under our epoch nobody else writes: it was us
		case refused:
			return fmt.Errorf("%w: it is %v with marks %s under our own epoch", errTakenOver, record.Status, record.Marks)
		}
		failure = c.commit.Apply(context.Background(), t)
	}
	return nil
}

// leave is the end of a run that did not end its saga.
func (c *Coordinator) leave(r *run, why error) {
	if c.ctx.Err() != nil { // we are told to stop
		c.handBack(r, atOnce)
		return
	}
	c.stats.lost.Add(1)
	c.log.Warn("left a saga", "gid", r.saga.GID, "why", why)
}

// atOnce is the due time, as in store.Transition, of what anyone may claim now.
const atOnce = -1

// handBack lets others take over the saga before the lease ends. If it fails
// they will when it does.
func (c *Coordinator) handBack(r *run, due time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.commit.Apply(ctx, &store.Transition{
		GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: r.state.Status, Due: due,
	})
}
