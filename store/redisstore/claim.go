package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
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
		err = s.wrapError(ctx, "claim", err)
	}
	records, claimErr := s.claim(ctx, owner, lease, candidates)
	return records, errors.Join(err, claimErr)
}

// patience returns how long findDue waits for a server of a cluster after another has
// answered, 100 ms by default. A lost server holds up the sagas of the others only so long.
func (s *Store) patience() time.Duration { return s.cfg.Timeout / 30 }

// dueAnswer is what dueIn found on a server.
type dueAnswer struct {
	from   *node
	shards []int
	due    [][]redis.Z
	err    error
}

// claims is what one call of ClaimDue leaves to the next.
type claims struct {
	mu      sync.Mutex
	late    map[*node]dueAnswer // of servers that findDue did not wait for
	refused map[int]bool        // shards whose sagas could not be claimed the last time
}

// findDue returns up to limit due sagas that fit into a page, longest overdue first, also
// if some servers did not answer. What those answer later is for the next call, so that a
// slow server is not left out for ever. Sagas that could not be claimed the last time come
// last, so that a server that refuses writes does not hold up the sagas of the others.
//
// It records the layout again if its server has lost it: another client could otherwise
// choose another number of shards.
//
// It reads their lengths: a script that returns hundreds of large bodies blocks the server
// for seconds.
func (s *Store) findDue(ctx context.Context, limit int) ([]string, error) {
	servers := s.shardsByServer()
	ofLayout := s.nodes.owner(slotOf(s.layoutKey()))
	if servers[ofLayout] == nil {
		servers[ofLayout] = []int{}
	}
	answers := make(chan dueAnswer, len(servers))
	for server, shards := range servers {
		s.nodes.background.Go(func() {
			asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout) // it may be late
			defer cancel()
			due, err := s.dueIn(asked, shards, limit)
			if err == nil && server == ofLayout {
				_, err = s.recordLayout(asked, s.cfg.Shards)
			}
			answers <- dueAnswer{server, shards, due, err}
		})
	}
	s.claims.mu.Lock()
	found, refused := s.claims.late, s.claims.refused
	s.claims.late, s.claims.refused = make(map[*node]dueAnswer), nil
	s.claims.mu.Unlock()
	var errs []error
	var late <-chan time.Time
	missing := len(servers)
	for over := false; missing > 0 && !over; {
		select {
		case a := <-answers:
			missing--
			found[a.from] = a
			if a.err == nil && late == nil {
				late = time.After(s.patience())
			}
		case <-late:
			over = true
		case <-ctx.Done():
			errs, over = append(errs, ctx.Err()), true
		}
	}
	s.nodes.background.Go(func() {
		for range missing {
			a := <-answers
			s.claims.mu.Lock()
			s.claims.late[a.from] = a
			s.claims.mu.Unlock()
		}
	})
	byShard := make([][]redis.Z, s.cfg.Shards)
	for _, a := range found {
		if a.err != nil {
			errs = append(errs, a.err)
		}
		for i, due := range a.due {
			// What somebody else added to the index would, on a cluster, fail the call for all.
			byShard[a.shards[i]] = slices.DeleteFunc(due, func(z redis.Z) bool {
				key := z.Member.(string)
				return key != s.sagaKey(sagaGID(key))
			})
		}
	}
	var due, last []redis.Z
	for shard, found := range byShard {
		if refused[shard] {
			last = append(last, found...)
		} else {
			due = append(due, found...)
		}
	}
	for _, part := range [][]redis.Z{due, last} {
		slices.SortFunc(part, func(a, b redis.Z) int { return cmp.Compare(a.Score, b.Score) })
	}
	due = append(due, last...)
	due = due[:min(len(due), limit)]
	keys := make([]string, len(due))
	for i := range keys {
		keys[i] = due[i].Member.(string)
	}
	n, _, err := s.fitPage(ctx, keys, 0)
	return keys[:n], errors.Join(append(errs, err)...)
}

// dueIn returns up to limit due sagas of each of these shards, longest overdue first. A
// saga is due by the clock of its server.
func (s *Store) dueIn(ctx context.Context, shards []int, limit int) ([][]redis.Z, error) {
	if len(shards) == 0 {
		return nil, nil
	}
	now, err := s.now(ctx, shards[0])
	if err != nil {
		return nil, err
	}
	by := &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit)}
	found := make([]*redis.ZSliceCmd, len(shards))
	requests := make([]*request, len(shards))
	for i, shard := range shards {
		requests[i] = &request{slot: s.slots[shard], queue: func(pipe redis.Pipeliner) {
			found[i] = pipe.ZRangeByScoreWithScores(ctx, s.indexKey(shard), by)
		}}
	}
	s.send(ctx, requests...)
	due := make([][]redis.Z, len(shards))
	for i, r := range requests {
		if r.err == nil {
			due[i] = found[i].Val()
		}
	}
	return due, firstError(requests)
}

// claim claims the sagas with these keys, with one call per shard. It returns the claimed
// ones in the order of the keys, also if some calls failed.
func (s *Store) claim(ctx context.Context, owner string, lease time.Duration, keys []string) ([]store.Record, error) {
	args := []string{padOwner(owner), millis(store.Quarantine), millis(lease)}
	byShard := make(map[int]*scriptCall)
	var calls []*scriptCall
	place := make(map[string]int, len(keys))
	for i, key := range keys {
		gid := sagaGID(key)
		shard := s.shard(gid)
		if byShard[shard] == nil {
			byShard[shard] = &scriptCall{script: &lua.Claim, keys: []string{s.indexKey(shard)}, args: args}
			byShard[shard].slot = s.slots[shard]
			calls = append(calls, byShard[shard])
		}
		byShard[shard].keys = append(byShard[shard].keys, key)
		place[gid] = i
	}
	s.run(ctx, calls)

	var records []store.Record
	var failures []error
	refused := make(map[int]bool)
	for shard, call := range byShard {
		claimed, err := claimed(call)
		refused[shard] = call.err != nil
		records = append(records, claimed...)
		if err != nil {
			failures = append(failures, s.wrapError(ctx, "claim", err))
		}
	}
	s.claims.mu.Lock()
	s.claims.refused = refused
	s.claims.mu.Unlock()
	slices.SortFunc(records, func(a, b store.Record) int { return cmp.Compare(place[a.GID], place[b.GID]) })
	return records, errors.Join(failures...)
}

// claimed parses the reply of claim.lua: when the sagas are due again, then pairs of
// position and value. The value is nil if the saga cannot be read.
func claimed(call *scriptCall) (records []store.Record, err error) {
	if call.err != nil {
		return nil, call.err
	}
	answer, err := call.cmd.Slice()
	if err != nil {
		return nil, err
	}
	if len(answer)%2 == 0 {
		return nil, call.malformed()
	}
	due, ok := answer[0].(int64)
	if !ok {
		return nil, call.malformed()
	}
	for n := 1; n < len(answer); n += 2 {
		at, ok := answer[n].(int64)
		if !ok || at < 1 || at >= int64(len(call.keys)) {
			return records, errors.Join(err, call.malformed())
		}
		gid := sagaGID(call.keys[at])
		switch value := answer[n+1].(type) {
		case string:
			record, decodeErr := decode(gid, value)
			if decodeErr != nil {
				err = errors.Join(err, decodeErr)
				continue
			}
			record.Due = time.UnixMilli(due)
			records = append(records, record)
		case nil:
			err = errors.Join(err, fmt.Errorf("saga %s: %w: set aside for %v", gid, store.ErrUnreadable, store.Quarantine))
		default:
			return records, errors.Join(err, call.malformed())
		}
	}
	return records, err
}
