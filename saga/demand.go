package saga

import (
	"context"
	"errors"
	"fmt"

	"sagabench/store"
)

// ErrEnded: the saga has ended, and not in the way that was demanded.
var ErrEnded = errors.New("the saga has ended")

// Abort has a saga undone that has not succeeded yet. When it returns nil the
// saga can no longer succeed: what may have been started is compensated, also an
// action that is being called at this very moment. Of a saga that is being
// aborted, or has failed, it changes nothing; of one that succeeded the error
// wraps ErrEnded.
func (c *Coordinator) Abort(ctx context.Context, gid, why string) error {
	return c.demand(ctx, gid, func(info Info) *store.Transition {
		if info.Status != store.StatusSubmitted {
			return awake(info)
		}
		state := State{Aborted: reason(why), Held: info.State.Held, Busy: info.State.Busy}
		t := &store.Transition{To: store.StatusAborting, Note: state.note()}
		if info.Owner == "" { // nobody runs it, who would go on
			t.Due, t.Release = atOnce, true
		}
		return t
	}, store.StatusFailed)
}

// ForceStop declares a saga failed without compensating anything: what its
// actions did stays done. It is for a saga that can be undone only by hand. Of
// one that has failed it changes nothing; of one that succeeded the error wraps
// ErrEnded. Where finished sagas are not kept, one that is being run is ended by
// whoever runs it, or else takes it over.
func (c *Coordinator) ForceStop(ctx context.Context, gid, why string) error {
	return c.demand(ctx, gid, func(info Info) *store.Transition {
		state := info.State
		if state.Forced {
			return awake(info)
		}
		state.Forced, state.Holds = true, nil
		state.Aborted = reason("stopped by force, without compensation: " + why)
		c.log.Warn("a saga is stopped by force: nothing more of it is compensated", "gid", gid,
			"status", info.Status, "marks", info.Marks, "why", why)
		to := store.StatusFailed
		if c.store.Retention() == 0 && info.Status == store.StatusSubmitted && info.Owner != "" {
			// This end would leave no trace, so that whoever runs the saga, and waits
			// for the answer to its own end, would take it for that. It ends it itself.
			to = store.StatusAborting
		}
		return &store.Transition{To: to, Note: state.note()}
	}, store.StatusFailed)
}

// Retry ends the pause of a saga that is put off: it is taken up at once. Of one
// that is being run it changes nothing; of one that has ended the error wraps
// ErrEnded.
func (c *Coordinator) Retry(ctx context.Context, gid string) error {
	return c.demand(ctx, gid, func(info Info) *store.Transition {
		if info.Owner != "" {
			return nil
		}
		state := info.State
		for i := range state.Holds {
			state.Holds[i].Wait = 0
		}
		return &store.Transition{To: info.Status, Due: atOnce, Release: true, Note: state.note()}
	}, 0)
}

// awake makes a saga due that was put off when it was aborted, so that whoever ran
// it did not go on: one that was put off since has holds. It is nil for others.
func awake(info Info) *store.Transition {
	if info.Owner != "" || len(info.State.Holds) > 0 {
		return nil
	}
	return &store.Transition{To: info.Status, Due: atOnce, Release: true}
}

// demandAttempts bounds how often a saga that moves on under our hands is looked
// at anew.
const demandAttempts = 100

// demand writes what change makes of an unfinished saga: nil for nothing. One
// that has ended must have done so in the status that was wanted.
func (c *Coordinator) demand(ctx context.Context, gid string, change func(Info) *store.Transition, wanted store.Status) error {
	var err error
	written := false
	for range demandAttempts {
		var info Info
		info, err = c.Get(ctx, gid)
		switch {
		case written && errors.Is(err, store.ErrNotFound):
			return nil // it has ended, and is not kept
		case err != nil:
			return err
		}
		if info.Status.Final() {
			if info.Status == wanted {
				return nil
			}
			return fmt.Errorf("saga %s: %w: %v", gid, ErrEnded, info.Status)
		}
		t := change(info)
		if t == nil {
			return nil
		}
		t.GID, t.Epoch, t.From = gid, info.Epoch, info.Status
		if err = c.commit.Apply(ctx, t); err == nil {
			if t.To != info.Status { // an abort, or a forced stop
				_ = info.State.readNote(t.Note) // which is ours
				c.aborts.add(gid, info.State, c.store.Retention())
			}
			c.sagas.look(gid)
			select {
			case c.wake <- struct{}{}:
			default: // it is about to look anyway
			}
			if t.To != store.StatusAborting || t.Release {
				return nil
			}
			written = true // but maybe after it was put off: look again
			continue
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("saga %s: %w", gid, err)
}

// Get reads a saga. Of a gid that is not there the error is store.ErrNotFound.
func (c *Coordinator) Get(ctx context.Context, gid string) (Info, error) {
	record, err := c.store.Get(ctx, gid)
	if err != nil {
		return Info{}, err
	}
	return Read(record)
}
