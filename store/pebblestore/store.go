package pebblestore

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// Store is a [store.Store] in a directory. Open makes one.
type Store struct {
	cfg   Config
	disk  *disk
	lock  *pebble.Lock
	db    *pebble.DB
	log   *logger
	calls sync.WaitGroup // calls under way, and the sweeper
	stop  chan struct{}  // closed by Close
	close func() error   // what Close does, once

	mu       sync.Mutex
	closed   bool
	sagas    map[string]*saga // every unfinished saga
	due      dueHeap          // the same, soonest due first
	buckets  []bucket         // of finished sagas, oldest first; the last takes up those that end
	seed     maphash.Seed     // of the buckets' filters
	lastID   uint64
	last     *commit // the latest that was sent to the disk; nil: none, or no waiting
	commits  int64
	synced   int64  // commits when syncLog last ran
	key      []byte // scratch
	newMarks []byte // scratch
	kept     []kept // scratch

	unreadable map[string]error // unfinished sagas on disk that Open could not read, by gid
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.Wiper         = (*Store)(nil)
	_ store.Verifier      = (*Store)(nil)
	_ store.CounterSource = (*Store)(nil)
)

// saga is an unfinished saga in memory.
type saga struct {
	gid string
	id  uint64
	rec record
	pos int // in the due heap
}

// commit is one write on its way to the disk.
type commit struct {
	done chan struct{} // closed when it, and so all before it, is there
}

// begin starts a call, which must call s.calls.Done when it ends. It returns
// with s.mu held, unless there is an error.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	if err := s.failure(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.calls.Add(1)
	return nil
}

// failure is why the store answers nothing any more, or nil.
func (s *Store) failure() error {
	err := s.disk.failure()
	if err == nil {
		return nil
	}
	return fmt.Errorf("pebble store %s has stopped and must be opened again, once the cause is mended; what it acknowledged is safe: %w",
		s.cfg.Dir, err)
}

// send hands what b holds to pebble; s.mu is held. The changes are seen by
// those who read from now on, so nobody answers from what was read before
// having waited for the commit that was s.last then. It returns nil when there
// is nothing to wait for.
func (s *Store) send(b *pebble.Batch) (sent *commit, err error) {
	if b.Empty() {
		return nil, nil
	}
	if s.cfg.Sync {
		sent = &commit{done: make(chan struct{})}
		err = s.db.ApplyNoSyncWait(b, pebble.Sync)
	} else {
		err = s.db.Apply(b, pebble.NoSync)
	}
	if err != nil { // memory is ahead of the disk now
		s.disk.freeze(err)
		return nil, s.failure()
	}
	s.commits++
	s.last = sent
	return sent, nil
}

// settle waits until b, which was sent as sent, is on disk.
func (s *Store) settle(b *pebble.Batch, sent *commit) error {
	if sent != nil {
		if err := b.SyncWait(); err != nil {
			s.disk.freeze(err)
		}
		close(sent.done)
	}
	return s.failure()
}

// wait waits until what was sent by others is on disk.
func (s *Store) wait(last *commit) error {
	if last != nil {
		<-last.done
	}
	return s.failure()
}

func (s *Store) now() time.Time { return s.cfg.Now() }

// Close implements store.Store.
func (s *Store) Close() error { return s.close() }
