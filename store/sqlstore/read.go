package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"sagabench/store"
)

// Get implements store.Store. Like List it answers once what it has seen is on
// disk.
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
	if err == nil {
		err = s.awaitFlushOf(limited, rows)
	}
	switch {
	case err != nil:
		return store.Record{}, s.failure(ctx, "get", err)
	case len(rows) == 0:
		return store.Record{}, fmt.Errorf("%w: %s", store.ErrNotFound, gid)
	}
	record, err := rows[0].record()
	if err != nil {
		return store.Record{}, s.failure(ctx, "get", err)
	}
	return record, nil
}

// alive is true of the sagas that are not past their retention.
func (s *Store) alive() string { return "(done = false OR due > " + s.dialect.now() + ")" }

// List implements store.Store. Unfinished sagas are read from the due index, in
// which the finished ones are in nobody's way; all others by gid. A page is what
// matches among so many rows: a query that few match does not read the whole
// table for one page.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	query, err := query.Check()
	if err != nil {
		return store.Page{}, err
	}
	after, err := parseCursor(query)
	if err != nil {
		return store.Page{}, fmt.Errorf("cursor: %w", err)
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	page, err := s.page(s.db.WithContext(limited), query, after)
	if err == nil {
		err = s.awaitFlush(limited)
	}
	if err != nil {
		return store.Page{}, s.failure(ctx, "list", err)
	}
	return page, nil
}

func (s *Store) list(db *gorm.DB, query store.Query, after cursor) *gorm.DB {
	if byDue(query) {
		db = db.Table(s.dialect.by(indexDue)).Order("due, gid").
			Where("done = false AND due >= ? AND (due > ? OR gid > ?)", after.due, after.due, after.gid)
	} else {
		db = db.Table(s.dialect.by(indexGID)).Order("gid").Where("gid > ?", after.gid)
	}
	return db.Select(s.headers()).Limit(query.Limit)
}

func byDue(query store.Query) bool { return query.Status != 0 && !query.Status.Final() }

// cursor is the last row of a page.
type cursor struct {
	due int64 // if the page is by due
	gid string
}

// parseCursor reads a query's; that of the first page is before all rows.
func parseCursor(query store.Query) (cursor, error) {
	if query.Cursor == "" {
		return cursor{due: math.MinInt64}, nil
	}
	var c cursor
	c.gid = query.Cursor
	if byDue(query) {
		due, gid, _ := strings.Cut(query.Cursor, ".")
		n, err := strconv.ParseInt(due, 10, 64)
		if err != nil {
			return c, fmt.Errorf("%w: %q is none of this query's", store.ErrInvalid, query.Cursor)
		}
		c = cursor{n, gid}
	}
	return c, store.CheckGID(c.gid)
}

func (c cursor) text(query store.Query) string {
	if byDue(query) {
		return strconv.FormatInt(c.due, 10) + "." + c.gid
	}
	return c.gid
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
	err := s.count(db).Scan(&stats).Error
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

func (s *Store) count(db *gorm.DB) *gorm.DB {
	return db.Model(&row{}).Where("done = false").
		Select("COUNT(*) AS unfinished, COUNT(CASE WHEN due <= " + s.dialect.now() + " THEN 1 END) AS due")
}

// Retention implements store.Store.
func (s *Store) Retention() time.Duration { return s.cfg.Retention }

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
