package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"sagabench/store"
)

// transition judges and writes the transitions, all of different sagas and
// sorted by gid.
func (s *Store) transition(tx *gorm.DB, transitions []*job[*store.Transition]) error {
	if len(transitions) == 0 {
		return nil
	}
	s.roundTrips.Add(1)
	rows, err := s.dialect.lock(tx, gidsOf(transitions))
	if err != nil {
		return err
	}
	byGID := make(map[string]*lockedRow, len(rows))
	for i := range rows {
		byGID[rows[i].GID] = &rows[i]
	}
	var drop []string
	var write []written
	for _, j := range transitions {
		var w written
		if w, j.err = s.judge(j.change, byGID[j.change.GID]); j.err != nil {
			continue
		}
		if w.Done && s.cfg.Retention == 0 {
			drop = append(drop, w.GID)
		} else {
			write = append(write, w)
		}
	}
	if len(write) > 0 {
		s.roundTrips.Add(1)
		if err := s.dialect.write(tx, write); err != nil {
			return err
		}
	}
	if len(drop) > 0 {
		s.roundTrips.Add(1)
		return tx.Where("gid IN ?", drop).Delete(&row{}).Error
	}
	return nil
}

// judge says what a transition makes of a row, nil being none, or refuses it.
func (s *Store) judge(t *store.Transition, r *lockedRow) (written, error) {
	switch {
	case r == nil || r.expired():
		return written{}, store.ErrNotFound
	case r.Epoch != t.Epoch || store.Status(r.Status[0]) != t.From:
		return written{}, store.ErrConflict
	}
	w := written{lockedRow: *r}
	marks := []byte(r.Marks)
	for _, m := range t.Marks {
		if int(m.Branch) >= len(marks) {
			return written{}, fmt.Errorf("%w: branch: %d, the saga has %d", store.ErrInvalid, m.Branch, len(marks))
		}
		if was := store.Mark(marks[m.Branch]); was != store.MarkPending && was != m.Mark {
			return written{}, store.ErrConflict
		}
		marks[m.Branch] = byte(m.Mark)
	}
	w.Marks = string(marks)
	if t.Note != "" {
		w.note = []byte(t.Note)
	}
	if t.Release {
		w.Owner = ""
	}
	if t.Due != 0 {
		w.Due = r.Now + millis(max(t.Due, 0))
	}
	if t.To != t.From {
		w.Status, w.Updated = string(rune(t.To)), r.Now
	}
	if t.To.Final() {
		w.Done, w.Due = true, r.Now+millis(s.cfg.Retention)
	}
	return w, nil
}
