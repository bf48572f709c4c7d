package saga_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sagabench/saga"
	"sagabench/store"
)

// node is a coordinator of a simulation with its way to the store and to the
// branches.
type node struct {
	*saga.Coordinator
	simulation *simulation

	mu    sync.Mutex
	thaw  chan struct{} // while it is frozen
	alive context.Context
	end   context.CancelFunc
}

// errDead is what a dead node would be told if there were anybody to hear it.
var errDead = errors.New("this process is dead")

func (s *simulation) start() *node {
	n := &node{simulation: s}
	n.alive, n.end = context.WithCancel(context.Background())
	c, err := saga.New(&roughWay{Store: s.store, node: n}, n, s.cfg)
	if err != nil {
		panic(err)
	}
	n.mu.Lock() // it looks for due sagas already
	n.Coordinator = c
	n.mu.Unlock()
	return n
}

// Owner is asked by calls that may come before start has returned.
func (n *node) Owner() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.Coordinator.Owner()
}

// die takes the node from the world: nothing it does reaches anybody any more.
func (n *node) die() {
	n.end()
	n.simulation.background.Go(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		n.Close(ended)
	})
}

// freeze stops the node, as SIGSTOP does, in all that others could notice.
func (n *node) freeze(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.thaw != nil {
		return
	}
	n.thaw = make(chan struct{})
	n.simulation.background.Go(func() {
		time.Sleep(d)
		n.mu.Lock()
		defer n.mu.Unlock()
		close(n.thaw)
		n.thaw = nil
	})
}

// pass returns when the node is not frozen, or with why it will get no further.
func (n *node) pass(ctx context.Context) error {
	n.mu.Lock()
	thaw := n.thaw
	n.mu.Unlock()
	if thaw != nil {
		select {
		case <-thaw:
		case <-n.alive.Done():
		case <-ctx.Done():
		}
	}
	if n.alive.Err() != nil {
		return errDead
	}
	return ctx.Err()
}

// roughWay is a node's way to the store.
type roughWay struct {
	store.Store
	node *node
}

func (w *roughWay) Apply(ctx context.Context, changes []store.Change) []error {
	changes = slices.Clone(changes) // a call may arrive when the caller uses them for others
	var errs []error
	if err := w.over(ctx, func() { errs = w.Store.Apply(context.Background(), changes) }); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

func (w *roughWay) Get(ctx context.Context, gid string) (store.Record, error) {
	var record store.Record
	var err error
	if err := w.over(ctx, func() { record, err = w.Store.Get(context.Background(), gid) }); err != nil {
		return store.Record{}, err
	}
	return record, err
}

func (w *roughWay) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	var records []store.Record
	var err error
	if err := w.over(ctx, func() { records, err = w.Store.ClaimDue(context.Background(), owner, lease, limit) }); err != nil {
		return nil, err
	}
	return records, err
}

// over makes one call, or does to it what the network may.
func (w *roughWay) over(ctx context.Context, call func()) error {
	if err := w.node.pass(ctx); err != nil {
		return err
	}
	s := w.node.simulation
	s.mu.Lock()
	fault := !s.calm && s.random.IntN(100) < s.faults
	away := !s.calm && time.Now().Before(s.outage)
	kind, delay := s.random.IntN(5), time.Duration(s.random.IntN(int(s.cfg.Lease)))
	s.mu.Unlock()
	switch {
	case away:
		return errCut
	case !fault:
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
		call()
	case kind == 0: // the call is lost
		return errCut
	case kind == 1: // the answer is lost
		call()
		return errCut
	case kind == 2: // the call is slow
		if err := sleep(ctx, delay); err != nil {
			return err
		}
		call()
	case kind == 3: // the answer is slow
		call()
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	case kind == 4: // the call arrives when it was long given up
		s.background.Go(func() {
			time.Sleep(delay)
			call()
		})
		return errCut
	}
	return w.node.pass(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
