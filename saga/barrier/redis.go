package barrier

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed barrier.lua
	barrierScript string
	//go:embed adjust.lua
	adjustScript string
)

// Script is work in Lua, behind a barrier.
type Script struct{ script *redis.Script }

// NewScript takes the body of a Lua function of KEYS and ARGV, which are its own.
// To refuse the work it returns why, before it has written anything: Redis does
// not roll back. Otherwise it returns nothing.
func NewScript(body string) *Script {
	return &Script{redis.NewScript("local function work(KEYS, ARGV)\n" + body + "\nend\n" + barrierScript)}
}

// CallRedis runs script on its keys and arguments, unless the barrier says that
// there is nothing to do; the package comment has the table. The error is
// ErrRefused, with the reason, when the script refuses.
//
// The marks expire after keep, at least a second; days are usual. What gid and
// the others may be is as for Call.
func (b *Barrier) CallRedis(ctx context.Context, rdb redis.Scripter, keep time.Duration, script *Script, keys []string, args ...any) error {
	if keep < time.Second {
		return fmt.Errorf("barrier: marks are to be kept for %v, must be at least 1s", keep)
	}
	p, err := b.pass()
	if err != nil {
		return err
	}
	own := p.redisKey(p.Op)
	undone := own
	if p.undoes != "" {
		undone = p.redisKey(p.undoes)
	}
	seconds := (keep + time.Second - 1) / time.Second
	refusal, err := script.script.Run(ctx, rdb,
		append([]string{own, undone}, keys...), append([]any{int64(seconds)}, args...)...).StringSlice()
	switch {
	case err != nil:
		return fmt.Errorf("%s of branch %s of %s: %w", p.Op, p.BranchID, p.GID, err)
	case len(refusal) > 0:
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(refusal, " "))
	}
	return nil
}

// redisKey is where the mark of an op is.
func (p passage) redisKey(op string) string {
	return strings.Join([]string{p.GID, p.BranchID, op, p.id}, "-")
}

// maxAmount keeps Lua's arithmetic, on floating-point numbers, exact.
const maxAmount = 1 << 53

// AdjustRedis adds amount, which may be negative, to the integer at key, by
// CallRedis. It refuses when there is none, or when it would fall below 0.
func (b *Barrier) AdjustRedis(ctx context.Context, rdb redis.Scripter, keep time.Duration, key string, amount int64) error {
	if amount > maxAmount || amount < -maxAmount {
		return fmt.Errorf("barrier: amount %d, must be within ±%d", amount, int64(maxAmount))
	}
	return b.CallRedis(ctx, rdb, keep, NewScript(adjustScript), []string{key}, amount)
}
