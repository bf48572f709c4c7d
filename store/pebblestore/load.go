package pebblestore

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
)

// load reads the unfinished sagas and finds the buckets of the finished.
func (s *Store) load(ctx context.Context) error {
	err := s.scan(unfinishedKey, func(it *pebble.Iterator) error {
		for valid := it.First(); valid; valid = it.Next() {
			g, err := readSaga(it)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			g.pos = len(s.due)
			s.due = append(s.due, g)
			s.sagas[g.gid] = g
			s.lastID = g.id
		}
		heap.Init(&s.due)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.scan(finishedKey, func(it *pebble.Iterator) error {
		if it.Last() {
			s.lastID = max(s.lastID, numberIn(it.Key()))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.scan(gidKey, s.loadBuckets)
}

// loadBuckets finds the buckets of the finished sagas, and fills their filters
// until it has read as many gids as it may.
func (s *Store) loadBuckets(it *pebble.Iterator) error {
	read := 0
	for valid := it.First(); valid; read++ {
		start := int64(numberIn(it.Key()))
		if n := len(s.buckets); n == 0 || s.buckets[n-1].start != start {
			s.buckets = append(s.buckets, bucket{start: start, gids: new(filter)})
		}
		b := &s.buckets[len(s.buckets)-1]
		if read >= s.cfg.maxLoadedGIDs {
			b.gids = nil
			valid = it.SeekGE(appendBucket(nil, start+1))
			continue
		}
		b.gids.add(maphash.Bytes(s.seed, it.Key()[bucketKeyBytes:]))
		valid = it.Next()
	}
	if n := len(s.buckets); n == 0 || s.buckets[n-1].gids == nil {
		s.beginBucket(s.now())
	}
	return nil
}

// scan runs f over the keys with the prefix.
func (s *Store) scan(prefix byte, f func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Error(), it.Close())
}

// readSaga reads the unfinished saga at it.
func readSaga(it *pebble.Iterator) (*saga, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, err
	}
	gid, rec, err := splitEntry(bytes.Clone(value))
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", it.Key(), err)
	}
	if rec.status().Final() {
		return nil, fmt.Errorf("unfinished saga %s: its status is %v", gid, rec.status())
	}
	return &saga{gid: string(gid), id: numberIn(it.Key()), rec: rec}, nil
}
