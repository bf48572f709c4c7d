package pebblestore

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// syncEvery is how often a store that does not sync its writes does so by
// itself. Without that pebble keeps the last 32 KiB of its log to itself until
// more is written, and the death of the process alone would lose them.
const syncEvery = time.Second

// background runs until the store is closed or has failed.
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
			s.cfg.Log.Error("the pebble store does nothing in the background any more", "err", err)
			return
		}
	}
}

// syncLog takes to the disk what was written and is not there yet.
func (s *Store) syncLog(ctx context.Context) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)
	clean := s.synced == s.commits
	s.synced = s.commits
	s.mu.Unlock()
	if clean {
		return nil
	}
	return s.db.LogData(nil, pebble.Sync)
}
