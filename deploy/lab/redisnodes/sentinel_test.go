//go:build unix

package redisnodes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
)

func TestStartSentinel_FailsOver_WhenTheMasterIsKilled_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		ctx := patient(t)
		group := labtest.StartSentinel(t, cfg)
		options := &redis.FailoverOptions{
			MasterName: redisnodes.MasterName, Password: group.Nodes()[0].Password(),
			SentinelPassword: group.Sentinels()[0].Password(), DisableIdentity: true,
		}
		for _, sentinel := range group.Sentinels() {
			options.SentinelAddrs = append(options.SentinelAddrs, sentinel.Addr())
			stranger := redis.NewClient(&redis.Options{Addr: sentinel.Addr(), DisableIdentity: true})
			require.ErrorContains(t, stranger.Do(ctx, "SENTINEL", "MASTERS").Err(), "NOAUTH")
			require.NoError(t, stranger.Close())
			require.FileExists(t, filepath.Join(sentinel.Dir(), "sentinel.conf"))
			dir, err := os.Stat(sentinel.Dir())
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), dir.Mode().Perm(), "old sentinels let all read the file")
		}
		client := redis.NewFailoverClient(options)
		defer client.Close()
		pipe := client.Pipeline() // of one connection, as WAIT asks for its writes
		pipe.Set(ctx, "key", "value", 0)
		reached := pipe.Do(ctx, "WAIT", 1, 0)
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, reached.Val())

		master, err := group.Master(ctx)
		require.NoError(t, err)
		require.Equal(t, group.Nodes()[0], master)
		require.NoError(t, master.Kill())
		require.NoError(t, group.WaitTakeover(ctx, master))
		taken, err := group.Master(ctx)
		require.NoError(t, err)
		require.Equal(t, group.Nodes()[1], taken)
		require.Equal(t, "value", connect(t, taken).Get(ctx, "key").Val())

		for _, sentinel := range group.Sentinels() { // which remember what they have learned
			require.NoError(t, sentinel.Restart(ctx))
		}
		again, err := group.Master(ctx)
		require.NoError(t, err)
		require.Equal(t, taken, again)

		if cfg.Binary != lab.Redis.Binaries()[0] {
			return // sentinels before 7.0 take 20 s until they ask the old master
		}
		for _, sentinel := range group.Sentinels() {
			_ = connect(t, sentinel).Do(ctx, "SENTINEL", "DEBUG", "INFO-PERIOD", 500, "PUBLISH-PERIOD", 200).Err() // else it takes as long
		}
		require.NoError(t, master.Restart(ctx))
		require.NoError(t, group.WaitReady(ctx))
		require.Equal(t, "value", connect(t, master).Get(ctx, "key").Val(), "it follows the new master")
	})
}
