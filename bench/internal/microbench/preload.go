package microbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
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
	for _, size := range b.cfg.DueIndexes {
		fits, err := b.hasMemory(ctx, size)
		if err != nil {
			return err
		}
		if !fits {
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

// hasMemory reports whether the server has memory for a due index with a margin of a
// half. If not, it says so in the result.
func (b *bench) hasMemory(ctx context.Context, dueIndex int) (bool, error) {
	const bytesPerSaga = 200 // rounded up
	memory, err := b.info(ctx, "memory")
	if err != nil {
		return false, err
	}
	used, err := memory.number("used_memory")
	if err != nil {
		return false, err
	}
	limit, _ := strconv.ParseFloat(memory["maxmemory"], 64)
	if limit == 0 {
		limit, _ = strconv.ParseFloat(memory["total_system_memory"], 64)
	}
	need := 1.5 * bytesPerSaga * float64(dueIndex)
	if limit > 0 && used+need > limit {
		b.note("due index of %d: the server has %.0f MB left, and it needs %.0f", dueIndex, (limit-used)/1e6, need/1e6)
		return false, nil
	}
	return true, nil
}

// removeKeys removes every key that was preloaded, by its name.
func (b *bench) removeKeys(ctx context.Context) error {
	var keys []string
	for _, size := range append([]int{0}, b.cfg.DueIndexes...) {
		for n := range indexes(size) {
			keys = append(keys, b.keys.index(size, n))
		}
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
