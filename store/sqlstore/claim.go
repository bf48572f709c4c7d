package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	var c claim
	// Of more than a transaction may hold, the next takes the rest.
	for tried := 0; tried < limit && c.size < store.MaxPageBytes; {
		most := min(limit-tried, maxChunkChanges)
		found, err := s.claim(limited, owner, lease, most, &c)
		if err != nil {
			return c.records, s.failure(ctx, "claim", errors.Join(c.unreadable, err))
		}
		tried += found
		if found < most {
			break
		}
	}
	if c.unreadable != nil {
		return c.records, s.failure(ctx, "claim", c.unreadable)
	}
	return c.records, nil
}

// claim is what one ClaimDue has claimed so far.
type claim struct {
	records    []store.Record
	size       int   // of the records' notes and bodies
	unreadable error // tells of the rows that were set aside
}

// claim adds to c in one transaction, and returns how many rows it found.
func (s *Store) claim(ctx context.Context, owner string, lease time.Duration, limit int, c *claim) (found int, err error) {
	var after claim
	err = s.transact(ctx, func(tx *gorm.DB) error {
		after = claim{slices.Clip(c.records), c.size, c.unreadable}
		var rows []timedRow
		err := s.due(tx, limit).Find(&rows).Error
		if found = len(rows); err != nil || found == 0 {
			return err
		}
		// A row that changed as it was being locked is out of its order.
		slices.SortStableFunc(rows, func(a, b timedRow) int { return cmp.Compare(a.Saga.Due, b.Saga.Due) })
		var gids, aside []string
		for i := 0; i < len(rows) && after.size < store.MaxPageBytes; i++ {
			if _, err := rows[i].Saga.record(); err != nil {
				aside = append(aside, rows[i].Saga.GID)
				after.unreadable = errors.Join(after.unreadable, fmt.Errorf("%w, set aside for %v", err, store.Quarantine))
				continue
			}
			gids = append(gids, rows[i].Saga.GID)
			after.size += rows[i].Bytes
		}
		now := rows[0].Now
		if len(aside) > 0 {
			err := tx.Model(&row{}).Where("gid IN ?", aside).Update("due", now+millis(store.Quarantine)).Error
			if err != nil {
				return err
			}
		}
		if len(gids) == 0 {
			return nil
		}
		err = tx.Model(&row{}).Where("gid IN ?", gids).
			Updates(map[string]any{"epoch": gorm.Expr("epoch + 1"), "owner": owner, "due": now + millis(lease)}).Error
		if err != nil {
			return err
		}
		whole, err := s.whole(tx, gids)
		if err != nil {
			return err
		}
		for _, gid := range gids {
			record, err := whole[gid].Saga.record()
			if err != nil {
				return err
			}
			after.records = append(after.records, record)
		}
		return nil
	})
	if err == nil {
		*c = after
	}
	return found, err
}

// due selects what is to be claimed, and locks no more.
func (s *Store) due(tx *gorm.DB, limit int) *gorm.DB {
	lock := clause.Locking{Strength: clause.LockingStrengthUpdate}
	if s.dialect.skipsLocked() {
		lock.Options = clause.LockingOptionsSkipLocked
	}
	now := s.dialect.now()
	return tx.Table(s.dialect.by(indexDue)).Clauses(lock).Select(s.headers()).
		Where("done = false AND due <= " + now).Order("due").Limit(limit)
}
