package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"sagabench/store"
)

// ClaimDue implements store.Store.
func (s *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var claimed []store.Record
	// Of more than a transaction may hold, the next takes the rest.
	for len(claimed) < limit {
		most := min(limit-len(claimed), maxChunkChanges)
		records, err := s.claim(limited, owner, lease, most)
		if err != nil {
			return claimed, s.failure(ctx, "claim", err)
		}
		claimed = append(claimed, records...)
		if len(records) < most {
			break
		}
	}
	return claimed, nil
}

func (s *Store) claim(ctx context.Context, owner string, lease time.Duration, limit int) (claimed []store.Record, err error) {
	err = s.transact(ctx, func(tx *gorm.DB) error {
		var rows []timedRow
		err := s.due(tx, limit).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			claimed = nil
			return err
		}
		// A row that changed as it was being locked is out of its order.
		slices.SortStableFunc(rows, func(a, b timedRow) int { return cmp.Compare(a.Saga.Due, b.Saga.Due) })
		due := rows[0].Now + millis(lease)
		claimed = make([]store.Record, len(rows))
		gids := make([]string, len(rows))
		for i := range rows {
			r := &rows[i].Saga
			gids[i] = r.GID
			r.Epoch++
			r.Owner = owner
			r.Due = due
			claimed[i] = r.record()
		}
		return tx.Model(&row{}).Where("gid IN ?", gids).
			Updates(map[string]any{"epoch": gorm.Expr("epoch + 1"), "owner": owner, "due": due}).Error
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// due selects what is to be claimed, and locks no more.
func (s *Store) due(tx *gorm.DB, limit int) *gorm.DB {
	lock := clause.Locking{Strength: clause.LockingStrengthUpdate}
	if s.dialect.skipsLocked() {
		lock.Options = clause.LockingOptionsSkipLocked
	}
	now := s.dialect.now()
	return tx.Table(s.dialect.by(indexDue)).Clauses(lock).Select("saga.*, " + now + " AS now").
		Where("done = false AND due <= " + now).Order("due").Limit(limit)
}
