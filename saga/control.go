package saga

import (
	"context"
	"errors"
	"fmt"

	"sagabench/saga/machine"
	"sagabench/store"
)

// Abort aborts a saga that has not succeeded yet. After nil the saga cannot succeed any
// more: every action that may have been started is compensated, even one under way. If the
// saga is aborting or has failed, nothing changes. If it has succeeded, the error wraps
// ErrEnded.
func (c *Coordinator) Abort(ctx context.Context, gid, why string) error {
	return c.command(ctx, gid, func(info Info) *store.Transition {
		if info.Status != store.StatusSubmitted {
			return makeDue(info)
		}
		state := machine.State{Aborted: machine.Reason(why), RetryReason: info.State.RetryReason, Busy: info.State.Busy}
		t := &store.Transition{To: store.StatusAborting, Note: state.Note()}
		if info.Owner == "" { // nobody runs it
			t.Due, t.Release = dueNow, true
		}
		return t
	}, store.StatusFailed)
}

// ForceStop declares a saga failed without compensating anything: the effects of its
// actions remain. It is for a saga that can be undone only by hand. If the saga has failed,
// nothing changes. If it has succeeded, the error wraps ErrEnded. Where finished sagas are
// not kept, the coordinator that runs the saga ends it, or the one that takes it over.
func (c *Coordinator) ForceStop(ctx context.Context, gid, why string) error {
	return c.command(ctx, gid, func(info Info) *store.Transition {
		state := info.State
		if state.Forced {
			return makeDue(info)
		}
		state.Forced, state.Retries = true, nil
		state.Aborted = machine.Reason("stopped by force, without compensation: " + why)
		c.log.Warn("a saga is stopped by force, without further compensation", "gid", gid,
			"status", info.Status, "marks", info.Marks, "reason", why)
		to := store.StatusFailed
		if c.store.Retention() == 0 && info.Status == store.StatusSubmitted && info.Owner != "" {
			// This end would leave no trace. A coordinator that waits for the answer to an
			// end of its own would mistake it for that. So it must end the saga itself.
			to = store.StatusAborting
		}
		return &store.Transition{To: to, Note: state.Note()}
	}, store.StatusFailed)
}

// Retry ends the pause of a deferred saga, which is resumed at once. If the saga is
// running, nothing changes. If it has ended, the error wraps ErrEnded.
func (c *Coordinator) Retry(ctx context.Context, gid string) error {
	return c.command(ctx, gid, func(info Info) *store.Transition {
		if info.Owner != "" {
			return nil
		}
		state := info.State
		for i := range state.Retries {
			state.Retries[i].Wait = 0
		}
		return &store.Transition{To: info.Status, Due: dueNow, Release: true, Note: state.Note()}
	}, 0)
}

// makeDue makes a saga due that was deferred just when it was aborted, so that nobody runs
// it. A saga that was deferred after the abort has retries. It returns nil for others.
func makeDue(info Info) *store.Transition {
	if info.Owner != "" || len(info.State.Retries) > 0 {
		return nil
	}
	return &store.Transition{To: info.Status, Due: dueNow, Release: true}
}

// commandAttempts bounds how often a command is tried on a saga that changes meanwhile.
const commandAttempts = 100

// command writes what change returns for an unfinished saga; nil: nothing. A saga that has
// ended must have done so in the wanted status.
func (c *Coordinator) command(ctx context.Context, gid string, change func(Info) *store.Transition, wanted store.Status) error {
	var conflict error
	written := false
	for range commandAttempts {
		info, err := c.Get(ctx, gid)
		switch {
		case written && errors.Is(err, store.ErrNotFound):
			return nil // it has ended, and is not kept
		case err != nil:
			return err
		case info.Status.Final() && info.Status == wanted:
			return nil
		case info.Status.Final():
			return fmt.Errorf("saga %s: %w: %v", gid, ErrEnded, info.Status)
		}
		t := change(info)
		if t == nil {
			return nil
		}
		t.GID, t.Epoch, t.From = gid, info.Epoch, info.Status
		switch err = c.commit.Apply(ctx, t); {
		case errors.Is(err, store.ErrConflict):
			conflict = fmt.Errorf("saga %s: %w", gid, err)
			continue
		case err != nil:
			return fmt.Errorf("saga %s: %w", gid, err)
		}
		if t.To != info.Status { // an abort, or a forced stop
			_ = info.State.SetNote(t.Note) // which we have made
			c.aborts.add(gid, info.State, c.store.Retention())
		}
		c.sagas.notify(gid)
		signal(c.wake)
		if t.To != store.StatusAborting || t.Release {
			return nil
		}
		written, conflict = true, nil // but perhaps after the saga was deferred: read it again
	}
	return conflict
}

// signal sends to a channel of capacity 1, unless it is signalled already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
