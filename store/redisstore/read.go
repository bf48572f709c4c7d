package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
	var record store.Record
	err := s.call(ctx, "get", func() error {
		read, err := s.fetch(ctx, []string{s.sagaKey(gid)})
		if err != nil {
			return err
		}
		record = read[0].Record
		return read[0].err
	})
	switch {
	case err != nil:
		return store.Record{}, err
	case record.GID == "":
		return store.Record{}, fmt.Errorf("%w: %s", store.ErrNotFound, gid)
	}
	return record, nil
}

// fetchedSaga is the saga of one key.
type fetchedSaga struct {
	store.Record       // without a GID if there is no saga
	err          error // why it cannot be read
}

// fetch reads the sagas with these keys, and their due times.
func (s *Store) fetch(ctx context.Context, keys []string) ([]fetchedSaga, error) {
	values := make([]*redis.StringCmd, len(keys))
	dues := make([]*redis.FloatCmd, len(keys))
	_ = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for i, key := range keys {
			values[i] = pipe.Get(ctx, key)
			dues[i] = pipe.ZScore(ctx, s.indexKey(s.shard(sagaGID(key))), key)
		}
	})
	all := make([]fetchedSaga, len(keys))
	for i, key := range keys {
		value, err := values[i].Result()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case isWrongType(err):
			all[i].err = fmt.Errorf("saga %s: %w: %w", sagaGID(key), store.ErrUnreadable, err)
			continue
		case err != nil:
			return nil, err
		}
		r := &all[i]
		if r.Record, r.err = decode(sagaGID(key), value); r.err != nil {
			continue
		}
		switch due, err := dues[i].Result(); {
		case err == nil:
			r.Due = time.UnixMilli(int64(due))
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}
	return all, nil
}

// isWrongType reports whether err says that a key does not hold a string.
func isWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// fitPage returns how many of the keys fit into a page of size bytes, and the new size
// of the page.
func (s *Store) fitPage(ctx context.Context, keys []string, size int64) (n int, filled int64, err error) {
	if len(keys) == 0 {
		return 0, size, nil
	}
	lengths := make([]*redis.IntCmd, len(keys))
	_ = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for i, key := range keys {
			lengths[i] = pipe.StrLen(ctx, key)
		}
	})
	for n < len(keys) && size < store.MaxPageBytes {
		length, err := lengths[n].Result()
		if err != nil && !isWrongType(err) {
			return n, size, err
		}
		size += length
		n++
	}
	return n, size, nil
}

// maxDueTime bounds the due times in an index. The ballast comes after it.
const maxDueTime = "(+inf"

// oldestSample is the number of sagas per shard, those due first, that Stats reads.
const oldestSample = 1000

// Stats implements store.Store.
func (s *Store) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = s.call(ctx, "stats", func() error {
		stats, err = s.stats(ctx)
		return err
	})
	return stats, err
}

func (s *Store) stats(ctx context.Context) (stats store.Stats, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return stats, err
	}
	sizes := make([]*redis.IntCmd, s.cfg.Shards)
	dues := make([]*redis.IntCmd, s.cfg.Shards)
	firsts := make([]*redis.StringSliceCmd, s.cfg.Shards)
	err = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for i := range s.cfg.Shards {
			index := s.indexKey(i)
			sizes[i] = pipe.ZCount(ctx, index, "-inf", maxDueTime)
			dues[i] = pipe.ZCount(ctx, index, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
			firsts[i] = pipe.ZRangeByScore(ctx, index, &redis.ZRangeBy{Min: "-inf", Max: maxDueTime, Count: oldestSample})
		}
	})
	if err != nil {
		return store.Stats{}, err
	}
	var sample []*redis.StringCmd
	err = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for i := range s.cfg.Shards {
			stats.Unfinished += sizes[i].Val()
			stats.Due += dues[i].Val()
			for _, key := range firsts[i].Val() {
				sample = append(sample, pipe.GetRange(ctx, key, 0, lua.AtUpdated-1))
			}
		}
	})
	if err != nil && !isWrongType(err) {
		return store.Stats{}, err
	}
	for _, cmd := range sample {
		if created, err := strconv.ParseInt(cmd.Val(), 10, 64); err == nil { // else it ended meanwhile
			stats.OldestAge = max(stats.OldestAge, now.Sub(time.UnixMilli(created)))
		}
	}
	return stats, nil
}

// now returns the server's time.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	s.roundTrips.Add(1)
	return s.client.Time(ctx).Result()
}
