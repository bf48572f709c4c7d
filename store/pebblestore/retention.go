package pebblestore

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// bucketWidth is for how long one bucket takes up finished sagas.
func (c Config) bucketWidth() time.Duration { return max(c.Retention/2, time.Second) }

// bucket is what ended from its start, in milliseconds since 1970, to the start
// of the next. The ids of its sagas are a range of their own.
type bucket struct {
	start int64
	gids  *filter
}

// current is the bucket of the sagas that end now; s.mu is held.
func (s *Store) current(now time.Time) bucket {
	if last := s.buckets[len(s.buckets)-1]; now.UnixMilli() < last.start+s.cfg.bucketWidth().Milliseconds() {
		return last
	}
	return s.beginBucket(now)
}

func (s *Store) beginBucket(now time.Time) bucket {
	b := bucket{start: max(now.UnixMilli(), int64(s.lastID>>idBits)+1), gids: new(filter)}
	s.buckets = append(s.buckets, b)
	s.lastID = firstID(b.start)
	return b
}

// mayHold lists the buckets that may hold a gid, the newest first: nearly
// always none. s.mu is held.
func (s *Store) mayHold(gid string) (starts []int64) {
	hash := maphash.String(s.seed, gid)
	for _, b := range slices.Backward(s.buckets) {
		if b.gids.mayHold(hash) {
			starts = append(starts, b.start)
		}
	}
	return starts
}

// sweep drops the buckets that hold nothing but expired sagas: those whose
// successor began a retention ago. Each is two range tombstones, which pebble
// turns into deleted files, so it costs the same however much it drops.
func (s *Store) sweep(ctx context.Context) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)
	defer s.mu.Unlock()
	now := s.now()
	if !s.buckets[len(s.buckets)-1].gids.empty() {
		s.current(now)
	}
	for len(s.buckets) > 1 && s.buckets[1].start+s.cfg.Retention.Milliseconds() <= now.UnixMilli() {
		if err := s.drop(s.buckets[0], s.buckets[1].start); err != nil {
			return err
		}
		s.buckets = s.buckets[1:]
	}
	return nil
}

// drop deletes what is in a bucket, if anything is.
func (s *Store) drop(old bucket, next int64) error {
	if old.gids.empty() {
		return nil
	}
	b := s.db.NewBatch()
	_ = b.DeleteRange(appendBucket(nil, old.start), appendBucket(nil, next), nil)
	_ = b.DeleteRange(appendID(nil, finishedKey, firstID(old.start)), appendID(nil, finishedKey, firstID(next)), nil)
	// No sync: what comes back after a crash is expired still.
	return errors.Join(s.db.Apply(b, pebble.NoSync), b.Close())
}
