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
