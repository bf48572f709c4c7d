package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
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
	records, err := s.fetch(ctx, []string{s.sagaKey(gid)})
	if err != nil {
		return store.Record{}, s.failure(ctx, "get", err)
	}
	if len(records) == 0 {
		return store.Record{}, fmt.Errorf("%w: %s", store.ErrNotFound, gid)
	}
	return records[0], nil
}

// fetch reads the sagas with these keys and when they are due, leaving out
// those that are not there.
func (s *Store) fetch(ctx context.Context, keys []string) ([]store.Record, error) {
	values := make([]*redis.StringCmd, len(keys))
	dues := make([]*redis.FloatCmd, len(keys))
	s.roundTrips.Add(1)
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			values[i] = pipe.Get(ctx, key)
			dues[i] = pipe.ZScore(ctx, s.indexKey(s.shard(sagaGID(key))), key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	records := make([]store.Record, 0, len(keys))
	for i, key := range keys {
		value, err := values[i].Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		record, err := decode(sagaGID(key), value)
		if err != nil {
			return nil, err
		}
		switch due, err := dues[i].Result(); {
		case err == nil:
			record.Due = time.UnixMilli(int64(due))
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// List implements store.Store. It walks the keys with SCAN, for an index over
// finished sagas would cost every saga and serve only this.
func (s *Store) List(ctx context.Context, query store.Query) (store.Page, error) {
	query, err := query.Check()
	if err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.calls.RUnlock()
	cursor, keys, err := s.parseCursor(query.Cursor)
	if err != nil {
		return store.Page{}, err
	}
	if len(keys) == 0 {
		s.roundTrips.Add(1)
		keys, cursor, err = s.client.Scan(ctx, cursor, s.cfg.Prefix+":{*}:*", int64(query.Limit)).Result()
		if err != nil {
			return store.Page{}, s.failure(ctx, "list", err)
		}
	}
	// SCAN may give more than it was asked for; what is over waits in the cursor.
	over := keys[min(len(keys), query.Limit):]
	records, err := s.fetch(ctx, keys[:len(keys)-len(over)])
	if err != nil {
		return store.Page{}, s.failure(ctx, "list", err)
	}
	page := store.Page{Next: formatCursor(cursor, over)}
	for _, r := range records {
		if query.Matches(r) {
			page.Records = append(page.Records, r)
		}
	}
	return page, nil
}

// A cursor is where SCAN goes on, then the gids that were read and not returned.
func formatCursor(scan uint64, over []string) string {
	if scan == 0 && len(over) == 0 {
		return ""
	}
	words := []string{strconv.FormatUint(scan, 10)}
	for _, key := range over {
		words = append(words, sagaGID(key))
	}
	return strings.Join(words, ".")
}

func (s *Store) parseCursor(cursor string) (scan uint64, over []string, err error) {
	if cursor == "" {
		return 0, nil, nil
	}
	words := strings.Split(cursor, ".")
	scan, err = strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: cursor: not one of ours", store.ErrInvalid)
	}
	for _, gid := range words[1:] {
		if err := store.CheckGID(gid); err != nil {
			return 0, nil, fmt.Errorf("%w: cursor: not one of ours", store.ErrInvalid)
		}
		over = append(over, s.sagaKey(gid))
	}
	return scan, over, nil
}

// beforeBallast is the end of the due times in a due index: what comes after them
// is no saga.
const beforeBallast = "(+inf"

// oldestSample is how many of the sagas due first, per shard, Stats looks at.
const oldestSample = 1000

// Stats implements store.Store.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stats{}, err
	}
	defer s.calls.RUnlock()
	stats, err := s.stats(ctx)
	if err != nil {
		return store.Stats{}, s.failure(ctx, "stats", err)
	}
	return stats, nil
}

func (s *Store) stats(ctx context.Context) (stats store.Stats, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return stats, err
	}
	sizes := make([]*redis.IntCmd, s.cfg.Shards)
	dues := make([]*redis.IntCmd, s.cfg.Shards)
	firsts := make([]*redis.StringSliceCmd, s.cfg.Shards)
	s.roundTrips.Add(1)
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range s.cfg.Shards {
			index := s.indexKey(i)
			sizes[i] = pipe.ZCount(ctx, index, "-inf", beforeBallast)
			dues[i] = pipe.ZCount(ctx, index, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
			firsts[i] = pipe.ZRangeByScore(ctx, index, &redis.ZRangeBy{Min: "-inf", Max: beforeBallast, Count: oldestSample})
		}
		return nil
	})
	if err != nil {
		return stats, err
	}
	var sample []*redis.StringCmd
	s.roundTrips.Add(1)
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range s.cfg.Shards {
			stats.Unfinished += sizes[i].Val()
			stats.Due += dues[i].Val()
			for _, key := range firsts[i].Val() {
				sample = append(sample, pipe.GetRange(ctx, key, 0, lua.AtUpdated-1))
			}
		}
		return nil
	})
	if err != nil {
		return stats, err
	}
	for _, cmd := range sample {
		if created, err := strconv.ParseInt(cmd.Val(), 10, 64); err == nil { // else it ended meanwhile
			stats.OldestAge = max(stats.OldestAge, now.Sub(time.UnixMilli(created)))
		}
	}
	return stats, nil
}

// now is the server's clock.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	s.roundTrips.Add(1)
	return s.client.Time(ctx).Result()
}
