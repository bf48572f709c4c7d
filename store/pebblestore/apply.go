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

// Apply implements store.Applier. All changes of a call are one batch of
// pebble's, so one fsync.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	if err := s.apply(ctx, changes, errs); err != nil {
		for i := range errs {
			if !errors.Is(errs[i], store.ErrInvalid) {
				errs[i] = err
			}
		}
	}
	return errs
}

// apply fills in errs where it is nil. Its own error stands for all of them.
func (s *Store) apply(ctx context.Context, changes []store.Change, errs []error) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)

	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	sent, last, err := s.build(b, changes, errs)
	switch {
	case err != nil:
		return err
	case sent != nil:
		return s.settle(b, sent)
	default:
		return s.wait(last)
	}
}

// build is the part of apply that holds s.mu, which it releases.
func (s *Store) build(b *pebble.Batch, changes []store.Change, errs []error) (sent, last *commit, err error) {
	defer s.mu.Unlock()
	l := lookup{s: s}
	defer l.close()
	now := s.now()
	// Keys that follow each other are added together: of such a key pebble knows
	// the place. Looking for it is most of what a key costs, and it is 0.6 µs a saga.
	for i, c := range changes {
		if c, ok := c.(*store.Create); ok && errs[i] == nil {
			errs[i] = s.create(b, &l, c, now)
		}
	}
	for i, c := range changes {
		if t, ok := c.(*store.Transition); ok && errs[i] == nil {
			errs[i] = s.transition(b, &l, t, now)
		}
	}
	s.keep(b, now)
	sent, err = s.send(b)
	return sent, s.last, err
}

// create adds c to b, or says why not.
func (s *Store) create(b *pebble.Batch, l *lookup, c *store.Create, now time.Time) error {
	if there, found, err := s.bodyOf(l, c.GID, now); err != nil {
		return fmt.Errorf("create %s: %w", c.GID, err)
	} else if found && bytes.Equal(there, c.Body) {
		return fmt.Errorf("create %s: %w", c.GID, store.ErrDuplicate)
	} else if found {
		return fmt.Errorf("create %s: %w", c.GID, store.ErrExists)
	}
	g := &saga{
		// The caller's string may be part of a longer one, and this copy lives
		// as long as the saga.
		gid: strings.Clone(c.GID),
		id:  s.nextID(now),
		rec: newRecord(c, now.UnixMilli(), dueAfter(now, c.Due)),
	}
	if _, inline := g.rec.body(); !inline {
		s.key = appendID(s.key[:0], bodyKey, g.id)
		_ = b.Set(s.key, c.Body, nil)
	}
	s.sagas[g.gid] = g
	heap.Push(&s.due, g)
	setEntry(b, unfinishedKey, g.id, g.gid, g.rec, nil)
	return nil
}

// transition adds t to b, or says why not.
func (s *Store) transition(b *pebble.Batch, l *lookup, t *store.Transition, now time.Time) error {
	g, ok := s.sagas[t.GID]
	if !ok {
		found, err := false, s.unreadable[t.GID]
		if err == nil {
			_, found, err = l.find(s.mayHold(t.GID), t.GID, now)
		}
		switch {
		case err != nil:
			return fmt.Errorf("transition of %s: %w", t.GID, err)
		case found:
			return fmt.Errorf("transition of %s: %w: it has ended", t.GID, store.ErrConflict)
		default:
			return fmt.Errorf("transition of %s: %w", t.GID, store.ErrNotFound)
		}
	}
	if g.rec.epoch() != t.Epoch || g.rec.status() != t.From {
		return fmt.Errorf("transition of %s: %w: it is %v in epoch %d, not %v in epoch %d",
			t.GID, store.ErrConflict, g.rec.status(), g.rec.epoch(), t.From, t.Epoch)
	}
	if err := s.mark(g.rec.marks(), t.Marks); err != nil {
		return fmt.Errorf("transition of %s: %w", t.GID, err)
	}
	var body []byte
	if t.To.Final() && s.cfg.Retention > 0 {
		var err error
		if body, err = s.longBody(g); err != nil {
			return fmt.Errorf("transition of %s: %w", t.GID, err)
		}
	}

	// Nothing is refused from here on, so memory and b stay alike.
	copy(g.rec.marks(), s.newMarks)
	if t.Note != "" {
		g.rec = g.rec.withNote(t.Note)
	}
	if t.To != t.From {
		g.rec.setStatus(t.To)
		g.rec.setTime(updatedAt, now.UnixMilli())
	}
	if t.To.Final() {
		s.finish(b, g, body, now)
		return nil
	}
	if t.Release {
		g.rec.setOwner("")
	}
	if t.Due != 0 {
		g.rec.setTime(dueAt, dueAfter(now, t.Due))
		heap.Fix(&s.due, g.pos)
	}
	setEntry(b, unfinishedKey, g.id, g.gid, g.rec, nil)
	return nil
}

// mark leaves in s.newMarks the marks of a saga with those of set in them.
func (s *Store) mark(marks []byte, set []store.SetMark) error {
	s.newMarks = append(s.newMarks[:0], marks...)
	for _, m := range set {
		if int(m.Branch) >= len(marks) {
			return fmt.Errorf("%w: branch: %d, the saga has %d", store.ErrInvalid, m.Branch, len(marks))
		}
		switch old := store.Mark(s.newMarks[m.Branch]); old {
		case store.MarkPending, m.Mark:
			s.newMarks[m.Branch] = byte(m.Mark)
		default:
			return fmt.Errorf("%w: branch %d is marked %q, not %q", store.ErrConflict, m.Branch, byte(old), byte(m.Mark))
		}
	}
	return nil
}

// finish takes g from the unfinished sagas, to be kept unless that is not wanted.
// Body is its body unless that is in the record. As
// elsewhere, the error of adding to a batch is dropped: only batches with an
// index have one.
func (s *Store) finish(b *pebble.Batch, g *saga, body []byte, now time.Time) {
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
		s.kept = append(s.kept, kept{g, body})
	}
}

// kept is a saga that has ended and is to be kept, and its body unless that is in
// the record.
type kept struct {
	*saga
	body []byte
}

// keep adds to b the sagas that ended with it.
func (s *Store) keep(b *pebble.Batch, now time.Time) {
	if len(s.kept) == 0 {
		return
	}
	bucket := s.current(now)
	for _, g := range s.kept {
		g.id = s.nextID(now)
		bucket.gids.add(maphash.String(s.seed, g.gid))
		setEntry(b, finishedKey, g.id, g.gid, g.rec, g.body)
	}
	for _, g := range s.kept {
		op := b.SetDeferred(bucketKeyBytes+len(g.gid), 8)
		_ = append(appendBucket(op.Key[:0], bucket.start), g.gid...)
		binary.BigEndian.PutUint64(op.Value, g.id)
		_ = op.Finish()
	}
	clear(s.kept)
	s.kept = s.kept[:0]
}

// nextID is the id of a saga that is created or ends now. Ids only rise, also
// when the clock does not.
func (s *Store) nextID(now time.Time) uint64 {
	s.lastID = max(s.lastID+1, firstID(now.UnixMilli()))
	return s.lastID
}

// bodyOf is the body of a saga that is there, finished or not.
func (s *Store) bodyOf(l *lookup, gid string, now time.Time) (body []byte, found bool, err error) {
	if g, ok := s.sagas[gid]; ok {
		body, inline := g.rec.body()
		if !inline {
			body, err = s.longBody(g)
		}
		return body, true, err
	}
	if err := s.unreadable[gid]; err != nil {
		return nil, false, err
	}
	rec, found, err := l.find(s.mayHold(gid), gid, now)
	if !found || err != nil {
		return nil, false, err
	}
	body, _ = rec.body()
	return body, true, nil
}

// longBody reads the body of an unfinished saga, or nil when it is part of the
// record.
func (s *Store) longBody(g *saga) ([]byte, error) {
	if _, inline := g.rec.body(); inline {
		return nil, nil
	}
	return readBody(s.db, g.id, g.rec)
}

func readBody(from pebble.Reader, id uint64, rec record) ([]byte, error) {
	value, closer, err := from.Get(appendID(nil, bodyKey, id))
	if err != nil {
		return nil, fmt.Errorf("%w: body: %w", store.ErrUnreadable, err)
	}
	defer func() { _ = closer.Close() }()
	if len(value) != rec.bodyLen() {
		return nil, fmt.Errorf("%w: body: %d bytes that should have %d", store.ErrUnreadable, len(value), rec.bodyLen())
	}
	return bytes.Clone(value), nil
}
