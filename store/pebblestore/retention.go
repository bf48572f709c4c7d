package pebblestore

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// bucketWidth is for how long sagas that end go into the same bucket.
func (c Config) bucketWidth() time.Duration { return max(c.Retention/2, time.Second) }

// bucket is the sagas that ended from its start, in milliseconds since 1970, to the
// start of the next. Their ids are a range of their own.
type bucket struct {
	start int64
	gids  *filter
}

// current returns the bucket of the sagas that end now; s.mu is held.
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

// bucketsOf returns the starts of the buckets that may contain a gid, the newest
// first: nearly always none. s.mu is held.
func (s *Store) bucketsOf(gid string) (starts []int64) {
	hash := maphash.String(s.seed, gid)
	for _, b := range slices.Backward(s.buckets) {
		if b.gids.mayContain(hash) {
			starts = append(starts, b.start)
		}
	}
	return starts
}

// expired reports whether a finished saga's retention has passed.
func (s *Store) expired(rec record, now time.Time) bool {
	return rec.time(updatedAt)+s.cfg.Retention.Milliseconds() <= now.UnixMilli()
}

// sweep drops the buckets in which every saga has expired: those whose successor
// began a retention ago. A bucket is two range tombstones, which Pebble turns into
// deleted files, so the cost does not depend on the number of sagas.
func (s *Store) sweep(ctx context.Context) error {
	return s.write(ctx, func(b *pebble.Batch) {
		now := s.now()
		if !s.buckets[len(s.buckets)-1].gids.empty() {
			s.current(now)
		}
		for len(s.buckets) > 1 && s.buckets[1].start+s.cfg.Retention.Milliseconds() <= now.UnixMilli() {
			if old, next := s.buckets[0].start, s.buckets[1].start; !s.buckets[0].gids.empty() {
				_ = b.DeleteRange(appendBucket(nil, old), appendBucket(nil, next), nil)
				_ = b.DeleteRange(appendID(nil, finishedKey, firstID(old)), appendID(nil, finishedKey, firstID(next)), nil)
			}
			s.buckets = s.buckets[1:]
		}
	})
}
