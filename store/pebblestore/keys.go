package pebblestore

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// The first byte of a key is its kind. Numbers in keys are 8 bytes, big-endian.
// List reads unfinished sagas before finished ones, so that it does not miss a saga
// that ends between two pages.
const (
	unfinishedKey = 'a' // + id: an entry
	finishedKey   = 'd' // + id: an entry, always with its body
	gidKey        = 'g' // + bucket + gid: the id of a finished saga
	bodyKey       = 'x' // + id: the body of an unfinished saga, if the entry lacks it
)

const (
	idKeyBytes     = 1 + 8
	bucketKeyBytes = 1 + 8
)

// idBits is how far an id's milliseconds are shifted. It leaves a million ids for
// each millisecond, until the year 2527.
const idBits = 20

func firstID(millis int64) uint64 { return uint64(millis) << idBits }

func appendID(dst []byte, prefix byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, prefix), id)
}

func appendBucket(dst []byte, bucket int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, gidKey), uint64(bucket))
}

// numberIn returns the id or the bucket in a key.
func numberIn(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

// setEntry adds an entry to b: one byte with the length of the gid, the gid, the
// record, and body, which is nil if the record contains it.
func setEntry(b *pebble.Batch, prefix byte, id uint64, gid string, rec record, body []byte) {
	op := b.SetDeferred(idKeyBytes, 1+len(gid)+len(rec)+len(body))
	appendID(op.Key[:0], prefix, id)
	v := append(op.Value[:0], byte(len(gid)))
	v = append(v, gid...)
	v = append(v, rec...)
	_ = append(v, body...)
	_ = op.Finish()
}

// splitEntry decodes an entry. Its results share value's bytes.
func splitEntry(value []byte) (gid []byte, rec record, err error) {
	if len(value) < 1 || len(value) < 1+int(value[0]) {
		return nil, nil, fmt.Errorf("an entry of %d bytes", len(value))
	}
	gid, rec = value[1:1+value[0]], record(value[1+value[0]:])
	return gid, rec, checkRecord(rec)
}

// encodeCursor returns the cursor of a page of List: the last key that it read. The
// caller may have changed it, so it is only a place to seek to.
func encodeCursor(key []byte) string { return base64.RawURLEncoding.EncodeToString(key) }

func decodeCursor(cursor string) ([]byte, error) {
	key, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(key) != idKeyBytes || (key[0] != unfinishedKey && key[0] != finishedKey) {
		return nil, fmt.Errorf("%w: cursor: not returned by List", store.ErrInvalid)
	}
	return key, nil
}
