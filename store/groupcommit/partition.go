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

// request is the change of one waiting caller.
type request struct {
	change  store.Change
	done    chan error // buffers the answer, so that the flusher never waits for a caller
	inBatch bool       // it left the queue; guarded by the partition's mutex
}

// partition is a queue and the goroutine that flushes it. A gid has one partition.
type partition struct {
	to       store.Applier
	cfg      Config
	slots    chan struct{} // one element per change in the queue
	requests sync.Pool     // of *request
	mu       sync.Mutex
	changed  sync.Cond // signals that the queue, busy or closed changed
	queue    []*request
	busy     bool // a batch is being written, or the flusher is about to write one
	closed   bool
	closing  chan struct{} // closed by close, for callers that wait for a slot
}

func newPartition(to store.Applier, cfg Config, slots int) *partition {
	p := &partition{to: to, cfg: cfg, slots: make(chan struct{}, slots), closing: make(chan struct{})}
	p.changed.L = &p.mu
	p.requests.New = func() any { return &request{done: make(chan error, 1)} }
	return p
}

// tryFastPath reports whether the partition is idle, and makes it busy then. If so,
// the caller must call applyFast.
func (p *partition) tryFastPath() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || p.closed || len(p.queue) > 0 {
		return false
	}
	p.busy = true
	return true
}

// applyFast writes a batch of one on the caller's goroutine. Callers that arrive
// meanwhile wait for the flusher.
func (p *partition) applyFast(ctx context.Context, change store.Change) error {
	defer func() { // also if the store panics: the others would wait forever
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
		if len(p.queue) > 0 || p.closed {
			p.changed.Signal()
		}
	}()
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	err := p.flush(ctx, []store.Change{change})[0]
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("gave up waiting for the store, which may still write the change: %w: %w", context.Cause(ctx), err)
	}
	return err
}

func (p *partition) enqueue(ctx context.Context, change store.Change) (*request, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-p.closing:
			return nil, store.ErrClosed
		case <-ctx.Done():
			return nil, notSent(ctx)
		}
	}
	r := p.requests.Get().(*request)
	r.change, r.inBatch = change, false

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.slots
		return nil, store.ErrClosed
	}
	p.queue = append(p.queue, r)
	if len(p.queue) == 1 {
		p.changed.Signal()
	}
	return r, nil
}

// abandon returns the error of a caller whose context ended before its answer came.
// It removes the change from the queue if it is still there.
func (p *partition) abandon(ctx context.Context, r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.inBatch {
		select {
		case err := <-r.done: // the answer came at the same time
			return err
		default:
			return fmt.Errorf("gave up waiting for the store, which may still write the change: %w", context.Cause(ctx))
		}
	}
	if i := slices.Index(p.queue, r); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		<-p.slots
	}
	return notSent(ctx)
}

func notSent(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
}

func (p *partition) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

func (p *partition) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	p.changed.Signal()
}

// run writes batches until the partition is closed and empty.
func (p *partition) run() {
	var (
		batch   []*request
		changes []store.Change
		gids    = make(map[string]struct{})
	)
	for {
		batch = p.nextBatch(batch[:0], gids)
		if len(batch) == 0 {
			return
		}
		changes = changes[:0]
		for _, r := range batch {
			changes = append(changes, r.change)
		}
		for i, err := range p.flush(context.Background(), changes) {
			batch[i].done <- err
		}
		clear(batch)
		clear(changes)
		// The answered callers are about to send their next changes. If they run
		// first, these form one batch. Without runnable callers this costs nothing.
		runtime.Gosched()
		p.mu.Lock()
		p.busy = false
		p.mu.Unlock()
	}
}

func (p *partition) flush(ctx context.Context, changes []store.Change) []error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	began := time.Now()
	errs := p.to.Apply(ctx, changes)
	if p.cfg.Observe != nil {
		p.cfg.Observe(len(changes), time.Since(began))
	}
	if len(errs) != len(changes) {
		// No answer can be matched to its change.
		err := fmt.Errorf("the store gave %d answers to %d changes", len(errs), len(changes))
		errs = slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

// nextBatch waits for changes and appends them to batch, oldest first, until the
// next one does not fit. It skips a change whose gid is in the batch already. It
// stops at the first that does not fit, or changes of one gid could change places.
// The batch is empty when the partition is closed and its queue empty.
func (p *partition) nextBatch(batch []*request, gids map[string]struct{}) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.busy || len(p.queue) == 0 && !p.closed {
		p.changed.Wait()
	}
	p.busy = len(p.queue) > 0
	clear(gids)
	rest := p.queue[:0]
	size := 0
	for i, r := range p.queue {
		gid := r.change.Gid()
		if _, present := gids[gid]; present {
			rest = append(rest, r)
			continue
		}
		size += changeSize(r.change)
		if len(batch) == p.cfg.MaxBatch || len(batch) > 0 && size > MaxBatchBytes {
			rest = append(rest, p.queue[i:]...)
			break
		}
		gids[gid] = struct{}{}
		r.inBatch = true
		batch = append(batch, r)
		<-p.slots
	}
	clear(p.queue[len(rest):])
	p.queue = rest
	return batch
}

// changeSize returns what MaxBatchBytes counts: the length of the body or the note.
func changeSize(change store.Change) int {
	switch c := change.(type) {
	case *store.Create:
		return len(c.Body)
	case *store.Transition:
		return len(c.Note)
	default:
		return 0
	}
}
