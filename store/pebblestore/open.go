package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Open opens the store in cfg.Dir, or creates one. It reads all unfinished sagas
// into memory, and the gids of up to 4 million finished ones. It returns
// store.ErrInUse if another Store, of this process or another, uses the directory,
// and store.ErrUnsafe if the directory contains anything but a store that this
// version can read.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cfg, err = cfg.check()
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg:        cfg,
		stop:       make(chan struct{}),
		sagas:      make(map[string]*saga),
		seed:       maphash.MakeSeed(),
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

// openDB opens the database in the locked directory, and loads the sagas.
func (s *Store) openDB(ctx context.Context) (err error) {
	defer rescue(&err)
	if err := s.checkFormat(); err != nil {
		return err
	}
	s.db, err = pebble.Open(s.cfg.Dir, s.options())
	if err == nil {
		// On a frozen disk pebble.Open succeeds.
		err = s.disk.failure()
	}
	if err == nil {
		err = s.load(ctx)
	}
	return err
}

// shut waits for the calls in progress and the background, then closes the database.
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

// release closes the database and unlocks the directory. A halted Pebble cannot
// be closed, and locks the directory until the process ends.
func (s *Store) release() (err error) {
	defer rescue(&err)
	close(s.disk.closing)
	if s.disk.halted.Load() {
		return nil
	}
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, s.lock.Close())
}
