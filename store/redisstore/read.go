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
	// Two requests for each key: while a slot moves, one server may have the saga, and
	// another one the due index.
	var requests []*request
	for i, key := range keys {
		index := s.indexKey(s.shard(sagaGID(key)))
		requests = append(requests,
			&request{slot: slotOf(key), queue: func(pipe redis.Pipeliner) { values[i] = pipe.Get(ctx, key) }},
			&request{slot: slotOf(key), queue: func(pipe redis.Pipeliner) { dues[i] = pipe.ZScore(ctx, index, key) }})
	}
	s.send(ctx, requests...)
	if err := firstError(requests); err != nil {
		return nil, err
	}
	all := make([]fetchedSaga, len(keys))
	for i, key := range keys {
		value, err := values[i].Result()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case isWrongType(err):
			all[i].err = fmt.Errorf("saga %s: %w: %w", sagaGID(key), store.ErrUnreadable, err)
			continue
		}
		r := &all[i]
		if r.Record, r.err = decode(sagaGID(key), value); r.err != nil {
			continue
		}
		if due, err := dues[i].Result(); err == nil { // else it is not in the index
			r.Due = time.UnixMilli(int64(due))
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
	err = s.each(ctx, keys, func(pipe redis.Pipeliner, i int) { lengths[i] = pipe.StrLen(ctx, keys[i]) })
	if err != nil {
		return 0, size, err
	}
	for n < len(keys) && size < store.MaxPageBytes {
		size += lengths[n].Val()
		n++
	}
	return n, size, nil
}

// maxDueTime bounds the due times in an index. The ballast comes after it.
const maxDueTime = "(+inf"

// oldestSample is the number of sagas per shard, those due first, that Stats reads.
const oldestSample = 1000

// Stats implements store.Store. If some servers of a cluster do not answer, it counts the
// others and returns store.ErrPartial.
func (s *Store) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = s.call(ctx, "stats", func() error {
		stats, err = s.stats(ctx)
		return err
	})
	return stats, err
}

func (s *Store) stats(ctx context.Context) (sum store.Stats, err error) {
	type answer struct {
		stats store.Stats
		err   error
	}
	servers := s.shardsByServer()
	answers := make(chan answer, len(servers))
	for _, shards := range servers {
		go func() {
			stats, err := s.statsOf(ctx, shards)
			answers <- answer{stats, err}
		}()
	}
	answered := false
	for range servers {
		a := <-answers
		if a.err != nil {
			err = a.err
			continue
		}
		answered = true
		sum.Unfinished += a.stats.Unfinished
		sum.Due += a.stats.Due
		sum.OldestAge = max(sum.OldestAge, a.stats.OldestAge)
	}
	if err != nil && answered {
		err = fmt.Errorf("%w: %w", store.ErrPartial, err)
	}
	return sum, err
}

// statsOf counts the sagas of shards that are on one server.
func (s *Store) statsOf(ctx context.Context, shards []int) (stats store.Stats, err error) {
	now, err := s.now(ctx, shards[0])
	if err != nil {
		return stats, err
	}
	sizes := make([]*redis.IntCmd, s.cfg.Shards)
	dues := make([]*redis.IntCmd, s.cfg.Shards)
	firsts := make([]*redis.StringSliceCmd, s.cfg.Shards)
	err = s.eachShard(ctx, shards, func(pipe redis.Pipeliner, i int) {
		index := s.indexKey(i)
		sizes[i] = pipe.ZCount(ctx, index, "-inf", maxDueTime)
		dues[i] = pipe.ZCount(ctx, index, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
		firsts[i] = pipe.ZRangeByScore(ctx, index, &redis.ZRangeBy{Min: "-inf", Max: maxDueTime, Count: oldestSample})
	})
	if err != nil {
		return stats, err
	}
	var sample []string
	for _, i := range shards {
		stats.Unfinished += sizes[i].Val()
		stats.Due += dues[i].Val()
		sample = append(sample, firsts[i].Val()...)
	}
	creations := make([]*redis.StringCmd, len(sample))
	err = s.each(ctx, sample, func(pipe redis.Pipeliner, i int) {
		creations[i] = pipe.GetRange(ctx, sample[i], 0, lua.AtUpdated-1)
	})
	if err != nil {
		return stats, err
	}
	for _, cmd := range creations {
		if created, err := strconv.ParseInt(cmd.Val(), 10, 64); err == nil { // else it ended meanwhile
			stats.OldestAge = max(stats.OldestAge, now.Sub(time.UnixMilli(created)))
		}
	}
	return stats, nil
}

// now returns the time of a shard's server.
func (s *Store) now(ctx context.Context, shard int) (time.Time, error) {
	var now *redis.TimeCmd
	r := &request{slot: s.slots[shard], queue: func(pipe redis.Pipeliner) { now = pipe.Time(ctx) }}
	if s.send(ctx, r); r.err != nil {
		return time.Time{}, r.err
	}
	return now.Val(), nil
}
