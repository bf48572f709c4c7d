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

// Result is how a saga ended.
type Result struct {
	Status store.Status // final
	Reason string       // why it failed
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

	sagas registry
	stats counters

	ctx        context.Context // ends when running sagas are to be let go
	letGo      context.CancelFunc
	background sync.WaitGroup // sagas under way, and recovery
	mu         sync.Mutex     // guards closed, and background against growing after it
	closed     bool
	stop       chan struct{} // closed when no more sagas are to be taken over
}

// New starts a coordinator over a store, which must outlive it: it takes over
// due sagas from now on. Call Close when done.
func New(s store.Store, caller Caller, cfg Config) (*Coordinator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	commit, err := groupcommit.New(s, cfg.Commit)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		store:      s,
		commit:     commit,
		caller:     caller,
		cfg:        cfg,
		log:        cfg.Logger,
		owner:      rand.Text()[:store.MaxOwnerBytes],
		sagas:      newRegistry(),
		stop:       make(chan struct{}),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.ctx, c.letGo = context.WithCancel(context.Background())
	c.background.Go(c.recoverDue)
	return c, nil
}

// Submit makes the saga durable and begins to run it. When it returns nil the
// saga will end. The same saga may be submitted again, which changes nothing;
// another one under its gid is refused with store.ErrExists. An error that
// wraps ErrUnknown leaves open whether the saga was accepted.
func (c *Coordinator) Submit(ctx context.Context, s *Saga) error {
	_, err := c.submit(ctx, s)
	return err
}

// Run is Submit, and then Wait.
func (c *Coordinator) Run(ctx context.Context, s *Saga) (Result, error) {
	// Before anything is written, so that the end cannot be missed.
	ended := c.sagas.wait(s.GID)
	defer c.sagas.forget(s.GID, ended)
	begun, err := c.submit(ctx, s)
	if err != nil {
		return Result{}, err
	}
	return c.await(ctx, s.GID, ended, begun)
}

// Wait returns when the saga has ended, wherever it runs. Of a gid that is not
// there, or no longer, it answers store.ErrNotFound.
func (c *Coordinator) Wait(ctx context.Context, gid string) (Result, error) {
	ended := c.sagas.wait(gid)
	defer c.sagas.forget(gid, ended)
	return c.await(ctx, gid, ended, false)
}

// await looks into the store from time to time, for the saga may run, or after
// having been put off go on, in another process. While it runs here there is
// no need to look at once.
func (c *Coordinator) await(ctx context.Context, gid string, ended <-chan Result, here bool) (Result, error) {
	look := time.NewTimer(c.cfg.PollInterval)
	defer look.Stop()
	for ; ; here = false {
		if !here {
			record, err := c.store.Get(ctx, gid)
			if err != nil && (errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrClosed)) {
				return Result{}, err
			}
			if err == nil && record.Status.Final() {
				return Result{Status: record.Status, Reason: record.Reason}, nil
			}
			look.Reset(c.cfg.PollInterval)
		}
		select {
		case result := <-ended:
			return result, nil
		case <-look.C:
		case <-ctx.Done():
			return Result{}, fmt.Errorf("waiting for saga %s, which goes on: %w", gid, context.Cause(ctx))
		}
	}
}

// submit creates the saga and begins to run it, unless it is there already;
// begun tells which.
func (c *Coordinator) submit(ctx context.Context, s *Saga) (begun bool, err error) {
	if err := c.check(s); err != nil {
		return false, err
	}
	body, err := s.encode()
	if err != nil {
		return false, err
	}
	leased := time.Now()
	err = c.commit.Apply(ctx, &store.Create{
		GID: s.GID, Body: body, Steps: len(s.Steps), Owner: c.owner, Due: c.cfg.Lease,
	})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrDuplicate):
		return false, nil
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrInvalid),
		errors.Is(err, store.ErrClosed), errors.Is(err, groupcommit.ErrNotSent):
		return false, fmt.Errorf("saga %s: %w", s.GID, err)
	default:
		if mine, err := c.settle(ctx, s.GID, body, err); err != nil || !mine {
			return false, err
		}
	}
	return c.begin(&run{
		saga:  s,
		epoch: 1,
		state: State{Status: store.StatusSubmitted, Marks: store.NewMarks(len(s.Steps))},
		until: leased.Add(c.cfg.Lease),
	}, &c.stats.submitted)
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
// saga is there, and is this coordinator's to run.
func (c *Coordinator) settle(ctx context.Context, gid string, body []byte, lost error) (mine bool, err error) {
	record, err := c.store.Get(ctx, gid)
	switch {
	case err != nil: // not there means little: the write may still be on its way
		return false, fmt.Errorf("saga %s: %w: %w", gid, ErrUnknown, lost)
	case !bytes.Equal(record.Body, body):
		return false, fmt.Errorf("saga %s: %w", gid, store.ErrExists)
	}
	return record.Owner == c.owner && record.Epoch == 1 && !record.Status.Final(), nil
}

// begin runs a saga in the background and counts it, unless it is being run here
// already.
func (c *Coordinator) begin(r *run, count *atomic.Int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		// It is in the store; another coordinator takes it up when it is due.
		return false, fmt.Errorf("saga %s: %w: %w", r.saga.GID, ErrUnknown, store.ErrClosed)
	}
	if !c.sagas.begin(r.saga.GID) {
		return false, nil
	}
	count.Add(1)
	c.background.Go(func() { c.drive(r) })
	return true, nil
}

// Owner is the name under which this coordinator holds sagas.
func (c *Coordinator) Owner() string { return c.owner }

// Close takes up no more sagas and waits for those under way. When ctx ends
// before they do, they are let go: others may take them over at once. The store
// stays open. Closing twice is allowed.
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
