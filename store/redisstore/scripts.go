package redisstore

import (
	"context"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
	"sagabench/store"
)

// loadScripts loads the scripts and adds the ballast to the due indexes. It records
// the layout too: a server without the scripts may have lost everything, and the next
// client could otherwise choose another number of shards.
func (s *Store) loadScripts(ctx context.Context) error {
	wanted := fmt.Sprintf(layout, s.cfg.Shards)
	var recorded *redis.StringCmd
	err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for _, script := range lua.All() {
			pipe.ScriptLoad(ctx, script.Source)
		}
		pipe.SetNX(ctx, s.layoutKey(), wanted, 0)
		recorded = pipe.Get(ctx, s.layoutKey())
		for _, index := range s.indexes {
			pipe.ZAdd(ctx, index, redis.Z{Score: math.Inf(1), Member: lua.Ballast})
		}
	})
	if err != nil {
		return fmt.Errorf("loading the scripts: %w", err)
	}
	if recorded.Val() != wanted {
		return fmt.Errorf("%w: prefix %q is laid out as %q now, not %q", store.ErrUnsafe, s.cfg.Prefix, recorded.Val(), wanted)
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
}

func (c *scriptCall) queue(ctx context.Context, pipe redis.Pipeliner) {
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

// run sends the calls in one round trip. If the server lacks a script, run loads the
// scripts and repeats only the calls that the server did not run. The outcome of each
// call is in its cmd.
func (s *Store) run(ctx context.Context, calls []*scriptCall) {
	if len(calls) == 0 {
		return
	}
	s.send(ctx, calls)
	var unknown []*scriptCall
	for _, call := range calls {
		if err := call.cmd.Err(); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			unknown = append(unknown, call)
		}
	}
	if len(unknown) == 0 {
		return
	}
	if err := s.loadScripts(ctx); err != nil {
		for _, call := range unknown {
			call.cmd.SetErr(err)
		}
		return
	}
	s.send(ctx, unknown)
}

func (s *Store) send(ctx context.Context, calls []*scriptCall) {
	// Each command holds its error, also that of a lost connection.
	_ = s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for _, call := range calls {
			call.queue(ctx, pipe)
		}
	})
}
