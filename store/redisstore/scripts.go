package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
	"sagabench/store"
	"sagabench/store/redisstore/redisconn"
)

// initServer loads the scripts into a server that has none. It may have just started, so
// initServer checks its settings. It may have lost everything, so initServer adds the
// ballast to the due indexes and records the layout: the next client could otherwise
// choose another number of shards.
func (s *Store) initServer(ctx context.Context, server *node) error {
	if err := s.loadScripts(ctx, server); err != nil {
		return err
	}
	if s.nodes.owner(slotOf(s.layoutKey())) == server {
		if _, err := s.recordLayout(ctx, s.cfg.Shards); err != nil {
			return err
		}
	}
	return s.addBallast(ctx, s.shardsByServer()[server])
}

// addBallast adds the ballast to the due indexes of shards.
func (s *Store) addBallast(ctx context.Context, shards []int) error {
	err := s.eachShard(ctx, shards, func(pipe redis.Pipeliner, shard int) {
		pipe.ZAdd(ctx, s.indexKey(shard), redis.Z{Score: math.Inf(1), Member: lua.Ballast})
	})
	if err != nil {
		return fmt.Errorf("adding the ballast to the due indexes: %w", err)
	}
	return nil
}

// loadAllScripts loads the scripts into all servers, and returns those that answered. The
// sagas of the others have to wait until they do; run loads their scripts then.
func (s *Store) loadAllScripts(ctx context.Context, all []*node) (answered []*node, err error) {
	for _, server := range all {
		one := s.loadScripts(ctx, server)
		switch {
		case one == nil:
			answered = append(answered, server)
			continue
		case s.nodes.only == nil:
			one = fmt.Errorf("%v: %w", server, one)
		}
		if isReply(one) && !redis.IsLoadingError(one) || errors.Is(one, store.ErrUnsafe) {
			return nil, one
		}
		err = one
	}
	if len(answered) > 0 {
		err = nil
	}
	return answered, err
}

func (s *Store) loadScripts(ctx context.Context, server *node) error {
	var memory *redis.StringCmd
	s.roundTrips.Add(1)
	_, err := server.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		memory = pipe.Info(ctx, "memory")
		for _, script := range lua.All() {
			pipe.ScriptLoad(ctx, script.Source)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("loading the scripts: %w", err)
	}
	if policy := redisconn.Fields(memory.Val())["maxmemory_policy"]; policy != "noeviction" {
		return fmt.Errorf("%w: maxmemory-policy is %s, which may drop unfinished sagas: set it to noeviction", store.ErrUnsafe, policy)
	}
	return nil
}

// scriptCall is one EVALSHA.
type scriptCall struct {
	script  *lua.Script
	keys    []string
	args    []string
	changes []int // by their number in the batch, in the order in which the script counts sagas
	cmd     *redis.Cmd
	request
}

func (c *scriptCall) evalsha(ctx context.Context, pipe redis.Pipeliner) {
	words := make([]any, 0, 3+len(c.keys)+len(c.args))
	words = append(words, "evalsha", c.script.SHA1, len(c.keys))
	// The client accepts pointers to strings, which saves an allocation for each.
	for i := range c.keys {
		words = append(words, &c.keys[i])
	}
	for i := range c.args {
		words = append(words, &c.args[i])
	}
	c.cmd = pipe.Do(ctx, words...)
}

// malformed returns the error of a reply that the script does not give.
func (c *scriptCall) malformed() error {
	return fmt.Errorf("not a reply of %s.lua: outcome unknown: %.100q", c.script.Name, fmt.Sprint(c.cmd.Val()))
}

// run sends the calls. If a server lacks a script, run prepares it and repeats only the
// calls that it did not run. Each call holds its error.
func (s *Store) run(ctx context.Context, calls []*scriptCall) {
	if len(calls) == 0 {
		return
	}
	requests := make([]*request, len(calls))
	for i, call := range calls {
		call.queue = func(pipe redis.Pipeliner) { call.evalsha(ctx, pipe) }
		requests[i] = &call.request
	}
	s.send(ctx, requests...)
	unknown := slices.DeleteFunc(requests, func(r *request) bool { return !redis.HasErrorPrefix(r.err, "NOSCRIPT") })
	if len(unknown) == 0 {
		return
	}
	prepared := make(map[*node]error)
	for _, r := range unknown {
		err, done := prepared[r.node]
		if !done {
			err = s.initServer(ctx, r.node)
			prepared[r.node] = err
		}
		r.err = err
	}
	s.send(ctx, slices.DeleteFunc(unknown, func(r *request) bool { return r.err != nil })...)
}
