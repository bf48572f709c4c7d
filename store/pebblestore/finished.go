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

// lookup finds finished sagas by their gid. It sees what was there when it was
// first used, and must be closed.
type lookup struct {
	s  *Store
	it *pebble.Iterator
}

// find reads the record of a finished saga, body included, unless its retention
// has passed. Buckets are those that mayHold lists: of a gid that was used again
// the newest saga is meant.
func (l *lookup) find(buckets []int64, gid string, now time.Time) (rec record, found bool, err error) {
	if len(buckets) == 0 {
		return nil, false, nil
	}
	if l.it == nil {
		// Pebble's filters, too, keep this from reading tables in vain; those
		// of its last level have to be asked for.
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
			return l.read(gid, now)
		}
	}
	return nil, false, l.it.Error()
}

// read follows the index entry that find has found.
func (l *lookup) read(gid string, now time.Time) (rec record, found bool, err error) {
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
	there, rec, err := splitEntry(bytes.Clone(value))
	if err = errors.Join(err, closer.Close()); err != nil {
		return nil, false, err
	}
	if string(there) != gid {
		return nil, false, fmt.Errorf("the index leads to %s", there)
	}
	return rec, !l.s.expired(rec, now), nil
}

func (l *lookup) close() {
	if l.it != nil {
		_ = l.it.Close()
	}
}

// expired reports whether a finished saga's retention has passed.
func (s *Store) expired(rec record, now time.Time) bool {
	return rec.time(updatedAt)+s.cfg.Retention.Milliseconds() <= now.UnixMilli()
}
