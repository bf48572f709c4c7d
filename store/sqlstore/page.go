package sqlstore

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"sagabench/store"
)

// headers are the columns of a row without note and body, which may be large, but
// with their length. So a page ends where it is full before its bodies are read.
func (s *Store) headers() string {
	return "gid, status, done, epoch, owner, marks, created, updated, due, " +
		"OCTET_LENGTH(body) + COALESCE(OCTET_LENGTH(note), 0) AS bytes, " + s.dialect.now() + " AS now"
}

// firstStep is how many rows a page looks at before it knows how large they are. To
// tell the length of a body InnoDB reads all of it.
const firstStep = 100

// page reads the sagas of a query that come behind a cursor.
func (s *Store) page(db *gorm.DB, query store.Query, after cursor) (page store.Page, err error) {
	size, left := 0, query.Limit
	for step := firstStep; ; step *= 2 {
		query.Limit = min(step, left)
		var rows []timedRow
		if err := s.list(db, query, after).Find(&rows).Error; err != nil {
			return store.Page{}, err
		}
		looked, err := s.addMatching(db, &page, query, rows, &size)
		if err != nil {
			return store.Page{}, err
		}
		if page.Now.IsZero() {
			if page.Now, err = s.clock(db, rows); err != nil {
				return store.Page{}, err
			}
		}
		left -= looked
		if looked == len(rows) && looked < query.Limit {
			return page, nil
		}
		last := &rows[looked-1].Saga
		after = cursor{last.Due, last.GID}
		if left == 0 || size >= store.MaxPageBytes {
			page.Next = after.text(query)
			return page, nil
		}
	}
}

// addMatching adds to a page, which holds so many bytes already, what of the rows matches.
// It returns how many it has looked at until the page was full.
func (s *Store) addMatching(db *gorm.DB, page *store.Page, query store.Query, rows []timedRow, size *int) (looked int, err error) {
	matches := func(r *timedRow) (store.Record, bool) {
		record, err := r.Saga.record()
		return record, err == nil && !r.expired() && query.Matches(record)
	}
	var gids []string
	for looked < len(rows) && *size < store.MaxPageBytes {
		r := &rows[looked]
		looked++
		if _, ok := matches(r); ok {
			gids = append(gids, r.Saga.GID)
			*size += r.Bytes
		}
	}
	whole, err := s.whole(db, gids)
	for _, gid := range gids {
		if r, there := whole[gid]; there {
			if record, ok := matches(r); ok { // also by now
				page.Records = append(page.Records, record)
			}
		}
	}
	return looked, err
}

// clock is the server's, as it was when the rows were read.
func (s *Store) clock(db *gorm.DB, rows []timedRow) (time.Time, error) {
	if len(rows) > 0 {
		return time.UnixMilli(rows[0].Now), nil
	}
	var now int64
	err := db.Raw("SELECT " + s.dialect.now()).Scan(&now).Error
	return time.UnixMilli(now), err
}

// whole reads rows with all their columns.
func (s *Store) whole(db *gorm.DB, gids []string) (map[string]*timedRow, error) {
	all := make(map[string]*timedRow, len(gids))
	for some := range slices.Chunk(gids, maxChunkChanges) {
		var rows []timedRow
		err := db.Table(s.dialect.by(indexGID)).Select("saga.*, "+s.dialect.now()+" AS now").
			Where("gid IN ?", some).Find(&rows).Error
		if err != nil {
			return nil, err
		}
		for i := range rows {
			all[rows[i].Saga.GID] = &rows[i]
		}
	}
	return all, nil
}
