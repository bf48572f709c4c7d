package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Open opens the store in cfg.Dir, or makes one. It reads all unfinished sagas
// into memory, and the gids of up to 4 million finished ones. Its errors wrap
// store.ErrInUse when another Store, of this process or another, has the
// directory, and store.ErrUnsafe when the directory holds something else than a
// store that this version can read.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cfg, err = cfg.check()
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg:   cfg,
		stop:  make(chan struct{}),
		sagas: make(map[string]*saga),
		seed:  maphash.MakeSeed(),

		unreadable: make(map[string]error),
	}
	s.disk = newDisk(cfg.fs, func(err error) {
		cfg.Log.Error("the pebble store has stopped", "dir", cfg.Dir, "err", err)
	})
	s.log = &logger{log: cfg.Log, disk: s.disk}
	s.close = sync.OnceValue(s.shut)
	if err := s.lockDir(); err != nil {
		return nil, err
	}
	if err := s.openDB(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the pebble store %s: %w", s.cfg.Dir, err), s.release())
	}
	s.calls.Go(s.background)
	return s, nil
}

// openDB opens what the locked directory holds.
func (s *Store) openDB(ctx context.Context) (err error) {
	defer s.log.rescue(&err)
	if err := s.checkFormat(); err != nil {
		return err
	}
	s.db, err = pebble.Open(s.cfg.Dir, s.options())
	if err == nil {
		// A frozen disk makes pebble believe that it could open.
		err = s.disk.failure()
	}
	if err == nil {
		err = s.load(ctx)
	}
	return err
}

// shut ends the calls under way and the sweeper, then the database.
func (s *Store) shut() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.calls.Wait()
	if err := s.release(); err != nil {
		return fmt.Errorf("close the pebble store %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// release gives up what Open took. A halted pebble cannot be closed and keeps
// the directory until the process ends.
func (s *Store) release() (err error) {
	defer s.log.rescue(&err)
	close(s.disk.closing)
	if s.disk.halted.Load() {
		return nil
	}
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, s.lock.Close())
}
