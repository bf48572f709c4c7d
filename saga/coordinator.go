package saga

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/groupcommit"
)

// Result is how a saga ended.
type Result struct {
	Status store.Status // final
	Reason string       // why it was aborted; empty if it succeeded
}

func resultOf(s machine.State) Result { return Result{Status: s.Status, Reason: s.Aborted} }

// Coordinator runs sagas over a store. Its methods may be called from many
// goroutines.
type Coordinator struct {
	stats  Counters // first, as 32-bit machines align only that to 64 bits; read and changed by sync/atomic
	store  store.Store
	commit *groupcommit.Committer
	caller Caller
	cfg    Config
	log    *slog.Logger
	owner  string

	sagas     registry
	aborts    aborts
	admission *admission

	ctx        context.Context // ends when running sagas must be abandoned
	cancel     context.CancelFunc
	background sync.WaitGroup // runs, and recovery
	mu         sync.Mutex     // guards closed, and background against growing after it
	closed     bool
	stop       chan struct{} // closed when no more sagas are taken
	wake       chan struct{} // capacity 1: a saga may be due
}

// New starts a coordinator over a store, which must outlive it. It takes over due sagas
// from now on. Call Close when done.
func New(s store.Store, caller Caller, cfg Config) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	commit, err := groupcommit.New(s, cfg.Commit)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		store:     s,
		commit:    commit,
		caller:    caller,
		cfg:       cfg,
		log:       cfg.Logger,
		owner:     rand.Text()[:store.MaxOwnerBytes],
		sagas:     registry{sagas: make(map[string]*entry)},
		aborts:    aborts{sagas: make(map[string]knownAbort)},
		admission: newAdmission(cfg.MaxInFlight, s),
		stop:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.background.Go(c.recoverDue)
	return c, nil
}

// start registers and counts a run. It reports false if the saga is running here already.
// Drive a started run: that finishes it.
func (c *Coordinator) start(r *run, count *int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, fmt.Errorf("saga %s: %w: %w", r.saga.GID, ErrUnknown, store.ErrClosed)
	}
	if !c.sagas.add(r) {
		return false, nil
	}
	c.recallAbort(r)
	atomic.AddInt64(count, 1)
	atomic.AddInt64(&c.stats.InFlight, 1)
	c.background.Add(1)
	return true, nil
}

// finish undoes start.
func (c *Coordinator) finish(r *run) {
	atomic.AddInt64(&c.stats.InFlight, -1)
	c.sagas.remove(r)
	if r.onFinish != nil {
		r.onFinish()
	}
	c.background.Done()
}

// Owner returns the name under which this coordinator holds leases.
func (c *Coordinator) Owner() string { return c.owner }

// Get reads a saga. It returns store.ErrNotFound if the saga is absent.
func (c *Coordinator) Get(ctx context.Context, gid string) (Info, error) {
	record, err := c.store.Get(ctx, gid)
	if err != nil {
		return Info{}, err
	}
	return Read(record)
}

// Close takes no more sagas and waits for those under way. When ctx ends first, it
// abandons them: it cuts off their calls and waits only for writes under way. Other
// coordinators may take the sagas over after the deadlines of those calls, as participants
// may be at work until then. The store stays open. Closing twice is allowed.
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
		c.cancel()
		<-idle
	}
	c.cancel()
	c.commit.Close()
}
