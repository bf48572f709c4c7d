package pebblestore

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// Apply implements store.Applier. All changes of a call are one Pebble batch, and
// so one fsync.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	err := s.write(ctx, func(b *pebble.Batch) { s.build(b, changes, errs) })
	if err != nil {
		for i := range errs {
			if !errors.Is(errs[i], store.ErrInvalid) {
				errs[i] = err
			}
		}
	}
	return errs
}

// build adds the changes to b, except those that have an error in errs or get one
// here.
func (s *Store) build(b *pebble.Batch, changes []store.Change, errs []error) {
	l := lookup{s: s, now: s.now()}
	defer l.close()
	// Keys that follow each other are added together: Pebble knows the place of
	// such a key. The search for it is most of what a key costs, 0.6 µs a saga.
	for i, c := range changes {
		if c, ok := c.(*store.Create); ok && errs[i] == nil {
			errs[i] = wrap("create", c.GID, s.create(b, &l, c))
		}
	}
	for i, c := range changes {
		if t, ok := c.(*store.Transition); ok && errs[i] == nil {
			errs[i] = wrap("transition of", t.GID, s.transition(b, &l, t))
		}
	}
	s.writeEnded(b, l.now)
}

func wrap(doing, gid string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, gid, err)
}

// create adds c to b, or returns why it cannot.
func (s *Store) create(b *pebble.Batch, l *lookup, c *store.Create) error {
	body, found, err := s.bodyOf(l, c.GID)
	switch {
	case err != nil:
		return err
	case found && bytes.Equal(body, c.Body):
		return store.ErrDuplicate
	case found:
		return store.ErrExists
	}
	g := &saga{
		// The caller's string may be part of a longer one, and this copy lives
		// as long as the saga.
		gid: strings.Clone(c.GID),
		id:  s.nextID(l.now),
		rec: newRecord(c, l.now.UnixMilli(), dueAfter(l.now, c.Due)),
	}
	if _, inline := g.rec.body(); !inline {
		s.key = appendID(s.key[:0], bodyKey, g.id)
		_ = b.Set(s.key, c.Body, nil)
	}
	s.sagas[g.gid] = g
	heap.Push(&s.due, g)
	s.setUnfinished(b, g)
	return nil
}

// bodyOf returns the body of a saga, finished or not.
func (s *Store) bodyOf(l *lookup, gid string) (body []byte, found bool, err error) {
	g, found := s.sagas[gid]
	if found {
		if body, err = longBody(s.db, g.id, g.rec); body != nil || err != nil {
			return body, true, err
		}
		body, _ = g.rec.body()
		return body, true, nil
	}
	rec, found, err := l.findEnded(gid)
	if found {
		body, _ = rec.body()
	}
	return body, found, err
}

// transition adds t to b, or returns why it cannot.
func (s *Store) transition(b *pebble.Batch, l *lookup, t *store.Transition) error {
	g, ok := s.sagas[t.GID]
	if !ok {
		_, found, err := l.findEnded(t.GID)
		switch {
		case err != nil:
			return err
		case found:
			return fmt.Errorf("%w: it has ended", store.ErrConflict)
		default:
			return store.ErrNotFound
		}
	}
	s.newMarks = append(s.newMarks[:0], g.rec.marks()...)
	if err := t.SetMarks(s.newMarks, g.rec.status(), g.rec.epoch(), string(g.rec.owner())); err != nil {
		return err
	}
	var body []byte
	if t.To.Final() && s.cfg.Retention > 0 {
		var err error
		if body, err = longBody(s.db, g.id, g.rec); err != nil {
			return err
		}
	}

	// Nothing is refused from here on, so memory and b agree.
	copy(g.rec.marks(), s.newMarks)
	if t.Note != "" {
		g.rec = g.rec.withNote(t.Note)
	}
	if t.To != t.From {
		g.rec.setStatus(t.To)
		g.rec.setTime(updatedAt, l.now.UnixMilli())
	}
	if t.To.Final() {
		s.finish(b, g, body)
		return nil
	}
	if t.Release {
		g.rec.setOwner("")
	}
	if t.Due != 0 {
		s.setDue(g, dueAfter(l.now, t.Due))
	}
	s.setUnfinished(b, g)
	return nil
}

// endedSaga is a saga that ends with the batch being built, and its body unless the
// record contains it.
type endedSaga struct {
	*saga
	body []byte
}

// finish removes g from the unfinished sagas. As elsewhere, the error of adding to
// a batch is dropped: only batches with an index return one.
func (s *Store) finish(b *pebble.Batch, g *saga, body []byte) {
	g.rec.setTime(dueAt, 0)
	heap.Remove(&s.due, g.pos)
	delete(s.sagas, g.gid)
	s.key = appendID(s.key[:0], unfinishedKey, g.id)
	_ = b.Delete(s.key, nil)
	if _, inline := g.rec.body(); !inline {
		s.key = appendID(s.key[:0], bodyKey, g.id)
		_ = b.Delete(s.key, nil)
	}
	if s.cfg.Retention > 0 {
		s.ended = append(s.ended, endedSaga{g, body})
	}
}

// writeEnded adds the sagas in s.ended to b, as finished ones.
func (s *Store) writeEnded(b *pebble.Batch, now time.Time) {
	if len(s.ended) == 0 {
		return
	}
	bucket := s.current(now)
	for _, g := range s.ended {
		g.id = s.nextID(now)
		bucket.gids.add(maphash.String(s.seed, g.gid))
		setEntry(b, finishedKey, g.id, g.gid, g.rec, g.body)
	}
	for _, g := range s.ended {
		op := b.SetDeferred(bucketKeyBytes+len(g.gid), 8)
		_ = append(appendBucket(op.Key[:0], bucket.start), g.gid...)
		binary.BigEndian.PutUint64(op.Value, g.id)
		_ = op.Finish()
	}
	clear(s.ended)
	s.ended = s.ended[:0]
}

// nextID returns the id of a saga that is created or ends now. Ids rise even if
// the clock does not.
func (s *Store) nextID(now time.Time) uint64 {
	s.lastID = max(s.lastID+1, firstID(now.UnixMilli()))
	return s.lastID
}

// longBody reads the body of an unfinished saga that is too long for the record. It
// returns nil if the record contains the body.
func longBody(from pebble.Reader, id uint64, rec record) ([]byte, error) {
	if _, inline := rec.body(); inline {
		return nil, nil
	}
	value, closer, err := from.Get(appendID(nil, bodyKey, id))
	if err != nil {
		return nil, fmt.Errorf("%w: body: %w", store.ErrUnreadable, err)
	}
	defer func() { _ = closer.Close() }()
	if len(value) != rec.bodyLen() {
		return nil, fmt.Errorf("%w: body: %d bytes, want %d", store.ErrUnreadable, len(value), rec.bodyLen())
	}
	return bytes.Clone(value), nil
}
