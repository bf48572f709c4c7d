package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"sagabench/store"
)

// record is a saga without its gid, encoded the same way in memory and on disk: a
// header of fixed width, then marks, note and body. A transition changes it in place,
// so writing it again costs one copy and no encoding.
type record []byte

// Offsets of the parts of a record. Numbers are big-endian, times are milliseconds
// since 1970, the owner is padded with zero bytes.
const (
	statusAt  = 0
	epochAt   = statusAt + 1
	ownerAt   = epochAt + 4
	createdAt = ownerAt + store.MaxOwnerBytes
	updatedAt = createdAt + 8
	dueAt     = updatedAt + 8 // 0: it has ended
	stepsAt   = dueAt + 8
	noteLenAt = stepsAt + 2
	bodyLenAt = noteLenAt + 2
	marksAt   = bodyLenAt + 4
)

// maxInlineBody is the longest body, in bytes, in the record of an unfinished saga,
// which is in memory and written with every change. A longer body is written once,
// under its own key, and not kept in memory. Measured as in options.go, in µs a saga:
//
//	body, bytes     300  1,000  2,000  4,000
//	in the record   6.5   10.4   15.7   26.9
//	its own key     8.3   11.4   16.1   23.9
const maxInlineBody = 1024

func newRecord(c *store.Create, created, due int64) record {
	body := c.Body
	if len(body) > maxInlineBody {
		body = nil
	}
	r := make(record, marksAt, marksAt+2*c.Steps+len(body))
	r[statusAt] = byte(store.StatusSubmitted)
	r.setEpoch(1)
	r.setOwner(c.Owner)
	r.setTime(createdAt, created)
	r.setTime(updatedAt, created)
	r.setTime(dueAt, due)
	binary.BigEndian.PutUint16(r[stepsAt:], uint16(c.Steps))
	binary.BigEndian.PutUint32(r[bodyLenAt:], uint32(len(c.Body)))
	r = append(r, store.NewMarks(c.Steps)...)
	return append(r, body...)
}

// checkRecord returns why bytes read from disk are not a record, or nil.
func checkRecord(r record) error {
	switch {
	case len(r) < marksAt:
		return fmt.Errorf("a record of %d bytes, the shortest has %d", len(r), marksAt)
	case !r.status().Valid():
		return fmt.Errorf("a record of unknown status %q", r[statusAt])
	case len(r) != r.end() && len(r) != r.end()+r.bodyLen():
		return fmt.Errorf("a record of %d bytes, want %d", len(r), r.end()+r.bodyLen())
	}
	return nil
}

func (r record) status() store.Status { return store.Status(r[statusAt]) }
func (r record) epoch() uint32        { return binary.BigEndian.Uint32(r[epochAt:]) }
func (r record) owner() []byte        { return bytes.TrimRight(r[ownerAt:createdAt], "\x00") }
func (r record) time(at int) int64    { return int64(binary.BigEndian.Uint64(r[at:])) }
func (r record) due() int64           { return r.time(dueAt) }
func (r record) steps() int           { return int(binary.BigEndian.Uint16(r[stepsAt:])) }
func (r record) bodyLen() int         { return int(binary.BigEndian.Uint32(r[bodyLenAt:])) }
func (r record) marks() []byte        { return r[marksAt : marksAt+2*r.steps()] }
func (r record) note() []byte         { return r[marksAt+2*r.steps() : r.end()] }

// end is the offset at which the note ends and an inline body begins.
func (r record) end() int {
	return marksAt + 2*r.steps() + int(binary.BigEndian.Uint16(r[noteLenAt:]))
}

// body returns the inline body; inline is false if the body has its own key.
func (r record) body() (body []byte, inline bool) {
	body = r[r.end():]
	return body, len(body) == r.bodyLen()
}

func (r record) setStatus(s store.Status)     { r[statusAt] = byte(s) }
func (r record) setEpoch(epoch uint32)        { binary.BigEndian.PutUint32(r[epochAt:], epoch) }
func (r record) setTime(at int, millis int64) { binary.BigEndian.PutUint64(r[at:], uint64(millis)) }

func (r record) setOwner(owner string) {
	clear(r[ownerAt+copy(r[ownerAt:createdAt], owner) : createdAt])
}

// withNote returns a copy of r with another note.
func (r record) withNote(note string) record {
	head, body := r[:marksAt+2*r.steps()], r[r.end():]
	changed := make(record, 0, len(head)+len(note)+len(body))
	changed = append(changed, head...)
	changed = append(changed, note...)
	changed = append(changed, body...)
	binary.BigEndian.PutUint16(changed[noteLenAt:], uint16(len(note)))
	return changed
}

// decode returns the contract's record without its body. It shares nothing with r.
func (r record) decode(gid string) store.Record {
	return store.Record{
		GID:     gid,
		Status:  r.status(),
		Marks:   store.Marks(r.marks()),
		Epoch:   r.epoch(),
		Owner:   string(r.owner()),
		Created: fromMillis(r.time(createdAt)),
		Updated: fromMillis(r.time(updatedAt)),
		Due:     fromMillis(r.due()),
		Note:    string(r.note()),
	}
}

// complete returns the contract's record. body is for a record without its own.
func (r record) complete(gid string, body []byte) store.Record {
	decoded := r.decode(gid)
	if inline, ok := r.body(); ok {
		body = bytes.Clone(inline)
	}
	decoded.Body = body
	return decoded
}

func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// dueAfter returns the time d from now in milliseconds, rounded up. A negative d is 0.
func dueAfter(now time.Time, d time.Duration) int64 {
	due := now.Add(max(d, 0))
	millis := due.UnixMilli()
	if d > 0 && time.UnixMilli(millis).Before(due) {
		millis++
	}
	return millis
}
