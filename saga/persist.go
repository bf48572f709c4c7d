package saga

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// Why a decision is not written, beside the store's own errors.
var (
	errTakenOver = errors.New("taken over") // another coordinator has raised the epoch, or the lease was released
	errChanged   = errors.New("changed by a control command")
	errMustWait  = errors.New("the store did not answer at once")
)

// write makes a decision durable and sets the run to its state. If mayWait is false and
// the first attempt fails, it returns errMustWait; the next call continues after that
// attempt.
func (c *Coordinator) write(ctx context.Context, r *run, d *machine.Decision, mayWait bool) error {
	if d.Change {
		d.State.Busy = r.calls.busyFor()
		t := c.transition(r, d)
		err := r.writeErr
		if err == nil {
			err = c.commit.Apply(ctx, t)
		}
		if r.writeErr = nil; err != nil {
			if !mayWait {
				r.writeErr = err
				return errMustWait
			}
			want := d.State
			want.Calling = withoutAll(d.State.Calling, d.Calls)
			if err := c.writeAgain(r, t, want, err); err != nil {
				return err
			}
		}
	}
	if r.state.Status == store.StatusAborting {
		d.State.Aborted = r.state.Aborted // to which writeAgain may have added
	}
	c.setState(r, d.State)
	return nil
}

// transition is what is written of a decision.
func (c *Coordinator) transition(r *run, d *machine.Decision) *store.Transition {
	t := &store.Transition{
		GID: r.saga.GID, Epoch: r.epoch, Owner: c.owner, From: r.state.Status, To: d.State.Status,
		Marks: d.Marks, Due: d.Deferred, Release: d.Deferred > 0,
	}
	if t.Release && !r.abortAt.IsZero() && t.To == store.StatusSubmitted {
		t.Due = max(min(t.Due, time.Until(r.abortAt)), time.Millisecond)
		for i := range d.State.Retries { // or a coordinator that claims it a moment early would call them
			d.State.Retries[i].Wait += d.Deferred - t.Due
		}
	}
	if d.Note {
		t.Note = d.State.Note()
	}
	return t
}

// Pauses between attempts while the store does not answer.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// writeAgain writes t, of which one attempt has failed, until the store has it: the events
// behind it have happened, and would otherwise have to happen again. The saga is then as
// want says. Each attempt follows a look at the record, since an earlier one may have been
// applied and only its answer lost.
//
// After errChanged r has the state that a control command has written, with the calls
// under way that want has. Any other error means that writing t is pointless. An attempt
// is not cut off when the coordinator stops: it can only release what it knows.
func (c *Coordinator) writeAgain(r *run, t *store.Transition, want machine.State, failure error) error {
	unsure := false // an earlier attempt may have been applied
	for pause := firstPause; failure != nil; pause = min(2*pause, lastPause) {
		if errors.Is(failure, store.ErrClosed) || errors.Is(failure, store.ErrInvalid) || errors.Is(failure, store.ErrUnreadable) {
			return failure
		}
		refused := errors.Is(failure, store.ErrConflict) || errors.Is(failure, store.ErrNotFound)
		if !refused { // the store is away or overloaded
			unsure = true
			select {
			case <-time.After(pause):
				atomic.AddInt64(&c.stats.StoreErrors, 1)
			case <-c.ctx.Done():
				return c.ctx.Err()
			}
		}
		record, err := c.store.Get(c.ctx, t.GID)
		if err == nil && c.isOtherSaga(r, record) {
			err = fmt.Errorf("%w: its gid is another saga's", store.ErrNotFound)
		}
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case errors.Is(err, store.ErrNotFound):
			return c.onNotFound(r, t, unsure, err)
		case err != nil:
			failure = err
			continue
		case !r.lacks(record, c.owner):
			r.lostWrites = false
		default:
			if failure = c.restore(r, record); failure != nil {
				continue
			}
			if record.Epoch == t.Epoch && record.Owner == c.owner && !record.Status.Final() {
				if r.state.Status == store.StatusAborting && t.Note != "" {
					want.Aborted = r.state.Aborted
					restored := *t // t itself may still be on its way
					restored.Note = want.Note()
					t = &restored
				}
				failure = c.commit.Apply(context.Background(), t)
				continue
			}
		}
		if applied, err := c.isApplied(r, t, want, record, unsure, refused); applied || err != nil {
			return err
		}
		failure = c.commit.Apply(context.Background(), t)
	}
	return nil
}

// isApplied reports whether record shows that an attempt to write t was applied. An error
// means that no further attempt can be.
func (c *Coordinator) isApplied(r *run, t *store.Transition, want machine.State, record store.Record, unsure, refused bool) (bool, error) {
	switch {
	case record.Epoch != t.Epoch && record.Owner == "":
		return false, fmt.Errorf("%w, and deferred since", errTakenOver)
	case record.Epoch != t.Epoch:
		return false, fmt.Errorf("%w by %s", errTakenOver, record.Owner)
	case t.Release && record.Owner == "" && unsure:
		return true, nil // nobody else releases our lease
	case isOthers(record, c.owner):
		return false, fmt.Errorf("%w by %s under our own epoch", errTakenOver, record.Owner)
	case record.Owner != c.owner:
		return false, fmt.Errorf("%w: its lease was released", errTakenOver)
	case record.Status == want.Status && record.Marks == want.Marks && t.Due == 0:
		return true, nil // under our epoch nobody else marks, or wants the same
	case record.Status != t.From:
		if err := c.applyStored(r, record, want.Calling); err != nil {
			return false, err
		}
		return false, errChanged
	case refused:
		return false, fmt.Errorf("%w: it is %v with marks %s under our own epoch", errTakenOver, record.Status, record.Marks)
	}
	return false, nil
}
