package saga

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sagabench/store"
	"sagabench/store/groupcommit"
)

// ErrUnknown: the store did not answer, so the saga may or may not have been
// accepted. Submitting the same saga again settles it.
var ErrUnknown = errors.New("the store did not confirm the saga")

// ErrEndUnknown: the store has the saga no longer, and nobody can say how it ended:
// it was lost, or it ended and is not kept. What its branches did stays done.
var ErrEndUnknown = errors.New("it is not known how the saga ended")

// ErrNotEnded: the saga goes on, and its end was not waited for any longer.
var ErrNotEnded = errors.New("the saga goes on")

// Result is how a saga ended.
type Result struct {
	Status store.Status // final
	Reason string       // if it failed: why it was aborted
}

func resultOf(s State) Result { return Result{Status: s.Status, Reason: s.Aborted} }

// end is what those who wait for a saga are told.
type end struct {
	result Result
	err    error // wraps ErrEndUnknown, or nil
}

// Coordinator runs sagas over a store. Its methods may be called from many
// goroutines.
type Coordinator struct {
	store  store.Store
	commit *groupcommit.Committer
	caller Caller
	cfg    Config
	log    *slog.Logger
	owner  string

	sagas  registry
	aborts aborts
	stats  counters

	admitted  atomic.Int64 // submitted sagas under way, and being created
	discharge func()       // takes one off admitted; made once, not for each saga

	ctx        context.Context // ends when running sagas are to be let go
	letGo      context.CancelFunc
	background sync.WaitGroup // sagas under way, and recovery
	mu         sync.Mutex     // guards closed, and background against growing after it
	closed     bool
	stop       chan struct{} // closed when no more sagas are to be taken over
	wake       chan struct{} // of one: there may be a due saga
}

// New starts a coordinator over a store, which must outlive it: it takes over
// due sagas from now on. Call Close when done.
func New(s store.Store, caller Caller, cfg Config) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	commit, err := groupcommit.New(s, cfg.Commit)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		store:  s,
		commit: commit,
		caller: caller,
		cfg:    cfg,
		log:    cfg.Logger,
		owner:  rand.Text()[:store.MaxOwnerBytes],
		sagas:  newRegistry(),
		stop:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.discharge = func() { c.admitted.Add(-1) }
	c.ctx, c.letGo = context.WithCancel(context.Background())
	c.background.Go(c.recoverDue)
	return c, nil
}

// Submit makes the saga durable and begins to run it. When it returns nil the
// saga will end. The same saga may be submitted again, which changes nothing;
// another one under its gid is refused with store.ErrExists. An error that
// wraps ErrUnknown leaves open whether the saga was accepted; after ErrBusy it was
// not.
func (c *Coordinator) Submit(ctx context.Context, s *Saga) error {
	r, err := c.submit(ctx, s)
	if r != nil {
		go c.drive(r)
	}
	return err
}

// Run is Submit, and then Wait. Of a saga that ended in another process, in a
// store that keeps no finished ones, it too answers store.ErrNotFound; of one that
// ran here and is gone before its end was confirmed, ErrEndUnknown.
func (c *Coordinator) Run(ctx context.Context, s *Saga) (Result, error) {
	r, err := c.submit(ctx, s)
	switch {
	case err != nil:
		return Result{}, err
	case r == nil:
		return c.Wait(ctx, s.GID)
	case c.advance(ctx, r):
		return resultOf(r.state), nil
	}
	ended := c.sagas.wait(s.GID)
	defer c.sagas.forget(s.GID, ended)
	go c.drive(r)
	return c.await(ctx, s.GID, ended, true)
}

// Wait returns when the saga has ended, wherever it runs. Of a gid that is not
// there, or no longer, it answers store.ErrNotFound; when ctx or MaxWait ends
// first, ErrNotEnded.
func (c *Coordinator) Wait(ctx context.Context, gid string) (Result, error) {
	ended := c.sagas.wait(gid)
	defer c.sagas.forget(gid, ended)
	return c.await(ctx, gid, ended, false)
}

// await looks into the store from time to time, for the saga may run, or after
// having been put off go on, in another process. While it runs here there is
// no need to look at once.
func (c *Coordinator) await(ctx context.Context, gid string, ended <-chan end, here bool) (Result, error) {
	began := time.Now()
	pause := func() time.Duration {
		if c.cfg.MaxWait > 0 {
			return min(c.cfg.PollInterval, c.cfg.MaxWait-time.Since(began))
		}
		return c.cfg.PollInterval
	}
	look := time.NewTimer(pause())
	defer look.Stop()
	for ; ; here = false {
		if !here {
			record, err := c.store.Get(ctx, gid)
			switch {
			case err == nil && record.Status.Final():
				info, err := Read(record)
				return resultOf(info.State), err
			case errors.Is(err, store.ErrNotFound) && !c.sagas.running(gid):
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
			look.Reset(pause())
		}
		select {
		case e := <-ended:
			return e.result, e.err
		case <-look.C:
		case <-ctx.Done():
			return Result{}, fmt.Errorf("saga %s: %w: %w", gid, ErrNotEnded, context.Cause(ctx))
		}
	}
}

// create writes the saga and gives the run that is to be driven, or nil if it
// was there already.
func (c *Coordinator) create(ctx context.Context, s *Saga) (*run, error) {
	select {
	case <-c.stop:
		return nil, fmt.Errorf("saga %s: the coordinator takes up no more: %w", s.GID, store.ErrClosed)
	default:
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	body, err := s.encode()
	if err != nil {
		return nil, err
	}
	fresh := State{Status: store.StatusSubmitted, Marks: store.NewMarks(len(s.Steps))}
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
		if mine, err := c.settle(ctx, r, body, err); err != nil || !mine {
			return nil, err
		}
	}
	begun, err := c.begin(r, &c.stats.submitted)
	switch {
	case err != nil:
		c.handBack(r, atOnce)
		return nil, err
	case !begun:
		return nil, nil
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

// settle finds out what became of a create whose answer was lost: whether the
// saga is there, and is to be run by r.
func (c *Coordinator) settle(ctx context.Context, r *run, body []byte, lost error) (mine bool, err error) {
	record, err := c.store.Get(ctx, r.saga.GID)
	switch {
	case err != nil: // not there means little: the write may still be on its way
		return false, fmt.Errorf("saga %s: %w: %w", r.saga.GID, ErrUnknown, lost)
	case !bytes.Equal(record.Body, body):
		return false, fmt.Errorf("saga %s: %w", r.saga.GID, store.ErrExists)
	case record.Owner != c.owner || record.Epoch != 1 || record.Status != r.state.Status || record.Marks != r.state.Marks || record.Note != "":
		return false, nil // somebody runs it, or it is put off and will be resumed
	}
	// It may still be that an earlier submit created it, and that it was put off
	// since. So the run has no lease, and must ask for one before it calls anything:
	// that is refused when another coordinator has taken over.
	r.until = time.Time{}
	return true, nil
}

// begin takes up a saga and counts it, unless it is being run here already. What
// is begun must be driven, for which drive and advance are there.
func (c *Coordinator) begin(r *run, count *atomic.Int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, fmt.Errorf("saga %s: %w: %w", r.saga.GID, ErrUnknown, store.ErrClosed)
	}
	if !c.sagas.begin(r) {
		return false, nil
	}
	c.recall(r)
	count.Add(1)
	c.stats.inFlight.Add(1)
	c.background.Add(1)
	return true, nil
}

// over is begin's counterpart.
func (c *Coordinator) over(r *run) {
	c.stats.inFlight.Add(-1)
	c.sagas.end(r)
	if r.after != nil {
		r.after()
	}
	c.background.Done()
}

// Owner is the name under which this coordinator holds sagas.
func (c *Coordinator) Owner() string { return c.owner }

// Close takes up no more sagas and waits for those under way. When ctx ends
// before they do, they are let go: calls are cut off, what is being written is
// waited for, and others may take the sagas over when the deadlines of those calls
// have passed, as participants may be at work until then. The store stays open.
// Closing twice is allowed.
func (c *Coordinator) Close(ctx context.Context) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		c.background.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		c.letGo()
		<-idle
	}
	c.letGo()
	c.commit.Close()
}
