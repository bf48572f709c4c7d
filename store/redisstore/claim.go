package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
	"sagabench/store"
)

// ClaimDue implements store.Store. A script may only touch the keys that it is given,
// so ClaimDue reads the due sagas first; claim.lua checks them again.
func (s *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.RUnlock()
	candidates, err := s.findDue(ctx, limit)
	if err != nil {
		return nil, s.wrapError(ctx, "claim", err)
	}
	return s.claim(ctx, owner, lease, candidates)
}

// findDue returns up to limit due sagas of all shards that fit into a page, longest
// overdue first. It reads their lengths: a script that returns hundreds of large bodies
// blocks the server for seconds.
func (s *Store) findDue(ctx context.Context, limit int) ([]string, error) {
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	by := &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit)}
	shards := make([]*redis.ZSliceCmd, s.cfg.Shards)
	err = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for i := range shards {
			shards[i] = pipe.ZRangeByScoreWithScores(ctx, s.indexKey(i), by)
		}
	})
	if err != nil {
		return nil, err
	}
	var all []redis.Z
	for _, shard := range shards {
		all = append(all, shard.Val()...)
	}
	slices.SortFunc(all, func(a, b redis.Z) int { return cmp.Compare(a.Score, b.Score) })
	keys := make([]string, min(len(all), limit))
	for i := range keys {
		keys[i] = all[i].Member.(string)
	}
	n, _, err := s.fitPage(ctx, keys, 0)
	return keys[:n], err
}

// claim claims the sagas with these keys, with one call per shard. It returns the claimed
// ones in the order of the keys, also if some calls failed.
func (s *Store) claim(ctx context.Context, owner string, lease time.Duration, keys []string) ([]store.Record, error) {
	args := []string{padOwner(owner), millis(store.Quarantine), millis(lease)}
	byShard := make([]*scriptCall, s.cfg.Shards)
	var calls []*scriptCall
	place := make(map[string]int, len(keys))
	for i, key := range keys {
		gid := sagaGID(key)
		shard := s.shard(gid)
		if byShard[shard] == nil {
			byShard[shard] = &scriptCall{script: &lua.Claim, keys: []string{s.indexKey(shard)}, args: args}
			calls = append(calls, byShard[shard])
		}
		byShard[shard].keys = append(byShard[shard].keys, key)
		place[gid] = i
	}
	s.run(ctx, calls)

	var records []store.Record
	var failures []error
	for _, call := range calls {
		claimed, err := claimed(call)
		records = append(records, claimed...)
		if err != nil {
			failures = append(failures, s.wrapError(ctx, "claim", err))
		}
	}
	slices.SortFunc(records, func(a, b store.Record) int { return cmp.Compare(place[a.GID], place[b.GID]) })
	return records, errors.Join(failures...)
}

// claimed parses the reply of claim.lua: when the sagas are due again, then pairs of
// position and value. The value is nil if the saga cannot be read.
func claimed(call *scriptCall) ([]store.Record, error) {
	answer, err := call.cmd.Slice()
	if err != nil {
		return nil, err
	}
	due := time.UnixMilli(answer[0].(int64))
	var records []store.Record
	for n := 1; n+1 < len(answer); n += 2 {
		gid := sagaGID(call.keys[answer[n].(int64)])
		value, readable := answer[n+1].(string)
		if !readable {
			err = errors.Join(err, fmt.Errorf("saga %s: %w: set aside for %v", gid, store.ErrUnreadable, store.Quarantine))
			continue
		}
		record, decodeErr := decode(gid, value)
		if decodeErr != nil {
			err = errors.Join(err, decodeErr)
			continue
		}
		record.Due = due
		records = append(records, record)
	}
	return records, err
}
