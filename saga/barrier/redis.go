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

// Script is the work of a Redis barrier, in Lua.
type Script struct{ script *redis.Script }

// NewScript returns a script from the body of a Lua function of KEYS and ARGV, which are those
// given to CallRedis. To refuse the work the body returns the reason before it has written
// anything, since Redis does not roll back. Otherwise it returns nothing.
func NewScript(body string) *Script {
	return &Script{redis.NewScript("local function work(KEYS, ARGV)\n" + body + "\nend\n" + barrierScript)}
}

// CallRedis runs script on its keys and arguments, unless the marks say that there is nothing
// to do; the package comment has the table. Returns ErrRefused with the reason if the script
// refuses.
//
// The marks expire after keep, at least a second; days are usual. The barrier's fields have
// the format described at Call.
func (b *Barrier) CallRedis(ctx context.Context, rdb redis.Scripter, keep time.Duration, script *Script, keys []string, args ...any) error {
	if keep < time.Second {
		return fmt.Errorf("barrier: marks are to be kept for %v, must be at least 1s", keep)
	}
	u, err := b.next()
	if err != nil {
		return err
	}
	own := u.redisKey(u.Op)
	undone := own
	if u.undoes != "" {
		undone = u.redisKey(u.undoes)
	}
	seconds := (keep + time.Second - 1) / time.Second
	refusal, err := script.script.Run(ctx, rdb,
		append([]string{own, undone}, keys...), append([]any{int64(seconds)}, args...)...).StringSlice()
	switch {
	case err != nil:
		return fmt.Errorf("%s of branch %s of %s: %w", u.Op, u.BranchID, u.GID, err)
	case len(refusal) > 0:
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(refusal, " "))
	}
	return nil
}

// redisKey returns the key of an op's mark.
func (u use) redisKey(op string) string {
	return strings.Join([]string{u.GID, u.BranchID, op, u.id}, "-")
}

// maxAmount keeps Lua's arithmetic, on floating-point numbers, exact.
const maxAmount = 1 << 53

// AdjustRedis adds amount, which may be negative, to the integer at key, with CallRedis.
// Returns ErrRefused if there is no integer, or if it would fall below 0.
func (b *Barrier) AdjustRedis(ctx context.Context, rdb redis.Scripter, keep time.Duration, key string, amount int64) error {
	if amount > maxAmount || amount < -maxAmount {
		return fmt.Errorf("barrier: amount %d, must be within ±%d", amount, int64(maxAmount))
	}
	return b.CallRedis(ctx, rdb, keep, NewScript(adjustScript), []string{key}, amount)
}
