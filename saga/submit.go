package saga

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/groupcommit"
)

// Submit makes the saga durable and starts to run it. After nil the saga will end. The
// same saga may be submitted again, which changes nothing; another saga under its gid is
// refused with store.ErrExists. After ErrUnknown the saga may or may not have been
// accepted; after ErrBusy it was not.
func (c *Coordinator) Submit(ctx context.Context, s *Saga) error {
	r, err := c.submit(ctx, s)
	if r != nil {
		go c.drive(context.Background(), r, true)
	}
	return err
}

// Run is Submit followed by Wait. It returns store.ErrNotFound if the saga ended in
// another process and the store keeps no finished sagas, and ErrEndUnknown if it ran here
// and is absent before its end was confirmed.
func (c *Coordinator) Run(ctx context.Context, s *Saga) (Result, error) {
	r, err := c.submit(ctx, s)
	switch {
	case err != nil:
		return Result{}, err
	case r == nil:
		return c.Wait(ctx, s.GID)
	case c.drive(ctx, r, false):
		return resultOf(r.state), nil
	}
	ended := c.sagas.wait(s.GID)
	defer c.sagas.forget(s.GID, ended)
	go c.drive(context.Background(), r, true)
	return c.await(ctx, s.GID, ended, true)
}

// submit admits the saga, creates it and returns the run to drive, or nil if the saga
// exists already.
func (c *Coordinator) submit(ctx context.Context, s *Saga) (*run, error) {
	release := c.admission.admit(s.GID, c.weight(s))
	if release == nil {
		atomic.AddInt64(&c.stats.Refused, 1)
		return nil, fmt.Errorf("saga %s: %w: as many as coordinator.max_in_flight (%d) allows", s.GID, ErrBusy, c.cfg.MaxInFlight)
	}
	r, err := c.create(ctx, s)
	if r == nil {
		release()
		return nil, err
	}
	r.onFinish = release
	return r, err
}

// bytesPerWeight is the size of a saga that counts once: it is in memory while under way.
const bytesPerWeight = 32 << 10

// weight is how often a saga counts towards MaxInFlight: as many times as it may call
// branches at once, or as its size requires. The largest saga is admitted when nothing
// else is under way.
func (c *Coordinator) weight(s *Saga) int64 {
	weight := 1 + s.size(func(text string) int { return len(text) })/bytesPerWeight
	if s.Concurrent {
		weight = max(weight, len(s.Steps))
	}
	return int64(min(weight, c.cfg.MaxInFlight))
}

// create writes the saga and returns the run to drive, or nil if the saga exists already.
func (c *Coordinator) create(ctx context.Context, s *Saga) (*run, error) {
	select {
	case <-c.stop:
		return nil, fmt.Errorf("saga %s: the coordinator takes no more sagas: %w", s.GID, store.ErrClosed)
	default:
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	body, err := s.encode()
	if err != nil {
		return nil, err
	}
	fresh := machine.State{Status: store.StatusSubmitted, Marks: store.NewMarks(len(s.Steps))}
	r := c.newRun(s, 1, fresh, time.Now(), 0)
	err = c.commit.Apply(ctx, &store.Create{
		GID: s.GID, Body: body, Steps: len(s.Steps), Owner: c.owner, Due: c.cfg.Lease,
	})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrDuplicate):
		return nil, nil
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrInvalid),
		errors.Is(err, store.ErrClosed), errors.Is(err, groupcommit.ErrNotSent):
		return nil, fmt.Errorf("saga %s: %w", s.GID, err)
	default:
		if created, err := c.resolveCreate(ctx, r, body, err); err != nil || !created {
			return nil, err
		}
	}
	started, err := c.start(r, &c.stats.Submitted)
	if err != nil {
		c.releaseLease(r, dueNow)
	}
	if !started {
		return nil, err
	}
	return r, nil
}

func (c *Coordinator) check(s *Saga) error {
	if err := s.Validate(); err != nil {
		return err
	}
	for i, step := range s.Steps {
		for _, url := range []string{step.Action, step.Compensate} {
			if url == "" {
				continue
			}
			if err := c.caller.Check(url); err != nil {
				return fmt.Errorf("%w: steps[%d]: %w", store.ErrInvalid, i, err)
			}
		}
	}
	return nil
}

// resolveCreate finds out what became of a create whose answer was lost. It reports
// whether the saga exists and r must run it.
func (c *Coordinator) resolveCreate(ctx context.Context, r *run, body []byte, lost error) (created bool, err error) {
	record, err := c.store.Get(ctx, r.saga.GID)
	switch {
	case err != nil: // even if it is absent: the write may still be on its way
		return false, fmt.Errorf("saga %s: %w: %w", r.saga.GID, ErrUnknown, lost)
	case !bytes.Equal(record.Body, body):
		return false, fmt.Errorf("saga %s: %w", r.saga.GID, store.ErrExists)
	case record.Owner != c.owner || record.Epoch != 1 || record.Status != r.state.Status || record.Marks != r.state.Marks || record.Note != "":
		return false, nil // it is run elsewhere, or deferred
	}
	// An earlier submit may have created it, and it may have been deferred since. So the run
	// has no lease, and must renew it before it calls anything. That is refused if another
	// coordinator has taken over.
	r.leaseEnd = time.Time{}
	return true, nil
}
