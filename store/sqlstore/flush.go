package sqlstore

import (
	"context"
	"fmt"
	"reflect"
	"sync"
)

// InnoDB shows a commit to others, and releases its row locks, before the log is on
// disk; only the client that committed waits for that. So a crash may undo what others
// have read. On such a server a call that has read something therefore returns only
// after a commit of its own that began after the reading: the log is written in order.
// The same holds for a server whose commits wait for a replica: the replica gets them in
// order.

// flusher runs these commits one at a time. Callers that come while one runs share
// the next.
type flusher struct {
	running sync.WaitGroup

	mu      sync.Mutex
	busy    bool           // runFlushes is running
	next    *flush         // has not begun; nil if nobody waits for one
	flushed map[string]row // rows that are known to be on disk, by gid
}

// flush is one commit.
type flush struct {
	done chan struct{} // closed when err is set
	err  error
}

// awaitFlush returns once everything that the caller has read is on disk.
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

// runFlushes runs the next flush until nobody waits for one. No caller's context ends
// a flush.
func (s *Store) runFlushes() {
	for {
		f := s.flusher.begin()
		if f == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
		err := s.persist(ctx, func() error { return s.dialect.flush(ctx, s.db) })
		if err != nil { // as text only: the caller must not take it for a lock on its own rows
			f.err = fmt.Errorf("wait for the log: %v", err)
		}
		cancel()
		close(f.done)
	}
}

// begin returns the flush to run next. Callers that come from now on need a later one.
func (f *flusher) begin() *flush {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.next
	f.next, f.busy = nil, next != nil
	return next
}

// awaitFlushOf is awaitFlush for a caller that has read one saga, or that there is none.
// It does not wait if an earlier call did for the saga in the same state: many clients
// poll until a saga has ended.
func (s *Store) awaitFlushOf(ctx context.Context, rows []row) error {
	if !s.dialect.showsUnflushed() || len(rows) == 1 && s.flusher.knows(rows[0]) {
		return nil
	}
	err := s.awaitFlush(ctx)
	if err == nil && len(rows) == 1 {
		s.flusher.learn(rows[0])
	}
	return err
}

// maxFlushed bounds the sagas that a flusher remembers: as many as clients poll within
// a few seconds.
const maxFlushed = 1000

func (f *flusher) knows(r row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.flushed[r.GID]
	return found && reflect.DeepEqual(known, r.state())
}

func (f *flusher) learn(r row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flushed == nil || len(f.flushed) >= maxFlushed {
		f.flushed = make(map[string]row)
	}
	f.flushed[r.GID] = r.state()
}

// state returns r without its body, which never changes, and without the clock.
func (r row) state() row {
	r.Body, r.Now = nil, 0
	return r
}
