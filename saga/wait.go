package saga

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/store"
)

// Wait returns when the saga has ended, wherever it runs. It returns store.ErrNotFound if
// the saga is absent, and ErrNotEnded if ctx or MaxWait ends first.
func (c *Coordinator) Wait(ctx context.Context, gid string) (Result, error) {
	ended := c.sagas.wait(gid)
	defer c.sagas.forget(gid, ended)
	return c.await(ctx, gid, ended, false)
}

// await polls the store: the saga may run in another process, or continue there after it
// was deferred. If runsHere is true, the first poll is not needed at once.
func (c *Coordinator) await(ctx context.Context, gid string, ended <-chan end, runsHere bool) (Result, error) {
	began := time.Now()
	pause := func() time.Duration {
		if c.cfg.MaxWait > 0 {
			return min(c.cfg.PollInterval, c.cfg.MaxWait-time.Since(began))
		}
		return c.cfg.PollInterval
	}
	poll := time.NewTimer(pause())
	defer poll.Stop()
	for ; ; runsHere = false {
		if !runsHere {
			record, err := c.store.Get(ctx, gid)
			switch {
			case err == nil && record.Status.Final():
				info, err := Read(record)
				return resultOf(info.State), err
			case errors.Is(err, store.ErrNotFound) && !c.sagas.isRunning(gid):
				select {
				case e := <-ended: // it is not kept, but it ended here
					return e.result, e.err
				default:
					return Result{}, err
				}
			case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrUnreadable):
				return Result{}, err
			}
			if pause() <= 0 {
				return Result{}, fmt.Errorf("saga %s: %w: no end within %v", gid, ErrNotEnded, c.cfg.MaxWait)
			}
			poll.Reset(pause())
		}
		select {
		case e := <-ended:
			return e.result, e.err
		case <-poll.C:
		case <-ctx.Done():
			return Result{}, fmt.Errorf("saga %s: %w: %w", gid, ErrNotEnded, context.Cause(ctx))
		}
	}
}
