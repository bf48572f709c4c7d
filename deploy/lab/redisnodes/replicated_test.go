//go:build unix

package redisnodes_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
)

func TestReplicated_TheReplicaTakesOver_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		ctx := patient(t)
		servers, err := redisnodes.StartReplicated(ctx, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, servers.Stop()) })
		master, replica := servers.Nodes()[0], servers.Nodes()[1]
		client := connect(t, master)
		const keys = 100
		for n := range keys {
			require.NoError(t, client.Set(ctx, strconv.Itoa(n), n, 0).Err())
		}
		have, err := client.Wait(ctx, 1, 0).Result()
		require.NoError(t, err)
		require.EqualValues(t, 1, have)
		require.NoError(t, master.Destroy())
		require.NoDirExists(t, master.Dir())
		require.NoError(t, servers.Promote(ctx))
		client = connect(t, replica)
		require.EqualValues(t, keys, client.DBSize(ctx).Val())
		require.NoError(t, client.Set(ctx, "new", 1, 0).Err(), "it is a master")
	})
}
