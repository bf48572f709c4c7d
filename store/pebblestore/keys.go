package pebblestore

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// The first byte of every key says what it holds. Numbers in keys are 8 bytes,
// big-endian. List reads the unfinished before the finished, so that a saga
// which ends in between is not missed.
const (
	unfinishedKey = 'a' // + id: an entry
	finishedKey   = 'd' // + id: an entry with its body
	gidKey        = 'g' // + bucket + gid: the id of a finished saga
	bodyKey       = 'x' // + id: the body of an unfinished saga, where it is not in the entry
)

const (
	idKeyBytes     = 1 + 8
	bucketKeyBytes = 1 + 8
)

// idBits is how far an id's milliseconds are shifted: a million sagas can be
// told apart in each, until the year 2527.
const idBits = 20

func firstID(millis int64) uint64 { return uint64(millis) << idBits }

func appendID(dst []byte, prefix byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, prefix), id)
}

func appendBucket(dst []byte, bucket int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, gidKey), uint64(bucket))
}

// numberIn is the id or the bucket in a key.
func numberIn(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

// setEntry adds an entry to b: one byte with the length of the gid, the gid,
// the record, and the body where the record lacks it.
func setEntry(b *pebble.Batch, prefix byte, id uint64, gid string, rec record, body []byte) {
	op := b.SetDeferred(idKeyBytes, 1+len(gid)+len(rec)+len(body))
	appendID(op.Key[:0], prefix, id)
	v := append(op.Value[:0], byte(len(gid)))
	v = append(v, gid...)
	v = append(v, rec...)
	_ = append(v, body...)
	_ = op.Finish()
}

// splitEntry takes an entry apart. What it returns shares value's bytes.
func splitEntry(value []byte) (gid []byte, rec record, err error) {
	if len(value) < 1 || len(value) < 1+int(value[0]) {
		return nil, nil, fmt.Errorf("an entry of %d bytes", len(value))
	}
	gid, rec = value[1:1+value[0]], record(value[1+value[0]:])
	return gid, rec, checkRecord(rec)
}

// A cursor is the last key that List read. It comes back from outside, so it is
// taken for nothing but a place to seek to.
func encodeCursor(key []byte) string { return base64.RawURLEncoding.EncodeToString(key) }

func decodeCursor(cursor string) ([]byte, error) {
	key, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(key) != idKeyBytes || (key[0] != unfinishedKey && key[0] != finishedKey) {
		return nil, fmt.Errorf("%w: cursor: not one that List returned", store.ErrInvalid)
	}
	return key, nil
}
