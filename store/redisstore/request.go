package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// request is commands for one slot. While the slot moves, a server may have some of its
// keys only, and a read finds nothing in place of the others: so they are all for one key,
// or one command.
type request struct {
	slot int
	// queue adds the commands to a pipeline. It is called again if the slot has moved.
	queue func(pipe redis.Pipeliner)

	err    error // the first error of the commands, except redis.Nil and WRONGTYPE
	node   *node // that was asked last
	asking bool  // the node has the slot only for those who were sent there
}

// maxTries of one request. Pauses double from 1 ms, so they are 63 ms at most.
const maxTries = 6

// send sends the requests: those for one server in one round trip, those for several at
// the same time. Each request holds its error.
//
// A server of a cluster refuses a request for a slot that it does not hold, and has done
// nothing then; send asks the one that does. While a slot moves, its keys may be on two
// servers, which both refuse a request for all of them; send repeats it a few times, and
// not for longer, because the requests for other slots wait. It repeats nothing else: see
// the package comment.
func (s *Store) send(ctx context.Context, requests ...*request) {
	if s.nodes.only != nil {
		s.exchange(ctx, s.nodes.only, requests)
		return
	}
	for _, r := range requests {
		r.node, r.asking = s.nodes.owner(r.slot), false
	}
	for try := range maxTries {
		s.exchangeAll(ctx, requests)
		var again []*request
		pause := false
		for _, r := range requests {
			retry, later := s.redirect(r)
			if retry {
				again = append(again, r)
			}
			pause = pause || later
		}
		requests = again
		if len(requests) == 0 || pause && !sleep(ctx, time.Millisecond<<try) {
			return
		}
	}
}

// redirect prepares a request that was refused for another try, and reports whether there
// is to be one, and whether after a pause.
func (s *Store) redirect(r *request) (again, later bool) {
	if r.err == nil {
		return false, false
	}
	if address, ok := redis.IsMovedError(r.err); ok {
		r.node, r.asking = s.nodes.at(address, r.node), false
		s.nodes.moved(r.slot, r.node)
		s.nodes.refreshSoon(nil) // other slots have probably moved too
		return true, false
	}
	if address, ok := redis.IsAskError(r.err); ok {
		r.node, r.asking = s.nodes.at(address, r.node), true
		return true, false
	}
	if redis.IsTryAgainError(r.err) {
		r.node, r.asking = s.nodes.owner(r.slot), false
		return r.node != nil, true
	}
	if !isReply(r.err) || redis.IsClusterDownError(r.err) {
		s.nodes.refreshSoon(r.node)
	}
	return false, false
}

// exchangeAll sends each request to its node.
func (s *Store) exchangeAll(ctx context.Context, requests []*request) {
	var groups [][]*request // by node
	for _, r := range requests {
		if r.node == nil {
			r.err = fmt.Errorf("no server of the cluster holds slot %d%s", r.slot, checkCluster)
			continue
		}
		i := slices.IndexFunc(groups, func(group []*request) bool { return group[0].node == r.node })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	var all sync.WaitGroup
	for i, group := range groups {
		if i == len(groups)-1 { // often the only one
			s.exchange(ctx, group[0].node, group)
			break
		}
		all.Go(func() { s.exchange(ctx, group[0].node, group) })
	}
	all.Wait()
}

// exchange sends requests to a server in one round trip.
func (s *Store) exchange(ctx context.Context, to *node, requests []*request) {
	pipe := to.Pipeline()
	ends := make([]int, len(requests))
	for i, r := range requests {
		if r.asking { // each command by itself
			commands := to.Pipeline()
			r.queue(commands)
			for _, cmd := range commands.Cmds() {
				_ = pipe.BatchProcess(ctx, redis.NewStatusCmd(ctx, "asking"), cmd)
			}
		} else {
			r.queue(pipe)
		}
		ends[i] = pipe.Len()
	}
	var replicas *redis.IntCmd
	if s.cfg.Replicas > 0 {
		// Replies wait until these replicas have what the server had when it ran the
		// commands above, also where these only read.
		replicas = redis.NewIntCmd(ctx, "wait", s.cfg.Replicas, max(1, (s.cfg.Timeout/2).Milliseconds()))
		_ = pipe.Process(ctx, replicas)
	}
	s.roundTrips.Add(1)
	cmds, _ := pipe.Exec(ctx)
	begin := 0
	for i, r := range requests {
		r.node, r.err = to, nil
		for _, cmd := range cmds[begin:ends[i]] {
			if err := cmd.Err(); r.err == nil && err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err) {
				r.err = err
				if s.nodes.only == nil {
					r.err = fmt.Errorf("%s: %w", to.address, err)
					if redis.IsClusterDownError(err) {
						r.err = fmt.Errorf("%w%s", r.err, checkCluster)
					}
				}
			}
		}
		if r.err == nil && replicas != nil && replicas.Val() < int64(s.cfg.Replicas) {
			r.err = fmt.Errorf("%v: %d of %d replicas have it: outcome unknown: %w", to, replicas.Val(), s.cfg.Replicas, errReplicas)
		}
		begin = ends[i]
	}
}

var errReplicas = errors.New("a replica is missing, or slow")

const checkCluster = " (redis-cli --cluster check says which slots have no master)"

// sleep reports whether ctx is still alive afterwards.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// each sends commands for each key, in one round trip to each server.
func (s *Store) each(ctx context.Context, keys []string, queue func(pipe redis.Pipeliner, i int)) error {
	requests := make([]*request, len(keys))
	for i, key := range keys {
		requests[i] = &request{slot: slotOf(key), queue: func(pipe redis.Pipeliner) { queue(pipe, i) }}
	}
	s.send(ctx, requests...)
	return firstError(requests)
}

// eachShard sends commands for each of the shards, in one round trip to each server.
func (s *Store) eachShard(ctx context.Context, shards []int, queue func(pipe redis.Pipeliner, shard int)) error {
	requests := make([]*request, len(shards))
	for i, shard := range shards {
		requests[i] = &request{slot: s.slots[shard], queue: func(pipe redis.Pipeliner) { queue(pipe, shard) }}
	}
	s.send(ctx, requests...)
	return firstError(requests)
}

// allShards returns the numbers of all shards.
func (s *Store) allShards() []int {
	all := make([]int, s.cfg.Shards)
	for i := range all {
		all[i] = i
	}
	return all
}

// shardsByServer returns the shards that each server holds.
func (s *Store) shardsByServer() map[*node][]int {
	servers := make(map[*node][]int)
	for shard, slot := range s.slots {
		servers[s.nodes.owner(slot)] = append(servers[s.nodes.owner(slot)], shard)
	}
	return servers
}

// firstError returns the first error of requests.
func firstError(requests []*request) error {
	for _, r := range requests {
		if r.err != nil {
			return r.err
		}
	}
	return nil
}
