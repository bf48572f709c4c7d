package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"sagabench/store"
)

// request is one caller's change on its way.
type request struct {
	change store.Change
	done   chan error // holds one answer, so that the flusher never waits for a caller
	taken  bool       // into a batch; guarded by the lane's mutex
}

// lane is a queue and the one flusher that empties it.
type lane struct {
	to      store.Applier
	cfg     Config
	room    chan struct{} // holds one element per change in the queue
	spare   sync.Pool     // of *request
	mu      sync.Mutex
	arrived sync.Cond // one of the next three has changed
	queue   []*request
	busy    bool // a batch is on its way, or the flusher is about to take one
	closed  bool
	closing chan struct{} // closed with the lane, for callers that wait for room
}

func newLane(to store.Applier, cfg Config, room int) *lane {
	l := &lane{to: to, cfg: cfg, room: make(chan struct{}, room), closing: make(chan struct{})}
	l.arrived.L = &l.mu
	l.spare.New = func() any { return &request{done: make(chan error, 1)} }
	return l
}

// enterAlone reports whether a caller has the lane to itself. If so it must call
// applyAlone.
func (l *lane) enterAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.closed || len(l.queue) > 0 {
		return false
	}
	l.busy = true
	return true
}

// applyAlone writes a batch of one. Whoever comes meanwhile is for the flusher.
func (l *lane) applyAlone(ctx context.Context, change store.Change) error {
	defer func() { // also when the store panics, or the others would wait for ever
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy = false
		if len(l.queue) > 0 || l.closed {
			l.arrived.Signal()
		}
	}()
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	err := l.flush(ctx, []store.Change{change})[0]
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("gave up waiting for the store, which may still write the change: %w: %w", context.Cause(ctx), err)
	}
	return err
}

func (l *lane) enqueue(ctx context.Context, change store.Change) (*request, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	select {
	case l.room <- struct{}{}:
	default:
		select {
		case l.room <- struct{}{}:
		case <-l.closing:
			return nil, store.ErrClosed
		case <-ctx.Done():
			return nil, notSent(ctx)
		}
	}
	r := l.spare.Get().(*request)
	r.change, r.taken = change, false

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		<-l.room
		return nil, store.ErrClosed
	}
	l.queue = append(l.queue, r)
	if len(l.queue) == 1 {
		l.arrived.Signal()
	}
	return r, nil
}

// giveUp is for a caller whose context has ended before its answer came.
func (l *lane) giveUp(ctx context.Context, r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.taken {
		select {
		case err := <-r.done: // it came at the same time, and is worth more
			return err
		default:
			return fmt.Errorf("gave up waiting for the store, which may still write the change: %w", context.Cause(ctx))
		}
	}
	if i := slices.Index(l.queue, r); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		<-l.room
	}
	return notSent(ctx)
}

func notSent(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
}

// free takes back a request whose answer was received. One that was given up
// is not reused: the flusher may still write to it.
func (l *lane) free(r *request) {
	r.change = nil
	l.spare.Put(r)
}

func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	l.arrived.Signal()
}

// run flushes until the lane is closed and empty.
func (l *lane) run() {
	var (
		batch   []*request
		changes []store.Change
		gids    = make(map[string]struct{})
	)
	for {
		batch = l.take(batch[:0], gids)
		if len(batch) == 0 {
			return
		}
		changes = changes[:0]
		for _, r := range batch {
			changes = append(changes, r.change)
		}
		for i, err := range l.flush(context.Background(), changes) {
			batch[i].done <- err
		}
		clear(batch)
		clear(changes)
		// The callers just answered are about to come with their next change.
		// Letting them run first puts those into one batch; when nobody is about
		// to run it costs nothing.
		runtime.Gosched()
		l.release()
	}
}

// release is for the flusher, when its batch has been answered.
func (l *lane) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}

func (l *lane) flush(ctx context.Context, changes []store.Change) []error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	began := time.Now()
	errs := l.to.Apply(ctx, changes)
	if l.cfg.Observe != nil {
		l.cfg.Observe(len(changes), time.Since(began))
	}
	if len(errs) != len(changes) {
		// Which answer belongs to which change cannot be told.
		err := fmt.Errorf("the store gave %d answers to %d changes", len(errs), len(changes))
		errs = slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

// take waits for changes and moves as many as fit into batch, oldest first,
// leaving behind those whose gid is in the batch already. What comes after one
// that does not fit stays behind it, or changes of one gid could overtake each
// other. It returns an empty batch when the lane is closed and empty.
func (l *lane) take(batch []*request, gids map[string]struct{}) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy || len(l.queue) == 0 && !l.closed {
		l.arrived.Wait()
	}
	l.busy = len(l.queue) > 0
	clear(gids)
	left := l.queue[:0]
	size := 0
	for i, r := range l.queue {
		gid := r.change.Gid()
		if _, twice := gids[gid]; twice {
			left = append(left, r)
			continue
		}
		size += sizeOf(r.change)
		if len(batch) == l.cfg.MaxBatch || len(batch) > 0 && size > MaxBatchBytes {
			left = append(left, l.queue[i:]...)
			break
		}
		gids[gid] = struct{}{}
		r.taken = true
		batch = append(batch, r)
		<-l.room
	}
	clear(l.queue[len(left):])
	l.queue = left
	return batch
}

// sizeOf is what MaxBatchBytes counts: the parts of a change that may be large.
func sizeOf(change store.Change) int {
	switch c := change.(type) {
	case *store.Create:
		return len(c.Body)
	case *store.Transition:
		return len(c.Note)
	default:
		return 0
	}
}
