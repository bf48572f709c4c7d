package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sagabench/lua"
	"sagabench/store"
)

// List implements store.Store. It finds unfinished sagas in the due indexes, and
// others by a scan of all keys: an index over finished sagas would cost every saga and
// only serve List.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	query, err := query.Check()
	if err != nil {
		return store.Page{}, err
	}
	at, err := s.parseCursor(query)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	err = s.call(ctx, "list", func() error {
		page, err = s.page(ctx, query, at)
		return err
	})
	return page, err
}

// page reads the page that begins at a position.
func (s *Store) page(ctx context.Context, query store.Query, at position) (page store.Page, err error) {
	if page.Now, err = s.now(ctx); err != nil {
		return store.Page{}, err
	}
	// Few keys at a time: keys that do not fit into the page go into the cursor.
	for keysRead, size, more := 0, int64(0), true; more; {
		var keys []string
		if keys, at, size, err = s.next(ctx, at, query.Limit-keysRead, size); err != nil {
			return store.Page{}, err
		}
		read, err := s.fetch(ctx, keys)
		if err != nil {
			return store.Page{}, err
		}
		for _, r := range read {
			if r.err == nil && r.GID != "" && query.Matches(r.Record) {
				page.Records = append(page.Records, r.Record)
			}
		}
		keysRead += max(len(keys), 1)
		page.Next = s.formatCursor(at)
		more = page.Next != "" && keysRead < query.Limit && size < store.MaxPageBytes
	}
	return page, nil
}

// listStep is the number of keys that List reads at a time.
const listStep = 100

// next returns up to limit keys from a position that fit into a page of size bytes,
// the position after them, and the new size of the page.
func (s *Store) next(ctx context.Context, at position, limit int, size int64) ([]string, position, int64, error) {
	if len(at.pending) == 0 {
		s.roundTrips.Add(1)
		var err error
		if at, err = s.scan(ctx, at, int64(min(limit, listStep))); err != nil {
			return nil, at, size, err
		}
	}
	// A scan may return more keys than requested.
	keys := at.pending[:min(len(at.pending), limit)]
	n, size, err := s.fitPage(ctx, keys, size)
	at.pending = at.pending[n:]
	return keys[:n], at, size, err
}

// position is how far a list has come.
type position struct {
	shard   int      // whose due index is scanned, or keyspace
	scan    uint64   // the server's cursor
	pending []string // keys that were read and not returned
}

// keyspace stands for a scan of all keys.
const keyspace = -1

// scan reads about limit keys, and returns them in the position after them.
func (s *Store) scan(ctx context.Context, at position, limit int64) (position, error) {
	if at.shard == keyspace {
		keys, next, err := s.client.Scan(ctx, at.scan, s.cfg.Prefix+":{*}:*", limit).Result()
		return position{keyspace, next, keys}, err
	}
	entries, next, err := s.client.ZScan(ctx, s.indexKey(at.shard), at.scan, "", limit).Result()
	to := position{shard: at.shard, scan: next}
	if next == 0 {
		to.shard++
	}
	for i := 0; i < len(entries); i += 2 { // each is followed by its score
		if entries[i] != lua.Ballast {
			to.pending = append(to.pending, entries[i])
		}
	}
	return to, err
}

// formatCursor returns a position as text: the shard if there is one, the server's
// cursor, then the pending gids. It is empty at the end.
func (s *Store) formatCursor(at position) string {
	if len(at.pending) == 0 && at.scan == 0 && (at.shard == keyspace || at.shard == s.cfg.Shards) {
		return ""
	}
	words := []string{strconv.FormatUint(at.scan, 10)}
	if at.shard != keyspace {
		words[0] = strconv.Itoa(at.shard) + "-" + words[0]
	}
	for _, key := range at.pending {
		words = append(words, sagaGID(key))
	}
	return strings.Join(words, ".")
}

func (s *Store) parseCursor(query store.Query) (at position, err error) {
	unfinished := query.Status != 0 && !query.Status.Final()
	if !unfinished {
		at.shard = keyspace
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
		at.pending = append(at.pending, s.sagaKey(gid))
	}
	// After the last index there is nothing to scan.
	if err != nil || unfinished && (at.shard < 0 || at.shard > s.cfg.Shards || at.shard == s.cfg.Shards && len(at.pending) == 0) {
		return position{}, fmt.Errorf("%w: cursor: %.40q, want one of a previous page", store.ErrInvalid, query.Cursor)
	}
	return at, nil
}
