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
	if len(at.over) == 0 {
		s.roundTrips.Add(1)
		if at, err = s.scan(ctx, at, int64(query.Limit)); err != nil {
			return store.Page{}, s.failure(ctx, "list", err)
		}
	}
	// A scan may give more than it was asked for; what is over waits in the cursor.
	n := min(len(at.over), query.Limit)
	records, err := s.fetch(ctx, at.over[:n])
	if err != nil {
		return store.Page{}, s.failure(ctx, "list", err)
	}
	at.over = at.over[n:]
	page := store.Page{Next: s.formatCursor(at)}
	for _, r := range records {
		if query.Matches(r) {
			page.Records = append(page.Records, r)
		}
	}
	return page, nil
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
