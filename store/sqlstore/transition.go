package sqlstore

import (
	"context"
	"time"

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
		if r == nil || r.expired() {
			c.failed[t.GID] = store.ErrNotFound
			continue
		}
		saga, _ := r.record() // the parts that cannot be read are zero, which t does not match
		if err := t.Apply(&saga, time.UnixMilli(r.Now)); err != nil {
			c.failed[t.GID] = err
			continue
		}
		if delta, changes := dueIn(t, s.retention()); changes {
			r.Due = r.Now + delta
		}
		if t.Note != "" {
			r.Note = []byte(t.Note)
		}
		err := s.exec(ctx, tx, "UPDATE saga SET status = ?, done = ?, owner = ?, marks = ?, updated = ?, due = ?, note = COALESCE(?, note) WHERE gid = ?",
			string(rune(saga.Status)), saga.Status.Final(), saga.Owner, string(saga.Marks), saga.Updated.UnixMilli(), r.Due, r.Note, r.GID)
		if err != nil {
			return err
		}
	}
	return nil
}

// dueIn returns the new due time of a saga, in milliseconds from now, and whether it
// changes. The retention is in milliseconds.
func dueIn(t *store.Transition, retention int64) (delta int64, changes bool) {
	if t.To.Final() {
		return retention, true
	}
	return store.Millis(t.Due), t.Due != 0
}
