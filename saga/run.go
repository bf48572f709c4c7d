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
			result = r.result()
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
		if err := c.ctx.Err(); err != nil { // the answer may be that the call was cut off
			c.leave(r, err)
			return
		}
	}
}

func (r *run) result() *Result {
	if r.state.Status == store.StatusSucceeded {
		return &Result{Status: r.state.Status}
	}
	return &Result{Status: r.state.Status, Reason: r.reason}
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
		reason = fmt.Sprintf("step %d, %s: %s", b.Step()+1, Op(b), reason)
		reason = reason[:min(len(reason), store.MaxReasonBytes)]
	}
	return Event{Answered: true, Branch: b, Outcome: outcome, Reason: reason}
}

// renew makes sure that the lease outlasts the call to come.
func (c *Coordinator) renew(r *run) error {
	if time.Until(r.until) > c.cfg.RequestTimeout+c.cfg.Lease/10 {
		return nil
	}
	began := time.Now()
	if err := c.write(r, Decision{State: r.state, Change: true, Due: c.cfg.Lease}); err != nil {
		return err
	}
	r.until = began.Add(c.cfg.Lease)
	return nil
}

// write makes a decision durable and moves the run to it. While the store is
// away it tries again: what the decision rests on has happened, and would
// otherwise have to happen again.
func (c *Coordinator) write(r *run, d Decision) error {
	if d.Change {
		t := &store.Transition{
			GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: d.State.Status,
			Marks: d.Marks, Due: d.Due, Reason: d.Reason,
		}
		for written := false; !written; {
			err := c.commit.Apply(c.ctx, t)
			if err == nil {
				break
			}
			if written, err = c.look(t, d.State, err); err != nil {
				return err
			}
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

// look finds out, after a write of ours met an error, whether it was applied
// all the same: the answer may have been lost on its way. An error means that
// there is no point in writing it again.
func (c *Coordinator) look(t *store.Transition, want State, failure error) (written bool, err error) {
	if errors.Is(failure, store.ErrClosed) || errors.Is(failure, store.ErrInvalid) {
		return false, failure
	}
	refused := errors.Is(failure, store.ErrConflict) || errors.Is(failure, store.ErrNotFound)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if !refused { // the store is away or overloaded
			c.stats.storeErrors.Add(1)
			select {
			case <-time.After(pause):
			case <-c.ctx.Done():
				return false, c.ctx.Err()
			}
		}
		record, err := c.store.Get(c.ctx, t.GID)
		switch {
		case c.ctx.Err() != nil:
			return false, c.ctx.Err()
		case errors.Is(err, store.ErrClosed):
			return false, err
		case errors.Is(err, store.ErrNotFound) && t.To.Final():
			return true, nil // without retention a saga is gone as soon as it has ended
		case errors.Is(err, store.ErrNotFound):
			return false, fmt.Errorf("%w: it is gone", errTakenOver)
		case err != nil:
			refused = false
		case record.Epoch != t.Epoch:
			return false, fmt.Errorf("%w by %s", errTakenOver, record.Owner)
		case record.Status == want.Status && record.Marks == want.Marks && t.Due == 0:
			return true, nil // under our epoch nobody else writes: it was us
		case refused:
			return false, fmt.Errorf("%w: it is %v with marks %s under our own epoch", errTakenOver, record.Status, record.Marks)
		default:
			return false, nil
		}
	}
}

// leave is the end of a run that did not end its saga.
func (c *Coordinator) leave(r *run, why error) {
	if c.ctx.Err() == nil {
		c.stats.lost.Add(1)
		c.log.Warn("left a saga", "gid", r.saga.GID, "why", why)
		return
	}
	// We are told to stop: hand the saga back. If that fails the lease ends by itself.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.commit.Apply(ctx, &store.Transition{
		GID: r.saga.GID, Epoch: r.epoch, From: r.state.Status, To: r.state.Status, Due: -1,
	})
}
