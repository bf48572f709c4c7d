package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// ClaimDue implements store.Store. Each of its transactions claims up to
// maxChunkChanges sagas.
func (s *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) (records []store.Record, err error) {
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	err = s.call(ctx, s.cfg.Timeout, "claim", func(ctx context.Context) error {
		var unreadable error
		size := 0
		for found, most := 0, 0; found == most && limit > 0 && size < store.MaxPageBytes; limit -= found {
			most = min(limit, maxChunkChanges)
			var c claim
			err := s.transact(ctx, func(tx sqlconn.Session) (err error) {
				c, err = s.claim(ctx, tx, owner, lease, most, store.MaxPageBytes-size)
				return err
			})
			if err != nil {
				return errors.Join(unreadable, err)
			}
			found = c.found
			size += c.size
			records = append(records, c.records...)
			unreadable = errors.Join(unreadable, c.unreadable)
		}
		return unreadable
	})
	return records, err
}

// claim is what one transaction has claimed.
type claim struct {
	records    []store.Record
	found      int   // rows, including those that were not claimed
	size       int   // of the records' notes and bodies
	unreadable error // names the rows that cannot be read
}

// claim claims up to limit sagas, until their notes and bodies reach maxBytes.
func (s *Store) claim(ctx context.Context, tx sqlconn.Session, owner string, lease time.Duration, limit, maxBytes int) (c claim, err error) {
	text, args := s.dueQuery(limit)
	rows, err := s.rows(ctx, tx, text, args...)
	if err != nil || len(rows) == 0 {
		return c, err
	}
	c.found = len(rows)
	// A row that changed while it was being locked is out of order.
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Due, b.Due) })
	var gids, quarantined []string
	for i := 0; i < len(rows) && c.size < maxBytes; i++ {
		r := &rows[i]
		if _, err := r.record(); err != nil {
			quarantined = append(quarantined, r.GID)
			c.unreadable = errors.Join(c.unreadable, fmt.Errorf("%w, set aside for %v", err, store.Quarantine))
			continue
		}
		gids = append(gids, r.GID)
		c.size += r.Bytes
	}
	now := rows[0].Now
	update := func(gids []string, set string, args ...any) error {
		if len(gids) == 0 {
			return nil
		}
		gidIn, gidArgs := s.dialect.gidIn(gids)
		return s.exec(ctx, tx, "UPDATE saga SET "+set+" WHERE "+gidIn, append(args, gidArgs...)...)
	}
	if err := update(quarantined, "due = ?", now+store.Millis(store.Quarantine)); err != nil {
		return c, err
	}
	if err := update(gids, "epoch = epoch + 1, owner = ?, due = ?", owner, now+store.Millis(lease)); err != nil {
		return c, err
	}
	claimed, err := s.whole(ctx, tx, gids)
	if err != nil {
		return c, err
	}
	for i := range claimed {
		record, err := claimed[i].record()
		if err != nil {
			return c, err
		}
		c.records = append(c.records, record)
	}
	return c, nil
}

// dueQuery selects and locks the rows of sagas that may be claimed.
func (s *Store) dueQuery(limit int) (text string, args []any) {
	text = "SELECT " + s.columns(withLength) + " FROM " + s.dialect.table(indexDue) +
		" WHERE done = false AND due <= " + s.dialect.now() + " ORDER BY due LIMIT ? FOR UPDATE"
	if s.dialect.skipsLocked() {
		text += " SKIP LOCKED"
	}
	return text, []any{limit}
}
