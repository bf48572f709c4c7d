package sqlstore

import (
	"context"
	"fmt"
	"time"

	"sagabench/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, gid string) (store.Record, error) {
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var rows []row
	err := s.db.WithContext(limited).Where("gid = ?", gid).Where(s.alive()).Find(&rows).Error
	switch {
	case err != nil:
		return store.Record{}, s.failure(ctx, "get", err)
	case len(rows) == 0:
		return store.Record{}, fmt.Errorf("%w: %s", store.ErrNotFound, gid)
	}
	return rows[0].record(), nil
}

// alive is true of the sagas that are not past their retention.
func (s *Store) alive() string { return "(done = false OR due > " + s.dialect.now() + ")" }

// List implements store.Store. It goes by gid, and a cursor is the last one read.
// What does not match is left out of the page, so that a query that few match
// does not read the whole table for one page.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	query, err := query.Check()
	if err != nil {
		return store.Page{}, err
	}
	if query.Cursor != "" {
		if err := store.CheckGID(query.Cursor); err != nil {
			return store.Page{}, fmt.Errorf("cursor: %w", err)
		}
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var rows []struct {
		Saga  row `gorm:"embedded"`
		Alive bool
	}
	err = s.db.WithContext(limited).Model(&row{}).Select("saga.*, "+s.alive()+" AS alive").
		Where("gid > ?", query.Cursor).Order("gid").Limit(query.Limit).Find(&rows).Error
	if err != nil {
		return store.Page{}, s.failure(ctx, "list", err)
	}
	var page store.Page
	for i := range rows {
		if r := rows[i].Saga.record(); rows[i].Alive && query.Matches(r) {
			page.Records = append(page.Records, r)
		}
	}
	if len(rows) == query.Limit {
		page.Next = rows[len(rows)-1].Saga.GID
	}
	return page, nil
}

// oldestSample is how many of the sagas due first Stats looks at.
const oldestSample = 1000

// Stats implements store.Store.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stats{}, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	db, now := s.db.WithContext(limited), s.dialect.now()
	var stats store.Stats
	err := db.Model(&row{}).Where("done = false").
		Select("COUNT(*) AS unfinished, COUNT(CASE WHEN due <= " + now + " THEN 1 END) AS due").Scan(&stats).Error
	if err != nil {
		return store.Stats{}, s.failure(ctx, "stats", err)
	}
	var age int64
	first := db.Model(&row{}).Select("created").Where("done = false").Order("due").Limit(oldestSample)
	err = db.Table("(?) AS first", first).Select("COALESCE(" + now + " - MIN(created), 0)").Scan(&age).Error
	if err != nil {
		return store.Stats{}, s.failure(ctx, "stats", err)
	}
	stats.OldestAge = max(0, time.Duration(age)*time.Millisecond)
	return stats, nil
}

// Settings implements store.Store.
func (s *Store) Settings(ctx context.Context) (store.Settings, error) {
	if err := s.enter(ctx); err != nil {
		return store.Settings{}, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	settings, err := s.dialect.settings(s.db.WithContext(limited))
	if err != nil {
		return store.Settings{}, s.failure(ctx, "settings", err)
	}
	return settings, nil
}
