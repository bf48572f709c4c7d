package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// lookup finds finished sagas by their gid. It reads the database as it was at the
// first search, and must be closed.
type lookup struct {
	s   *Store
	now time.Time
	it  *pebble.Iterator
}

// findEnded returns the record of a saga that is not in memory; s.mu is held.
func (l *lookup) findEnded(gid string) (rec record, found bool, err error) {
	if err := l.s.unreadable[gid]; err != nil {
		return nil, false, err
	}
	return l.find(l.s.bucketsOf(gid), gid)
}

// find reads the record of a finished saga, body included, unless it has expired.
// buckets are from bucketsOf: of a gid that was used again, the newest saga counts.
func (l *lookup) find(buckets []int64, gid string) (rec record, found bool, err error) {
	if len(buckets) == 0 {
		return nil, false, nil
	}
	if l.it == nil {
		// Pebble uses the filters of its last level only on demand.
		l.it, err = l.s.db.NewIter(&pebble.IterOptions{
			LowerBound:   []byte{gidKey},
			UpperBound:   []byte{gidKey + 1},
			UseL6Filters: true,
		})
		if err != nil {
			return nil, false, err
		}
	}
	var scratch [bucketKeyBytes + store.MaxGIDBytes]byte
	for _, bucket := range buckets {
		if l.it.SeekPrefixGE(append(appendBucket(scratch[:0], bucket), gid...)) {
			return l.read(gid)
		}
	}
	return nil, false, l.it.Error()
}

// read reads the entry to which the index entry at l.it points.
func (l *lookup) read(gid string) (rec record, found bool, err error) {
	id, err := l.it.ValueAndErr()
	if err != nil {
		return nil, false, err
	}
	value, closer, err := l.s.db.Get(appendID(nil, finishedKey, binary.BigEndian.Uint64(id)))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil // swept since
	}
	if err != nil {
		return nil, false, err
	}
	got, rec, err := splitEntry(bytes.Clone(value))
	if err = errors.Join(err, closer.Close()); err != nil {
		return nil, false, err
	}
	if string(got) != gid {
		return nil, false, fmt.Errorf("the index points to %s", got)
	}
	return rec, !l.s.expired(rec, l.now), nil
}

func (l *lookup) close() {
	if l.it != nil {
		_ = l.it.Close()
	}
}
