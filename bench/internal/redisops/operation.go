package redisops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// operation is one kind of command.
type operation struct {
	goRedis func(ctx context.Context, c redis.Cmdable, key string, w *workload) redis.Cmder
	rueidis func(b rueidis.Builder, key string, w *workload) rueidis.Completed
	reply   reply
	preload func(ctx context.Context, pipe redis.Pipeliner, key string, w *workload) // nil: nothing
	script  string                                                                   // of EVALSHA
}

// reply is what a command must be answered with.
type reply int

const (
	replyOK    reply = iota
	replyValue       // as long as the payload
	replyCount       // at least 1
	replyHash        // of all fields
)

const (
	opLPop = "LPOP"

	scriptSet    = "return redis.call('SET',KEYS[1],ARGV[1])"
	scriptTenSet = "for i=1,9 do redis.call('SET',KEYS[1],ARGV[1]) end return redis.call('SET',KEYS[1],ARGV[1])"
)

// operations lists what can be measured.
var operations = map[string]*operation{
	"SET": {
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, w *workload) redis.Cmder {
			return c.Set(ctx, key, w.payload, 0)
		},
		rueidis: func(b rueidis.Builder, key string, w *workload) rueidis.Completed {
			return b.Set().Key(key).Value(w.payload).Build()
		},
		preload: setPayload,
	},
	"GET": {
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, _ *workload) redis.Cmder {
			return c.Get(ctx, key)
		},
		rueidis: func(b rueidis.Builder, key string, _ *workload) rueidis.Completed {
			return b.Get().Key(key).Build()
		},
		reply:   replyValue,
		preload: setPayload,
	},
	"LPUSH": {
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, w *workload) redis.Cmder {
			return c.LPush(ctx, key, w.payload)
		},
		rueidis: func(b rueidis.Builder, key string, w *workload) rueidis.Completed {
			return b.Lpush().Key(key).Element(w.payload).Build()
		},
		reply: replyCount,
	},
	opLPop: { // its list is filled before each part of the measurement
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, _ *workload) redis.Cmder {
			return c.LPop(ctx, key)
		},
		rueidis: func(b rueidis.Builder, key string, _ *workload) rueidis.Completed {
			return b.Lpop().Key(key).Build()
		},
		reply: replyValue,
	},
	"INCR": {
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, _ *workload) redis.Cmder {
			return c.Incr(ctx, key)
		},
		rueidis: func(b rueidis.Builder, key string, _ *workload) rueidis.Completed {
			return b.Incr().Key(key).Build()
		},
		reply: replyCount,
		preload: func(ctx context.Context, pipe redis.Pipeliner, key string, _ *workload) {
			pipe.Set(ctx, key, 0, 0)
		},
	},
	opHGetAll: {
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, _ *workload) redis.Cmder {
			return c.HGetAll(ctx, key)
		},
		rueidis: func(b rueidis.Builder, key string, _ *workload) rueidis.Completed {
			return b.Hgetall().Key(key).Build()
		},
		reply:   replyHash,
		preload: setHash,
	},
	"EVAL":      evaluated(scriptSet),
	"EVALSHA":   evaluatedBySHA(scriptSet),
	"EVAL10":    evaluated(scriptTenSet), // ten SETs
	"EVALSHA10": evaluatedBySHA(scriptTenSet),
}

func evaluated(script string) *operation {
	return &operation{
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, w *workload) redis.Cmder {
			return c.Eval(ctx, script, []string{key}, w.payload)
		},
		rueidis: func(b rueidis.Builder, key string, w *workload) rueidis.Completed {
			return b.Eval().Script(script).Numkeys(1).Key(key).Arg(w.payload).Build()
		},
		preload: setPayload,
	}
}

func evaluatedBySHA(script string) *operation {
	sha := redis.NewScript(script).Hash()
	return &operation{
		goRedis: func(ctx context.Context, c redis.Cmdable, key string, w *workload) redis.Cmder {
			return c.EvalSha(ctx, sha, []string{key}, w.payload)
		},
		rueidis: func(b rueidis.Builder, key string, w *workload) rueidis.Completed {
			return b.Evalsha().Sha1(sha).Numkeys(1).Key(key).Arg(w.payload).Build()
		},
		preload: setPayload,
		script:  script,
	}
}

// Operations lists the operations: EVAL and EVALSHA call a script with a SET, EVAL10 and
// EVALSHA10 one with ten SETs.
func Operations() []string {
	return []string{"SET", "GET", "LPUSH", opLPop, "INCR", opHGetAll, "EVAL", "EVALSHA", "EVAL10", "EVALSHA10"}
}

// checkGoRedis returns an error if a reply is not as expected.
func (w *workload) checkGoRedis(cmd redis.Cmder) error {
	if err := cmd.Err(); err != nil {
		return err
	}
	right := false
	switch cmd := cmd.(type) {
	case *redis.StatusCmd:
		right = cmd.Val() == "OK"
	case *redis.StringCmd:
		right = len(cmd.Val()) == len(w.payload)
	case *redis.IntCmd:
		right = cmd.Val() > 0
	case *redis.MapStringStringCmd:
		right = len(cmd.Val()) == hashFields
	case *redis.Cmd:
		right = cmd.Val() == "OK"
	}
	if !right {
		return fmt.Errorf("%w: %.100v", errReply, cmd)
	}
	return nil
}

// checkRueidis is checkGoRedis for rueidis.
func (w *workload) checkRueidis(result rueidis.RedisResult) (err error) {
	right := false
	switch w.reply {
	case replyOK, replyValue:
		var text string
		text, err = result.ToString()
		right = w.reply == replyOK && text == "OK" || w.reply == replyValue && len(text) == len(w.payload)
	case replyCount:
		var n int64
		n, err = result.AsInt64()
		right = n > 0
	case replyHash:
		var fields map[string]string
		fields, err = result.AsStrMap()
		right = len(fields) == hashFields
	}
	if err == nil && !right {
		err = fmt.Errorf("%w: %.100v", errReply, result)
	}
	return err
}

var errReply = errors.New("the reply is not as expected")

const (
	opHGetAll  = "HGETALL"
	hashFields = 10_000
	manyKeys   = 100_000
	manyHashes = 16
)

// workload is the keys and values of one measurement.
type workload struct {
	*operation
	payload              string
	prefix               string
	fixed                []string // in every request
	many                 []string // the others of a request are drawn from these; empty: there are none
	perRequest, pipeline int
}

func newWorkload(cfg Config, prefix string) *workload {
	w := &workload{
		operation: operations[cfg.Operation], payload: strings.Repeat("x", cfg.Payload), prefix: prefix,
		perRequest: cfg.KeysPerRequest, pipeline: cfg.Pipeline,
	}
	many := 0
	if cfg.ManyKeys {
		if many = cmp.Or(cfg.keys, manyKeys); cfg.Operation == opHGetAll {
			many = manyHashes
		}
	}
	for i := range many {
		w.many = append(w.many, w.key(i))
	}
	fixed := cfg.KeysPerRequest / 2
	if !cfg.ManyKeys {
		fixed = 1
	}
	for i := range fixed {
		w.fixed = append(w.fixed, w.key(many+i))
	}
	return w
}

// key returns a key as redis-benchmark makes it: all are equally long.
func (w *workload) key(n int) string { return fmt.Sprintf("%s:%012d", w.prefix, n) }

// request appends the keys of Pipeline requests. draw returns a number below its argument.
func (w *workload) request(keys []string, draw func(int) int) []string {
	for range w.pipeline {
		keys = append(keys, w.fixed...)
		for range w.perRequest - len(w.fixed) {
			keys = append(keys, w.many[draw(len(w.many))])
		}
	}
	return keys
}

func (w *workload) keys() []string { return slices.Concat(w.fixed, w.many) }

// bytesPerKey is what preload sends for a key, about.
func (w *workload) bytesPerKey() int {
	if w.reply == replyHash {
		return hashFields * len(w.payload)
	}
	return len(w.payload)
}

func setPayload(ctx context.Context, pipe redis.Pipeliner, key string, w *workload) {
	pipe.Set(ctx, key, w.payload, 0)
}

func setHash(ctx context.Context, pipe redis.Pipeliner, key string, w *workload) {
	fields := make([]string, 0, 2*hashFields)
	for i := range hashFields {
		fields = append(fields, "field:"+strconv.Itoa(i), w.payload)
	}
	for chunk := range slices.Chunk(fields, 2000) {
		pipe.HSet(ctx, key, chunk)
	}
}
