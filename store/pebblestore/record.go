package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"sagabench/store"
)

// record is a saga as it is kept, in memory and on disk alike, without its gid:
// a header of fixed width, then marks, note and body. A transition changes it
// in place, so that writing it again costs one copy and no encoding.
type record []byte

// Where the parts of a record begin. Numbers are big-endian, times are
// milliseconds since 1970, the owner is padded with zero bytes.
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

// maxInlineBody is the longest body, in bytes, that is part of an unfinished
// saga's record, which is held in memory and written with every change. A
// longer one is written once, under a key of its own, and not held in memory.
// Measured as in options.go, a saga with a body of 300 bytes costs 6.5 µs this
// way and 8.3 the other; 1,000: 10.4 and 11.4; 2,000: 15.7 and 16.1; 4,000: 26.9
// and 23.9.
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

// checkRecord says why bytes read from the disk are not a record.
func checkRecord(r record) error {
	switch {
	case len(r) < marksAt:
		return fmt.Errorf("a record of %d bytes, the shortest has %d", len(r), marksAt)
	case !r.status().Valid():
		return fmt.Errorf("a record of unknown status %q", r[statusAt])
	case len(r) != r.end() && len(r) != r.end()+r.bodyLen():
		return fmt.Errorf("a record of %d bytes that should have %d", len(r), r.end()+r.bodyLen())
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

// end is where the note ends and an inline body begins.
func (r record) end() int {
	return marksAt + 2*r.steps() + int(binary.BigEndian.Uint16(r[noteLenAt:]))
}

// body is the inline body; inline is false when the body has its own key.
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

// withNote is a copy of r with another note.
func (r record) withNote(note string) record {
	head, body := r[:marksAt+2*r.steps()], r[r.end():]
	changed := make(record, 0, len(head)+len(note)+len(body))
	changed = append(changed, head...)
	changed = append(changed, note...)
	changed = append(changed, body...)
	binary.BigEndian.PutUint16(changed[noteLenAt:], uint16(len(note)))
	return changed
}

// decode is r as the contract has it, less its body. It shares nothing with r.
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

// complete is r as the contract has it. Body is used where it is not in the
// record.
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

// dueAfter is the time that is d from now: never early, and at once for a d
// that is not positive.
func dueAfter(now time.Time, d time.Duration) int64 {
	due := now.Add(max(d, 0))
	millis := due.UnixMilli()
	if d > 0 && time.UnixMilli(millis).Before(due) {
		millis++
	}
	return millis
}
