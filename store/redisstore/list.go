package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sagabench/lua"
	"sagabench/store"
)

// List implements store.Store. Unfinished sagas are found in the due indexes, the
// others by walking all keys: an index over finished sagas would cost every saga and
// serve only this.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	query, err := query.Check()
	if err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.calls.RUnlock()
	at, err := s.parseCursor(query)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{}
	if page.Now, err = s.now(ctx); err != nil {
		return store.Page{}, s.failure(ctx, "list", err)
	}
	// Few keys at a time, for those that were read and do not fit into the page wait
	// in the cursor.
	for looked, size, more := 0, int64(0), true; more; {
		var keys []string
		if keys, at, size, err = s.next(ctx, at, query.Limit-looked, size); err != nil {
			return store.Page{}, s.failure(ctx, "list", err)
		}
		read, err := s.fetch(ctx, keys)
		if err != nil {
			return store.Page{}, s.failure(ctx, "list", err)
		}
		for _, r := range read {
			if r.err == nil && r.GID != "" && query.Matches(r.Record) {
				page.Records = append(page.Records, r.Record)
			}
		}
		looked += max(len(keys), 1)
		page.Next = s.formatCursor(at)
		more = page.Next != "" && looked < query.Limit && size < store.MaxPageBytes
	}
	return page, nil
}

// listStep is how many keys List reads at a time.
const listStep = 100

// next is up to limit keys from a place that fit into a page which holds so many
// bytes already, how many it holds then, and where to go on.
func (s *Store) next(ctx context.Context, at place, limit int, size int64) ([]string, place, int64, error) {
	if len(at.over) == 0 {
		s.roundTrips.Add(1)
		var err error
		if at, err = s.scan(ctx, at, int64(min(limit, listStep))); err != nil {
			return nil, at, size, err
		}
	}
	// A scan may give more than it was asked for.
	keys := at.over[:min(len(at.over), limit)]
	if len(keys) == 0 {
		return nil, at, size, nil
	}
	n, size, err := s.fitting(ctx, keys, size)
	at.over = at.over[n:]
	return keys[:n], at, size, err
}

// place is how far a list has come: in which due index, or with everywhere in the
// whole key space, where a scan of it goes on, and the keys that were read and not
// returned.
type place struct {
	shard int
	scan  uint64
	over  []string
}

const everywhere = -1

// scan reads about limit keys from a place, and where to go on.
func (s *Store) scan(ctx context.Context, at place, limit int64) (place, error) {
	if at.shard == everywhere {
		keys, next, err := s.client.Scan(ctx, at.scan, s.cfg.Prefix+":{*}:*", limit).Result()
		return place{everywhere, next, keys}, err
	}
	entries, next, err := s.client.ZScan(ctx, s.indexKey(at.shard), at.scan, "", limit).Result()
	to := place{shard: at.shard, scan: next}
	if next == 0 {
		to.shard++
	}
	for i := 0; i < len(entries); i += 2 { // each is followed by its score
		if entries[i] != lua.Ballast {
			to.over = append(to.over, entries[i])
		}
	}
	return to, err
}

// formatCursor writes a place, or nothing at the end: the number of the due index,
// where there is one, the scan's, then gids.
func (s *Store) formatCursor(at place) string {
	if len(at.over) == 0 && at.scan == 0 && (at.shard == everywhere || at.shard == s.cfg.Shards) {
		return ""
	}
	words := []string{strconv.FormatUint(at.scan, 10)}
	if at.shard != everywhere {
		words[0] = strconv.Itoa(at.shard) + "-" + words[0]
	}
	for _, key := range at.over {
		words = append(words, sagaGID(key))
	}
	return strings.Join(words, ".")
}

func (s *Store) parseCursor(query store.Query) (at place, err error) {
	unfinished := query.Status != 0 && !query.Status.Final()
	if !unfinished {
		at.shard = everywhere
	}
	if query.Cursor == "" {
		return at, nil
	}
	words := strings.Split(query.Cursor, ".")
	number := words[0]
	if unfinished {
		shard, scan, _ := strings.Cut(number, "-")
		at.shard, err = strconv.Atoi(shard)
		number = scan
	}
	if err == nil {
		at.scan, err = strconv.ParseUint(number, 10, 64)
	}
	for _, gid := range words[1:] {
		if err == nil {
			err = store.CheckGID(gid)
		}
		at.over = append(at.over, s.sagaKey(gid))
	}
	// Behind the last index there is nothing to scan.
	if err != nil || unfinished && (at.shard < 0 || at.shard > s.cfg.Shards || at.shard == s.cfg.Shards && len(at.over) == 0) {
		return place{}, fmt.Errorf("%w: cursor: not one of ours", store.ErrInvalid)
	}
	return at, nil
}
