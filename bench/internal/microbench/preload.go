package microbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
)

// keepAlive is how long large preloaded data stays on the server if this process is
// killed before it can remove it.
const keepAlive = time.Hour

// preload creates the finished sagas and the due indexes.
func (b *bench) preload(ctx context.Context) error {
	b.doing("preloading")
	b.created = true
	finished := operationOf(lua.Complete).stored(base)
	err := b.inChunks(ctx, b.cfg.FinishedSagas, func(pipe redis.Pipeliner, from, to int) {
		for n := from; n < to; n++ {
			pipe.Set(ctx, b.keys.finished(n), finished, keepAlive)
		}
	})
	for n := range smallIndexes {
		err = errors.Join(err, b.preloadIndex(ctx, b.keys.index(0, n), inFlight))
	}
	if err != nil {
		return fmt.Errorf("preloading: %w", err)
	}
	memory, err := b.info(ctx, "memory")
	if err != nil {
		return err
	}
	for _, size := range b.cfg.DueIndexes {
		const bytesPerSaga = 300 // with a margin of a half
		limit, need := memory.number("maxmemory"), memory.number("used_memory")+float64(bytesPerSaga*size)
		if limit > 0 && need > limit {
			b.note("due index of %d: needs maxmemory %.0f MB, not %.0f", size, need/1e6, limit/1e6)
			continue
		}
		b.doing("preloading %d due sagas", size)
		b.dueIndexes = append(b.dueIndexes, size)
		if err := b.preloadIndex(ctx, b.keys.index(size, 0), size); err != nil {
			return fmt.Errorf("preloading %d due sagas: %w", size, err)
		}
	}
	return nil
}

// preloadIndex makes n sagas due, evenly over the next lease, as if they had been saved
// over the last one.
func (b *bench) preloadIndex(ctx context.Context, index string, n int) error {
	if _, err := b.control.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, index, redis.Z{Score: math.Inf(1), Member: lua.Ballast})
		pipe.PExpire(ctx, index, keepAlive)
		return nil
	}); err != nil {
		return err
	}
	now := dueAt(0)
	return b.inChunks(ctx, n, func(pipe redis.Pipeliner, from, to int) {
		members := make([]redis.Z, 0, to-from)
		for i := from; i < to; i++ {
			score := now + int64(i)*lease.Milliseconds()/int64(n)
			members = append(members, redis.Z{Score: float64(score), Member: sagaKey(index, 1e15+i)})
		}
		pipe.ZAdd(ctx, index, members...)
	})
}

// chunk is how many keys or members are preloaded in one round trip.
const chunk = 500

// inChunks pipelines the commands that queue adds for n items, a chunk at a time.
func (b *bench) inChunks(ctx context.Context, n int, queue func(pipe redis.Pipeliner, from, to int)) error {
	for from := 0; from < n; from += chunk {
		if _, err := b.control.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			queue(pipe, from, min(from+chunk, n))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// removeKeys removes every key that was preloaded, by its name.
func (b *bench) removeKeys(ctx context.Context) error {
	var keys []string
	for n := range smallIndexes {
		keys = append(keys, b.keys.index(0, n))
	}
	for _, size := range b.cfg.DueIndexes {
		keys = append(keys, b.keys.index(size, 0))
	}
	if err := b.control.Del(ctx, keys...).Err(); err != nil {
		return err
	}
	return b.inChunks(ctx, b.cfg.FinishedSagas, func(pipe redis.Pipeliner, from, to int) {
		var keys []string
		for n := from; n < to; n++ {
			keys = append(keys, b.keys.finished(n))
		}
		pipe.Del(ctx, keys...)
	})
}
