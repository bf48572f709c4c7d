package sqlstore

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"sagabench/store"
)

// transition judges the transitions one by one, and writes what it lets pass.
// They are all of different sagas and sorted by gid, the order in which the rows
// are locked.
func (s *Store) transition(tx *gorm.DB, transitions []*job[*store.Transition]) error {
	if len(transitions) == 0 {
		return nil
	}
	var rows []timedRow
	err := tx.Table(s.dialect.by(indexGID)).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Select("gid, status, done, epoch, owner, marks, updated, due, "+s.dialect.now()+" AS now").
		Where("gid IN ?", gidsOf(transitions)).Order("gid").Find(&rows).Error
	if err != nil {
		return err
	}
	byGID := make(map[string]*timedRow, len(rows))
	for i := range rows {
		byGID[rows[i].Saga.GID] = &rows[i]
	}
	for _, j := range transitions {
		found := byGID[j.change.GID]
		if j.err = s.judge(j.change, found); j.err != nil {
			continue
		}
		columns := []string{"status", "done", "owner", "marks", "updated", "due"}
		if j.change.Note != "" {
			columns = append(columns, "note")
		}
		if err := tx.Model(&found.Saga).Select(columns).Updates(found.Saga).Error; err != nil {
			return err
		}
	}
	return nil
}

// judge makes of a row, nil being none, what the transition says, or refuses it.
func (s *Store) judge(t *store.Transition, found *timedRow) error {
	if found == nil || found.expired() {
		return store.ErrNotFound
	}
	r := &found.Saga
	if r.Epoch != int64(t.Epoch) || r.status() != t.From {
		return store.ErrConflict
	}
	marks := []byte(r.Marks)
	for _, m := range t.Marks {
		if int(m.Branch) >= len(marks) {
			return fmt.Errorf("%w: branch: %d, the saga has %d", store.ErrInvalid, m.Branch, len(marks))
		}
		if was := store.Mark(marks[m.Branch]); was != store.MarkPending && was != m.Mark {
			return store.ErrConflict
		}
		marks[m.Branch] = byte(m.Mark)
	}
	r.Marks = string(marks)
	r.Note = []byte(t.Note)
	if t.Release {
		r.Owner = ""
	}
	if t.To != t.From {
		r.Status, r.Updated = string(rune(t.To)), found.Now
	}
	r.Done = t.To.Final()
	if delta, moved := dueIn(t, s.keep()); moved {
		r.Due = found.Now + delta
	}
	return nil
}

// dueIn is what becomes of a saga's due time: from now, in milliseconds, or it
// stays. keep is the retention.
func dueIn(t *store.Transition, keep int64) (delta int64, moved bool) {
	if t.To.Final() {
		return keep, true
	}
	return millis(max(t.Due, 0)), t.Due != 0
}
