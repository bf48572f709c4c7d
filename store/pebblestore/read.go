package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// pageScan is how many records List reads at most for one page, so that a query
// with few matches returns now and then.
const pageScan = 10_000

// Get implements store.Store. Like List it returns once all it has seen is on disk,
// so nobody acts on what a crash could undo.
func (s *Store) Get(ctx context.Context, gid string) (r store.Record, err error) {
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.end(&err)

	r, found, buckets, last, err := s.getUnfinished(gid)
	if err == nil && !found {
		l := lookup{s: s, now: s.now()}
		defer l.close()
		var rec record
		if rec, found, err = l.find(buckets, gid); found {
			r = rec.complete(gid, nil)
		}
	}
	if err == nil {
		err = s.wait(last)
	}
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("get %s: %w", gid, err)
	}
	return r, nil
}

// getUnfinished is the part of Get for which s.mu is locked; it unlocks it. If the
// saga is not found, it may be a finished one in these buckets.
func (s *Store) getUnfinished(gid string) (r store.Record, found bool, buckets []int64, last commit, err error) {
	defer s.mu.Unlock()
	g, found := s.sagas[gid]
	if !found {
		return store.Record{}, false, s.bucketsOf(gid), s.last, s.unreadable[gid]
	}
	body, err := longBody(s.db, g.id, g.rec)
	return g.rec.complete(gid, body), true, nil, s.last, err
}

// List implements store.Store: the unfinished sagas first, then the finished ones
// in about the order of their end.
func (s *Store) List(ctx context.Context, query store.Query) (page store.Page, err error) {
	query, err = query.Check()
	if err != nil {
		return store.Page{}, err
	}
	var after []byte
	if query.Cursor != "" {
		if after, err = decodeCursor(query.Cursor); err != nil {
			return store.Page{}, err
		}
	}
	if err := s.begin(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.end(&err)

	snapshot, last := s.db.NewSnapshot(), s.last
	s.mu.Unlock()
	defer func() { _ = snapshot.Close() }()
	page, err = s.page(ctx, snapshot, query, after)
	if err == nil {
		err = s.wait(last)
	}
	if err != nil {
		return store.Page{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

// page reads the page that follows the key after.
func (s *Store) page(ctx context.Context, from *pebble.Snapshot, query store.Query, after []byte) (page store.Page, err error) {
	bounds := &pebble.IterOptions{LowerBound: []byte{unfinishedKey}, UpperBound: []byte{finishedKey + 1}}
	switch {
	case query.Status.Final():
		bounds.LowerBound = []byte{finishedKey}
	case query.Status != 0:
		bounds.UpperBound = []byte{finishedKey}
	}
	it, err := from.NewIterWithContext(ctx, bounds)
	if err != nil {
		return store.Page{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	page.Now = s.now()
	size := 0
	valid := it.First()
	if after != nil {
		valid = it.SeekGE(append(after, 0)) // the first key that can follow it
	}
	for scanned := 0; valid; valid = it.Next() {
		if err := ctx.Err(); err != nil {
			return store.Page{}, err
		}
		if scanned == pageScan || len(page.Records) == query.Limit || size >= store.MaxPageBytes {
			page.Next = encodeCursor(after)
			return page, nil
		}
		scanned++
		after = append(after[:0], it.Key()...)
		r, matches, err := s.readMatching(from, it, query, page.Now)
		switch {
		case errors.Is(err, store.ErrUnreadable): // left to Verify to report
		case err != nil:
			return store.Page{}, err
		case matches:
			size += len(r.Body) + len(r.Note)
			page.Records = append(page.Records, r)
		}
	}
	return page, it.Error()
}

// readMatching reads the saga at it, and reports whether it matches the query.
func (s *Store) readMatching(from *pebble.Snapshot, it *pebble.Iterator, query store.Query, now time.Time) (r store.Record, matches bool, err error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return r, false, err
	}
	gid, rec, err := splitEntry(value)
	if err != nil {
		return r, false, unreadableEntry(it.Key(), gid, err)
	}
	if rec.status().Final() && s.expired(rec, now) || !query.Matches(rec.decode(string(gid))) {
		return r, false, nil
	}
	body, err := longBody(from, numberIn(it.Key()), rec)
	return rec.complete(string(gid), body), err == nil, err
}

// Stats implements store.Store. OldestAge is exact.
func (s *Store) Stats(ctx context.Context) (_ store.Stats, err error) {
	if err := s.begin(ctx); err != nil {
		return store.Stats{}, err
	}
	defer s.end(&err)
	defer s.mu.Unlock()
	now := s.now().UnixMilli()
	stats := store.Stats{Unfinished: int64(len(s.due))}
	oldest := now
	for _, g := range s.due {
		if g.rec.due() <= now {
			stats.Due++
		}
		oldest = min(oldest, g.rec.time(createdAt))
	}
	stats.OldestAge = time.Duration(now-oldest) * time.Millisecond
	return stats, nil
}
