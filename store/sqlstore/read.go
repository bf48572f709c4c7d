package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// Get implements store.Store. Like List it returns once what it has seen is on disk.
func (s *Store) Get(ctx context.Context, gid string) (record store.Record, err error) {
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	found := false
	err = s.call(ctx, s.cfg.Timeout, "get", func(ctx context.Context) error {
		rows, err := s.whole(ctx, s.db, []string{gid})
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.expired() })
		if err := s.awaitFlushOf(ctx, rows); err != nil || len(rows) == 0 {
			return err
		}
		found = true
		record, err = rows[0].record()
		return err
	})
	switch {
	case err != nil:
		return store.Record{}, err
	case !found:
		return store.Record{}, fmt.Errorf("%w: %s", store.ErrNotFound, gid)
	}
	return record, nil
}

// whole reads rows with all their columns, in the order of gids.
func (s *Store) whole(ctx context.Context, db sqlconn.Session, gids []string) (all []row, err error) {
	for some := range slices.Chunk(gids, maxChunkChanges) {
		text, args := s.wholeQuery(some)
		rows, err := s.rows(ctx, db, text, args...)
		if err != nil {
			return nil, err
		}
		found := byGID(rows)
		for _, gid := range some {
			if r := found[gid]; r != nil {
				all = append(all, *r)
			}
		}
	}
	return all, nil
}

func (s *Store) wholeQuery(gids []string) (text string, args []any) {
	gidIn, args := s.dialect.gidIn(gids)
	return "SELECT " + s.columns(withBody) + " FROM " + s.dialect.table(indexGID) + " WHERE " + gidIn, args
}

// List implements store.Store. Unfinished sagas are read by the due index, which
// keeps them apart from the finished ones; all others by gid. A page is the matches
// among Limit rows, so a query with few matches does not read the whole table for
// one page.
func (s *Store) List(ctx context.Context, query store.Query) (page store.Page, err error) {
	query, err = query.Check()
	if err != nil {
		return store.Page{}, err
	}
	after, err := parseCursor(query)
	if err != nil {
		return store.Page{}, fmt.Errorf("cursor: %w", err)
	}
	err = s.call(ctx, s.cfg.Timeout, "list", func(ctx context.Context) error {
		if page, err = s.page(ctx, query, after); err != nil {
			return err
		}
		return s.awaitFlush(ctx)
	})
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}

// firstStep is how many rows page reads before it knows how large they are.
const firstStep = 100

// page reads the sagas of a query that follow a cursor: their lengths first, so that
// it reads no more bodies than fit.
func (s *Store) page(ctx context.Context, query store.Query, after cursor) (page store.Page, err error) {
	size, left := 0, query.Limit
	for step := firstStep; left > 0 && size < store.MaxPageBytes; step *= 2 {
		limit := min(step, left)
		text, args := s.listQuery(query, after, limit)
		rows, err := s.rows(ctx, s.db, text, args...)
		if err != nil {
			return store.Page{}, err
		}
		if page.Now.IsZero() {
			if page.Now, err = s.clock(ctx, rows); err != nil {
				return store.Page{}, err
			}
		}
		read, err := s.addMatching(ctx, &page, query, rows, &size)
		if err != nil {
			return store.Page{}, err
		}
		left -= read
		if read == len(rows) && read < limit {
			return page, nil
		}
		after = cursor{rows[read-1].Due, rows[read-1].GID}
	}
	page.Next = after.text(query)
	return page, nil
}

// clock returns the server's clock when the rows were read.
func (s *Store) clock(ctx context.Context, rows []row) (time.Time, error) {
	if len(rows) > 0 {
		return time.UnixMilli(rows[0].Now), nil
	}
	var now int64
	err := s.db.QueryRowContext(ctx, "SELECT "+s.dialect.now()).Scan(&now)
	return time.UnixMilli(now), err
}

// addMatching adds the rows that match the query to a page, until its size in bytes
// reaches store.MaxPageBytes. It returns how many rows it has checked.
func (s *Store) addMatching(ctx context.Context, page *store.Page, query store.Query, rows []row, size *int) (checked int, err error) {
	matches := func(r *row) (store.Record, bool) {
		record, err := r.record()
		return record, err == nil && !r.expired() && query.Matches(record)
	}
	var gids []string
	for checked < len(rows) && *size < store.MaxPageBytes {
		r := &rows[checked]
		checked++
		if _, ok := matches(r); ok {
			gids = append(gids, r.GID)
			*size += r.Bytes
		}
	}
	whole, err := s.whole(ctx, s.db, gids)
	for i := range whole {
		if record, ok := matches(&whole[i]); ok { // it may have changed meanwhile
			page.Records = append(page.Records, record)
		}
	}
	return checked, err
}

func (s *Store) listQuery(query store.Query, after cursor, limit int) (text string, args []any) {
	text = "SELECT " + s.columns(withLength) + " FROM "
	if byDue(query) {
		return text + s.dialect.table(indexDue) + " WHERE done = false AND due >= ? AND (due > ? OR gid > ?) ORDER BY due, gid LIMIT ?",
			[]any{after.due, after.due, after.gid, limit}
	}
	return text + s.dialect.table(indexGID) + " WHERE gid > ? ORDER BY gid LIMIT ?", []any{after.gid, limit}
}

func byDue(query store.Query) bool { return query.Status != 0 && !query.Status.Final() }

// cursor is the last row of a page.
type cursor struct {
	due int64 // if the page is by due
	gid string
}

// parseCursor returns a query's cursor. The cursor of the first page is before all rows.
func parseCursor(query store.Query) (cursor, error) {
	if query.Cursor == "" {
		return cursor{due: math.MinInt64}, nil
	}
	c := cursor{gid: query.Cursor}
	if byDue(query) {
		due, gid, _ := strings.Cut(query.Cursor, ".")
		n, err := strconv.ParseInt(due, 10, 64)
		if err != nil {
			return c, fmt.Errorf("%w: %q does not belong to this query", store.ErrInvalid, query.Cursor)
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

// oldestSample is among how many of the sagas due first Stats finds the oldest.
const oldestSample = "1000"

// Stats implements store.Store.
func (s *Store) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = s.call(ctx, s.cfg.Timeout, "stats", func(ctx context.Context) error {
		if err := s.db.QueryRowContext(ctx, s.countQuery()).Scan(&stats.Unfinished, &stats.Due); err != nil {
			return err
		}
		var age int64
		err := s.db.QueryRowContext(ctx, "SELECT COALESCE("+s.dialect.now()+" - MIN(created), 0)"+
			" FROM (SELECT created FROM saga WHERE done = false ORDER BY due LIMIT "+oldestSample+") AS first").Scan(&age)
		stats.OldestAge = max(0, time.Duration(age)*time.Millisecond)
		return err
	})
	if err != nil {
		return store.Stats{}, err
	}
	return stats, nil
}

func (s *Store) countQuery() string {
	return "SELECT COUNT(*), COUNT(CASE WHEN due <= " + s.dialect.now() + " THEN 1 END) FROM saga WHERE done = false"
}

// Retention implements store.Store.
func (s *Store) Retention() time.Duration { return s.cfg.Retention }

// Settings implements store.Store.
func (s *Store) Settings(ctx context.Context) (settings store.Settings, err error) {
	err = s.call(ctx, s.cfg.Timeout, "settings", func(ctx context.Context) error {
		settings, err = s.settings(ctx)
		return err
	})
	return settings, err
}
