package sqlstore

import (
	"context"
	"fmt"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// transition applies or refuses the transitions of c one by one. They are sorted by
// gid, the order in which the rows are locked.
func (s *Store) transition(ctx context.Context, tx sqlconn.Session, c chunk) error {
	if len(c.transitions) == 0 {
		return nil
	}
	gidIn, args := s.dialect.gidIn(gidsOf(c.transitions))
	rows, err := s.rows(ctx, tx, "SELECT "+s.columns(withoutBody)+" FROM "+s.dialect.table(indexGID)+
		" WHERE "+gidIn+" ORDER BY gid FOR UPDATE", args...)
	if err != nil {
		return err
	}
	existing := byGID(rows)
	for _, t := range c.transitions {
		r := existing[t.GID]
		if err := s.change(r, t); err != nil {
			c.failed[t.GID] = err
			continue
		}
		err := s.exec(ctx, tx, "UPDATE saga SET status = ?, done = ?, owner = ?, marks = ?, updated = ?, due = ?, "+
			"note = COALESCE(?, note) WHERE gid = ?", r.Status, r.Done, r.Owner, r.Marks, r.Updated, r.Due, r.Note, r.GID)
		if err != nil {
			return err
		}
	}
	return nil
}

// change applies a transition to a row that was read without its note, or refuses
// it. A nil row is a saga that does not exist.
func (s *Store) change(r *row, t *store.Transition) error {
	if r == nil || r.expired() {
		return store.ErrNotFound
	}
	if r.Epoch != int64(t.Epoch) || r.status() != t.From {
		return store.ErrConflict
	}
	marks := []byte(r.Marks)
	for _, m := range t.Marks {
		if int(m.Branch) >= len(marks) {
			return fmt.Errorf("%w: branch: %d, the saga has %d", store.ErrInvalid, m.Branch, len(marks))
		}
		if old := store.Mark(marks[m.Branch]); old != store.MarkPending && old != m.Mark {
			return store.ErrConflict
		}
		marks[m.Branch] = byte(m.Mark)
	}
	r.Marks = string(marks)
	if t.Note != "" {
		r.Note = []byte(t.Note)
	}
	if t.Release {
		r.Owner = ""
	}
	if t.To != t.From {
		r.Status, r.Updated = string(rune(t.To)), r.Now
	}
	r.Done = t.To.Final()
	if delta, changes := dueIn(t, s.retention()); changes {
		r.Due = r.Now + delta
	}
	return nil
}

// dueIn returns the new due time of a saga, in milliseconds from now, and whether it
// changes. The retention is in milliseconds.
func dueIn(t *store.Transition, retention int64) (delta int64, changes bool) {
	if t.To.Final() {
		return retention, true
	}
	return millis(max(t.Due, 0)), t.Due != 0
}
