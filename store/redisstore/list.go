package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

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
	if page.Now, err = s.now(ctx, 0); err != nil {
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

// List reads so many keys at a time. Those beyond a short page are in its cursor, so they are
// few. But more than one: other keys of the server are read, too, and would each take a
// round trip.
const (
	minListStep = 10
	maxListStep = 100
)

// next returns up to limit keys from a position that fit into a page of size bytes,
// the position after them, and the new size of the page.
func (s *Store) next(ctx context.Context, at position, limit int, size int64) ([]string, position, int64, error) {
	if len(at.pending) == 0 {
		var err error
		if at, err = s.scan(ctx, at, int64(min(max(limit, minListStep), maxListStep))); err != nil {
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
	servers string   // with a scan of all keys, the servers; empty: a scan of the due indexes
	part    int      // the server or the shard that is scanned
	scan    uint64   // its cursor
	pending []string // keys that were read and not returned
}

// scan reads about limit keys, and returns them in the position after them.
func (s *Store) scan(ctx context.Context, at position, limit int64) (to position, err error) {
	to = at
	if at.servers != "" {
		servers := s.nodes.all()
		if at.servers != serversID(servers) {
			return at, fmt.Errorf("%w: cursor: the cluster has changed since the first page: begin again", store.ErrInvalid)
		}
		s.roundTrips.Add(1)
		to.pending, to.scan, err = servers[at.part].Scan(ctx, at.scan, s.cfg.Prefix+":{*}:*", limit).Result()
	} else {
		to.pending, to.scan, err = s.scanIndex(ctx, at.part, at.scan, limit)
	}
	if err == nil && to.scan == 0 {
		to.part++
	}
	return to, err
}

func (s *Store) scanIndex(ctx context.Context, shard int, cursor uint64, limit int64) (keys []string, next uint64, err error) {
	var scanned *redis.ScanCmd
	r := &request{slot: s.slots[shard], queue: func(pipe redis.Pipeliner) {
		scanned = pipe.ZScan(ctx, s.indexKey(shard), cursor, "", limit)
	}}
	if s.send(ctx, r); r.err != nil {
		return nil, 0, r.err
	}
	entries, next := scanned.Val()
	for i := 0; i < len(entries); i += 2 { // each is followed by its score
		if entries[i] != lua.Ballast {
			keys = append(keys, entries[i])
		}
	}
	return keys, next, nil
}

// serversID identifies servers and their order: cursors are of no use to others.
func serversID(servers []*node) string {
	hash := fnv.New32a()
	for _, server := range servers {
		fmt.Fprintln(hash, server.address)
	}
	return strconv.FormatUint(uint64(hash.Sum32()), 36)
}

// formatCursor returns a position as text: the part and its cursor, the servers if there
// are any, then the pending gids. It is empty at the end.
func (s *Store) formatCursor(at position) string {
	parts := s.cfg.Shards
	if at.servers != "" {
		parts = len(s.nodes.all())
	}
	if len(at.pending) == 0 && at.part >= parts {
		return ""
	}
	words := []string{fmt.Sprintf("%d-%d", at.part, at.scan)}
	if at.servers != "" {
		words[0] += "-" + at.servers
	}
	for _, key := range at.pending {
		words = append(words, sagaGID(key))
	}
	return strings.Join(words, ".")
}

func (s *Store) parseCursor(query store.Query) (at position, err error) {
	parts := s.cfg.Shards
	if query.Status == 0 || query.Status.Final() {
		servers := s.nodes.all()
		at.servers, parts = serversID(servers), len(servers)
	}
	if query.Cursor == "" {
		return at, nil
	}
	words := strings.Split(query.Cursor, ".")
	numbers := strings.Split(words[0], "-")
	if len(numbers) < 2 || len(numbers) > 3 || (len(numbers) == 3) != (at.servers != "") {
		err = errors.New("malformed")
	}
	if err == nil {
		at.part, err = strconv.Atoi(numbers[0])
	}
	if err == nil {
		at.scan, err = strconv.ParseUint(numbers[1], 10, 64)
	}
	if err == nil && at.servers != "" {
		at.servers = numbers[2]
	}
	for _, gid := range words[1:] {
		if err == nil {
			err = store.CheckGID(gid)
		}
		at.pending = append(at.pending, s.sagaKey(gid))
	}
	// After the last part there is nothing to scan.
	if err != nil || at.part < 0 || at.part > parts || at.part == parts && len(at.pending) == 0 {
		return position{}, fmt.Errorf("%w: cursor: %.40q, want one of a previous page", store.ErrInvalid, query.Cursor)
	}
	return at, nil
}
