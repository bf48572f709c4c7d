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
// which matches nothing returns to its caller now and then.
const pageScan = 10_000

// Get implements store.Store. Like List it answers once all it has seen is on
// disk, so nobody acts on what a crash could undo.
func (s *Store) Get(ctx context.Context, gid string) (r store.Record, err error) {
	if err := store.CheckGID(gid); err != nil {
		return store.Record{}, err
	}
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)

	r, found, buckets, last, err := s.getUnfinished(gid)
	if err == nil && !found {
		l := lookup{s: s}
		defer l.close()
		var rec record
		if rec, found, err = l.find(buckets, gid, s.now()); found {
			r = rec.complete(gid, nil)
		}
	}
	if err == nil {
		err = s.wait(last)
	}
	switch {
	case err != nil:
		return store.Record{}, fmt.Errorf("get %s: %w", gid, err)
	case !found:
		return store.Record{}, fmt.Errorf("get %s: %w", gid, store.ErrNotFound)
	}
	return r, nil
}

// getUnfinished is the part of Get that holds s.mu, which it releases. Unless
// the saga was found, buckets are where to look on.
func (s *Store) getUnfinished(gid string) (r store.Record, found bool, buckets []int64, last *commit, err error) {
	defer s.mu.Unlock()
	g, found := s.sagas[gid]
	if !found {
		return store.Record{}, false, s.mayHold(gid), s.last, s.unreadable[gid]
	}
	body, err := s.longBody(g)
	return g.rec.complete(gid, body), true, nil, s.last, err
}

// List implements store.Store: the unfinished sagas first, then the finished
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
	defer s.calls.Done()
	defer s.log.rescue(&err)

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

// page reads what comes behind the key after.
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
		// The cursor's key with a zero byte is the first that can follow it.
		valid = it.SeekGE(append(after, 0))
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
		r, keep, err := s.listed(from, it, query, page.Now)
		switch {
		case errors.Is(err, store.ErrUnreadable): // which is for Verify to tell
		case err != nil:
			return store.Page{}, err
		case keep:
			size += len(r.Body) + len(r.Note)
			page.Records = append(page.Records, r)
		}
	}
	return page, it.Error()
}

// listed is the saga at it, and whether the query asks for it.
func (s *Store) listed(from *pebble.Snapshot, it *pebble.Iterator, query store.Query, now time.Time) (r store.Record, keep bool, err error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return r, false, err
	}
	gid, rec, err := splitEntry(value)
	if err != nil {
		return r, false, unreadableEntry(it.Key(), gid, err)
	}
	if rec.status().Final() && s.expired(rec, now) {
		return r, false, nil
	}
	if r = rec.decode(string(gid)); !query.Matches(r) {
		return r, false, nil
	}
	var body []byte
	if _, inline := rec.body(); !inline {
		if body, err = readBody(from, numberIn(it.Key()), rec); err != nil {
			return r, false, fmt.Errorf("%s: %w", gid, err)
		}
	}
	return rec.complete(string(gid), body), true, nil
}

// Stats implements store.Store. OldestAge is exact.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	if err := s.begin(ctx); err != nil {
		return store.Stats{}, err
	}
	defer s.calls.Done()
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
