package redisops

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/sample"
	"sagabench/store"
	"sagabench/store/open"
	"sagabench/store/redisstore"
)

// bench measures one operation on one target.
type bench struct {
	cfg     Config
	target  target
	w       *workload
	control goRedisClient // for all but the measured operations
	servers sample.Store
}

// Run measures one operation, and removes the keys that it wrote. It returns an error if the
// configuration is not valid, a server cannot be reached, an operation of the warm-up fails,
// or none of the measured ones succeeds. When ctx ends, it returns its error.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure %s with %s: %w", cfg.Operation, cfg.Client, err)
		}
	}()
	if err := cfg.check(); err != nil {
		return Result{}, err
	}
	t, err := parseTarget(cfg.URLs)
	if err != nil {
		return Result{}, err
	}
	if cfg.Client == ClientRedisBenchmark && t.password != "" && len(cfg.PIDs) == 0 {
		return Result{}, errors.New("redis-benchmark shows the server's password in the list of processes: it measures only a server without one, or one started for the run")
	}
	b := &bench{cfg: cfg, target: t, w: newWorkload(cfg, "ops:"+rand.Text()[:8])}
	b.control = t.goRedis(nil, 2)
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return Result{}, err
	}
	measure := b.goClient
	if cfg.Client == ClientRedisBenchmark {
		measure = b.redisBenchmark
	}
	r, err := measure(ctx)
	if err == nil {
		r.Store, err = b.settings(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	return r, errors.Join(err, b.removeKeys(ctx))
}

func (b *bench) prepare(ctx context.Context) (err error) {
	server := backend.Server{Driver: open.Redis, URL: b.cfg.URLs[0], Local: len(b.cfg.PIDs) > 0, PIDs: b.cfg.PIDs}
	if b.servers, err = backend.Sampler(server)(ctx); err != nil {
		return err
	}
	if b.w.script != "" {
		if err := b.onEachServer(ctx, func(c *redis.Client) error { return c.ScriptLoad(ctx, b.w.script).Err() }); err != nil {
			return fmt.Errorf("load the script: %w", err)
		}
	}
	if b.w.preload == nil {
		return nil
	}
	if err := b.forKeys(ctx, "fill", func(pipe redis.Pipeliner, key string) { b.w.preload(ctx, pipe, key, b.w) }); err != nil {
		return errors.Join(err, b.removeKeys(ctx))
	}
	return nil
}

// onEachServer calls do once for each server, at the same time.
func (b *bench) onEachServer(ctx context.Context, do func(*redis.Client) error) error {
	if cluster, ok := b.control.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error { return do(node) })
	}
	return do(b.control.(*redis.Client))
}

// settings reads those of the server, or of the node of a cluster with the lowest durability.
func (b *bench) settings(ctx context.Context) (s store.Settings, err error) {
	var mu sync.Mutex
	err = b.onEachServer(ctx, func(c *redis.Client) error {
		one, err := redisstore.ServerSettings(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		if s.Driver == "" || one.Durability < s.Durability {
			s = one
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("read the settings: %w", err)
	}
	return s, err
}

// forKeys queues commands for each key, and sends them in parts.
func (b *bench) forKeys(ctx context.Context, doing string, queue func(redis.Pipeliner, string)) error {
	const most, mostBytes = 1000, 4 << 20 // of a part
	for part := range slices.Chunk(b.w.keys(), max(1, min(most, mostBytes/(1+b.w.bytesPerKey())))) {
		if err := ctx.Err(); err != nil {
			return err
		}
		pipe := b.control.Pipeline()
		for _, key := range part {
			queue(pipe, key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	return nil
}

// removeKeys does its work also when ctx has ended.
func (b *bench) removeKeys(ctx context.Context) error {
	const timeout = time.Minute // a slow disk may sync each of 100 parts
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	err := b.forKeys(ctx, "remove", func(pipe redis.Pipeliner, key string) { pipe.Unlink(ctx, key) })
	if err != nil {
		return fmt.Errorf("keys that begin with %s are left: %w", b.w.prefix, err)
	}
	return nil
}

// fillList makes the list of LPOP n elements longer.
func (b *bench) fillList(ctx context.Context, n int64) error {
	const most, mostBytes = 1000, 4 << 20 // of a command
	elements := slices.Repeat([]any{b.w.payload}, max(1, min(most, mostBytes/(1+len(b.w.payload)))))
	for n > 0 {
		part := elements[:min(n, int64(len(elements)))]
		if err := b.control.LPush(ctx, b.w.fixed[0], part...).Err(); err != nil {
			return fmt.Errorf("fill the list: %w", err)
		}
		n -= int64(len(part))
	}
	return nil
}

const (
	firstElements = 200_000 // of LPOP's list in the warm-up
	spareElements = 1.5     // times those that the warm-up's rate asks for
	maxListBytes  = 1 << 30
)

// listLength bounds the elements of LPOP's list.
func (b *bench) listLength(want float64) int64 {
	const overhead = 16 // of an element, about
	return int64(min(want, maxListBytes/float64(b.cfg.Payload+overhead)))
}

// used sets what the servers used in r.Elapsed.
func (b *bench) used(r *Result) {
	u := sample.Usage{Elapsed: r.Elapsed}
	b.servers.AddTo(&u)
	r.Servers, r.Resources, r.Failures = u.Total, u.Resources, append(r.Failures, u.Failures...)
}

func (b *bench) close() error {
	err := b.control.Close()
	if b.servers != nil {
		err = errors.Join(err, b.servers.Close())
	}
	return err
}
