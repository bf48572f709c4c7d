package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

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
		s.roundTrips.Add(1)
		rows, err := s.dialect.lockDue(tx, limit)
		if err != nil || len(rows) == 0 {
			claimed = nil
			return err
		}
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
		s.roundTrips.Add(1)
		return tx.Model(&row{}).Where("gid IN ?", gids).
			Updates(map[string]any{"epoch": gorm.Expr("epoch + 1"), "owner": owner, "due": due}).Error
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}
