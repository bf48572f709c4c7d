package barrier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga/barrier"
)

func TestCallRedis_MarksExpire(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, a *redisAccount) {
		const keep = 90*time.Minute + time.Millisecond
		require.NoError(t, action("a").AdjustRedis(t.Context(), a.rdb, keep, balanceKey, -1))
		require.NoError(t, compensation("b").AdjustRedis(t.Context(), a.rdb, keep, balanceKey, 1))
		for _, key := range []string{"a-01-action-01", "b-01-action-01", "b-01-compensate-01"} {
			left := a.rdb.TTL(t.Context(), key).Val()
			require.InDelta(t, keep.Seconds(), left.Seconds(), 60, key)
		}
		require.EqualValues(t, -1, a.rdb.TTL(t.Context(), balanceKey).Val(), "the balance should not expire")

		err := action("c").AdjustRedis(t.Context(), a.rdb, time.Second-1, balanceKey, -1)
		require.ErrorContains(t, err, "must be at least 1s")
	})
}

func TestCallRedis_AnErrorOfTheScript_LeavesNoMark(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, a *redisAccount) {
		for _, value := range []any{"many", "1.5"} {
			require.NoError(t, a.rdb.Set(t.Context(), balanceKey, value, 0).Err())
			err := a.add(t.Context(), action(a.gid()), 1)
			require.Error(t, err)
			require.NotErrorIs(t, err, barrier.ErrRefused)
			require.Zero(t, a.marks(t, a.gid()))
		}
		require.NoError(t, a.rdb.Del(t.Context(), balanceKey).Err())
		require.NoError(t, a.rdb.LPush(t.Context(), balanceKey, "x").Err())
		require.ErrorContains(t, a.add(t.Context(), action(a.gid()), 1), "WRONGTYPE")
		require.Zero(t, a.marks(t, a.gid()))

		a.set(t, 5)
		require.NoError(t, a.add(t.Context(), action(a.gid()), 1))
		require.Equal(t, 6, a.balance(t))
	})
}

func TestCallRedis_AFullServer_RefusesAllOrNothing(t *testing.T) {
	t.Parallel()
	a := newRedisAccount(t, labtest.Start(t, lab.Redis, lab.Config{}))
	require.NoError(t, a.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorContains(t, a.add(t.Context(), action(a.gid()), -1), "OOM")
	require.NoError(t, a.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Equal(t, 100, a.balance(t))
	require.Zero(t, a.marks(t, a.gid()))
}

func TestAdjustRedis_RefusesABalanceThatIsNotThere(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, a *redisAccount) {
		require.NoError(t, a.rdb.Del(t.Context(), balanceKey).Err())
		err := a.add(t.Context(), action(a.gid()), 1)
		require.ErrorIs(t, err, barrier.ErrRefused)
		require.ErrorContains(t, err, "there is no balance")
		require.Zero(t, a.rdb.DBSize(t.Context()).Val())
		require.NoError(t, a.add(t.Context(), compensation(a.gid()), -1), "there is nothing to undo")
	})
}

func TestAdjustRedis_IsExactAtItsLimits(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, a *redisAccount) {
		const limit = 1 << 53
		a.set(t, limit-1)
		require.ErrorIs(t, a.add(t.Context(), action("a"), -limit), barrier.ErrRefused)
		require.NoError(t, a.add(t.Context(), action("b"), 1))
		require.Equal(t, limit, a.balance(t))
		require.NoError(t, a.add(t.Context(), action("c"), -limit))
		require.Zero(t, a.balance(t))
		require.ErrorContains(t, a.add(t.Context(), action("d"), limit+1), "must be within")
		require.ErrorContains(t, a.add(t.Context(), action("e"), -limit-1), "must be within")
	})
}

func TestCallRedis_TheContextEnds(t *testing.T) {
	t.Parallel()
	a := newRedisAccount(t, labtest.Start(t, lab.Redis, lab.Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.add(ctx, action("a"), 1), context.Canceled)
}

func TestCallRedis_GivesAScriptItsOwnKeysAndArguments(t *testing.T) {
	t.Parallel()
	forEachRedis(t, func(t *testing.T, a *redisAccount) {
		script := barrier.NewScript(`
			if #KEYS ~= 2 or #ARGV ~= 2 then
				return #KEYS .. ' keys, ' .. #ARGV .. ' arguments'
			end
			redis.call('RPUSH', KEYS[1], ARGV[1])
			redis.call('RPUSH', KEYS[2], ARGV[2])`)
		call := func(keys []string, args ...any) error {
			return action(a.gid()).CallRedis(t.Context(), a.rdb, time.Hour, script, keys, args...)
		}
		require.ErrorContains(t, call([]string{"k"}), "refused: 1 keys, 0 arguments")
		errs := atOnce(20, func(int) error { return call([]string{"k", "l"}, "x", 2) })
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []string{"x"}, a.rdb.LRange(t.Context(), "k", 0, -1).Val())
		require.Equal(t, []string{"2"}, a.rdb.LRange(t.Context(), "l", 0, -1).Val())
	})
}
