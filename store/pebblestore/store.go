package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// Store is a [store.Store] in a directory. Open returns one.
type Store struct {
	cfg   Config
	disk  *disk
	lock  *pebble.Lock
	db    *pebble.DB
	log   *logger
	calls sync.WaitGroup // calls in progress, and background
	stop  chan struct{}  // closed by Close
	close func() error   // the work of Close, done once

	mu      sync.Mutex
	closed  bool
	sagas   map[string]*saga // every unfinished saga, by gid
	due     dueHeap          // the same sagas, soonest due first
	buckets []bucket         // of finished sagas, oldest first; a saga that ends goes into the last
	seed    maphash.Seed     // of the buckets' filters
	lastID  uint64
	last    commit // the latest one sent to Pebble; nil if there is none, or without Sync
	commits int64
	synced  int64 // commits at the last syncLog

	unreadable map[string]error // unfinished sagas on disk that Open could not read, by gid

	// Scratch space of Apply.
	key      []byte
	newMarks []byte
	ended    []endedSaga
}

var (
	_ store.Store         = (*Store)(nil)
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

// commit is one batch on its way to the disk. It is closed when that batch and all
// before it are on disk.
type commit chan struct{}

// begin starts a call. Unless it returns an error, s.mu is locked and the caller
// must defer end.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	err := s.failure()
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.calls.Add(1)
	return nil
}

// end ends a call. Defer it directly: like rescue it turns a failure of Pebble
// into the call's error.
func (s *Store) end(err *error) {
	defer s.calls.Done()
	if failed := fatalError(recover()); failed != nil {
		*err = failed
	}
}

// failure returns why the store has stopped, or nil.
func (s *Store) failure() error {
	err := s.disk.failure()
	if err == nil {
		return nil
	}
	return fmt.Errorf("pebble store %s has stopped and must be opened again, once the cause is mended; what it acknowledged is safe: %w",
		s.cfg.Dir, err)
}

// write runs build with s.mu locked, writes the batch that build fills, and waits
// until it is on disk. If the batch is empty, write waits for what build saw.
func (s *Store) write(ctx context.Context, build func(b *pebble.Batch)) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end(&err)
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	sent, last, err := s.send(b, build)
	if err != nil {
		return err
	}
	if sent == nil {
		return s.wait(last)
	}
	if err := b.SyncWait(); err != nil {
		s.disk.freeze(err)
	}
	close(sent)
	return s.failure()
}

// send hands the batch that build fills to Pebble, and unlocks s.mu. From then on
// readers see its changes. So a reader must wait for the commit that was s.last
// when it read. sent is nil if there is nothing to wait for.
func (s *Store) send(b *pebble.Batch, build func(b *pebble.Batch)) (sent, last commit, err error) {
	defer s.mu.Unlock()
	build(b)
	if b.Empty() {
		return nil, s.last, nil
	}
	if s.cfg.Sync {
		sent = make(commit)
		err = s.db.ApplyNoSyncWait(b, pebble.Sync)
	} else {
		err = s.db.Apply(b, pebble.NoSync)
	}
	if err != nil { // memory is ahead of the disk now
		s.disk.freeze(err)
		return nil, nil, s.failure()
	}
	s.commits++
	s.last = sent
	return sent, nil, nil
}

// wait waits until the commit is on disk; nil is no commit.
func (s *Store) wait(last commit) error {
	if last != nil {
		<-last
	}
	return s.failure()
}

func (s *Store) now() time.Time { return s.cfg.Now() }

// syncEvery is how often a store without Sync syncs its log. Pebble keeps the last
// 32 KiB of the log in memory until more is written, so the death of the process
// alone would lose them.
const syncEvery = time.Second

// background sweeps and syncs until the store is closed or has failed.
func (s *Store) background() {
	sweep := time.NewTicker(min(s.cfg.bucketWidth(), time.Minute))
	defer sweep.Stop()
	sync := time.NewTicker(syncEvery)
	defer sync.Stop()
	if s.cfg.Sync {
		sync.Stop()
	}
	for {
		var err error
		select {
		case <-s.stop:
			return
		case <-sweep.C:
			err = s.sweep(context.Background())
		case <-sync.C:
			err = s.syncLog(context.Background())
		}
		if errors.Is(err, store.ErrClosed) {
			return
		}
		if err != nil {
			s.cfg.Log.Error("the pebble store stops its background work", "err", err)
			return
		}
	}
}

// syncLog syncs the log if something was written since the last time.
func (s *Store) syncLog(ctx context.Context) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end(&err)
	clean := s.synced == s.commits
	s.synced = s.commits
	s.mu.Unlock()
	if clean {
		return nil
	}
	return s.db.LogData(nil, pebble.Sync)
}

// Close implements store.Store.
func (s *Store) Close() error { return s.close() }
