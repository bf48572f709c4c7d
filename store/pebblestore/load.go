package pebblestore

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// load reads the unfinished sagas, and finds the buckets of the finished ones. A
// saga that cannot be read stays on disk and is logged. Its gid cannot be used again.
func (s *Store) load(ctx context.Context) error {
	err := s.scan(unfinishedKey, func(it *pebble.Iterator) error {
		for valid := it.First(); valid; valid = it.Next() {
			g, err := readSaga(it)
			s.lastID = max(s.lastID, g.id)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, store.ErrUnreadable):
				s.cfg.Log.Error("an unfinished saga cannot be read and is not run", "dir", s.cfg.Dir, "gid", g.gid, "error", err)
				s.unreadable[g.gid] = err
				continue
			case err != nil:
				return err
			}
			g.pos = len(s.due)
			s.due = append(s.due, g)
			s.sagas[g.gid] = g
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

// loadBuckets finds the buckets of the finished sagas, and fills their filters with
// up to cfg.maxLoadedGIDs gids. A bucket whose gids it did not all read gets no filter.
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

// scan calls f with an iterator over the keys with a prefix.
func (s *Store) scan(prefix byte, f func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		return err
	}
	return errors.Join(f(it), it.Error(), it.Close())
}

// readSaga reads the unfinished saga at it. With an error it returns the gid, if that
// can be read.
func readSaga(it *pebble.Iterator) (*saga, error) {
	if len(it.Key()) != idKeyBytes {
		return new(saga), unreadableEntry(it.Key(), nil, errors.New(unknownKey))
	}
	g := &saga{id: numberIn(it.Key())}
	value, err := it.ValueAndErr()
	if err != nil {
		return g, err
	}
	gid, rec, err := splitEntry(bytes.Clone(value))
	g.gid, g.rec = string(gid), rec
	if err == nil && rec.status().Final() {
		err = fmt.Errorf("its key is that of an unfinished saga, its status is %v", rec.status())
	}
	if err != nil {
		return g, unreadableEntry(it.Key(), gid, err)
	}
	return g, nil
}

func unreadableEntry(key, gid []byte, err error) error {
	return fmt.Errorf("key %x, saga %s: %w: %w", key, gid, store.ErrUnreadable, err)
}
