package sqlstore

import (
	"context"
	"fmt"
	"sync"
)

// InnoDB shows a commit to others, and releases its row locks, before the log is
// on disk; only the one who committed waits for that. What somebody else reads, a
// crash may undo. So on such a server a call that read something returns only once
// a commit of our own has returned that began after the reading: the log is written
// in its order.

// flusher runs these commits, one at a time. Those who come while one is on its way
// share the next.
type flusher struct {
	running sync.WaitGroup

	mu      sync.Mutex
	busy    bool               // somebody runs what is next
	next    *flush             // has not begun; nil: nobody waits for one
	flushed map[string]version // what is known to be on disk, by gid
}

// flush is one commit, and those who wait for it.
type flush struct {
	done chan struct{} // closed when err is set
	err  error
}

// awaitFlush returns once what the caller was shown is on disk.
func (s *Store) awaitFlush(ctx context.Context) error {
	if !s.dialect.showsUnflushed() {
		return nil
	}
	f := s.nextFlush()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) nextFlush() *flush {
	s.flusher.mu.Lock()
	defer s.flusher.mu.Unlock()
	if s.flusher.next == nil {
		s.flusher.next = &flush{done: make(chan struct{})}
	}
	if !s.flusher.busy {
		s.flusher.busy = true
		s.flusher.running.Go(s.runFlushes)
	}
	return s.flusher.next
}

// runFlushes runs what is next until nobody waits. It does not depend on any one of
// those who do.
func (s *Store) runFlushes() {
	for {
		f := s.flusher.begin()
		if f == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
		err := s.persist(ctx, func() error { return s.dialect.flush(ctx, s.db) })
		if err != nil { // its text only: a lock it waited for is none of the caller's
			f.err = fmt.Errorf("wait for the log: %v", err)
		}
		cancel()
		close(f.done)
	}
}

// begin takes the flush that is next: what is read from now on, it may not include.
func (f *flusher) begin() *flush {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.next
	f.next, f.busy = nil, next != nil
	return next
}

// awaitFlushOf is awaitFlush for a caller who was shown a saga, or that there is
// none, which may follow from a change as well. It does not wait if an earlier call
// did for the saga as it is: many ask again and again until a saga has ended.
func (s *Store) awaitFlushOf(ctx context.Context, shown []row) error {
	if !s.dialect.showsUnflushed() || len(shown) == 1 && s.flusher.knows(&shown[0]) {
		return nil
	}
	err := s.awaitFlush(ctx)
	if err == nil && len(shown) == 1 {
		s.flusher.learn(&shown[0])
	}
	return err
}

// version is all of a saga that changes.
type version struct {
	status, owner, marks, note string
	epoch                      int64
	created, updated, due      int64
}

func versionOf(r *row) version {
	return version{r.Status, r.Owner, r.Marks, string(r.Note), r.Epoch, r.Created, r.Updated, r.Due}
}

// maxFlushed bounds the sagas that a flusher remembers: as many as are asked about
// within a few seconds.
const maxFlushed = 1000

func (f *flusher) knows(r *row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, found := f.flushed[r.GID]
	return found && v == versionOf(r)
}

func (f *flusher) learn(r *row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flushed == nil || len(f.flushed) >= maxFlushed {
		f.flushed = make(map[string]version)
	}
	f.flushed[r.GID] = versionOf(r)
}
