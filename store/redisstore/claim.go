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
	if err == nil && len(candidates) > 0 {
		candidates, err = s.cutToPage(ctx, candidates)
	}
	if err != nil {
		return nil, s.wrapError(ctx, "claim", err)
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	return s.claim(ctx, owner, lease, candidates)
}

// candidate is a saga that was due when the index was read.
type candidate struct {
	key string
	due float64
}

// findDue returns up to limit due sagas of all shards, longest overdue first.
func (s *Store) findDue(ctx context.Context, limit int) ([]candidate, error) {
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	by := &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit)}
	shards := make([]*redis.ZSliceCmd, s.cfg.Shards)
	s.roundTrips.Add(1)
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range shards {
			shards[i] = pipe.ZRangeByScoreWithScores(ctx, s.indexKey(i), by)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, shard := range shards {
		for _, z := range shard.Val() {
			all = append(all, candidate{key: z.Member.(string), due: z.Score})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.due, b.due) })
	return all[:min(len(all), limit)], nil
}

// cutToPage removes the candidates that do not fit into a page. It runs before the
// claim: a script that returns hundreds of large bodies blocks the server for seconds.
func (s *Store) cutToPage(ctx context.Context, candidates []candidate) ([]candidate, error) {
	keys := make([]string, len(candidates))
	for i, c := range candidates {
		keys[i] = c.key
	}
	n, _, err := s.fitPage(ctx, keys, 0)
	return candidates[:n], err
}

// claim sends one call per shard. It returns the claimed sagas in the order of the
// candidates, also if some calls failed.
func (s *Store) claim(ctx context.Context, owner string, lease time.Duration, candidates []candidate) ([]store.Record, error) {
	args := []string{padOwner(owner), millis(store.Quarantine), millis(lease)}
	byShard := make([]*scriptCall, s.cfg.Shards)
	var calls []*scriptCall
	place := make(map[string]int, len(candidates))
	for i, c := range candidates {
		shard := s.shard(sagaGID(c.key))
		if byShard[shard] == nil {
			byShard[shard] = &scriptCall{script: &lua.Claim, keys: []string{s.indexKey(shard)}, args: args}
			calls = append(calls, byShard[shard])
		}
		byShard[shard].keys = append(byShard[shard].keys, c.key)
		place[sagaGID(c.key)] = i
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
