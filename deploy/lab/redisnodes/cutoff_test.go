//go:build unix

package redisnodes_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
)

// A master that is cut off takes writes that are lost, until it knows that it is alone.
func TestCutOff_TheMasterTakesWritesUntilItsTimeout_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		ctx := patient(t)
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: cfg, CanCutOff: true})
		client := connectCluster(t, cluster)
		slot := int(client.ClusterKeySlot(ctx, "{1}").Val())
		master, err := cluster.Master(ctx, slot)
		require.NoError(t, err)
		replicas, err := cluster.Replicas(ctx, master)
		require.NoError(t, err)
		node := connect(t, master)
		write := func(key string, wait time.Duration) (replicas int64) {
			pipe := node.Pipeline()
			pipe.Set(ctx, key, "", 0)
			reached := pipe.Do(ctx, "WAIT", 1, wait.Milliseconds())
			_, err := pipe.Exec(ctx)
			require.NoError(t, err)
			return reached.Val().(int64)
		}
		require.NoError(t, cluster.CutOff(ctx, master, replicas[0]))
		require.EqualValues(t, 1, write("{1}on one side", 0))
		require.NoError(t, cluster.CutOff(ctx, master))
		require.Zero(t, write("{1}alone", 100*time.Millisecond), "it serves, and does not replicate")
		require.Eventually(t, func() bool { return redis.IsClusterDownError(node.Set(ctx, "{1}later", "", 0).Err()) }, time.Minute, 10*time.Millisecond)
		require.NoError(t, cluster.WaitTakeover(ctx, master))
		require.NoError(t, connect(t, replicas[0]).Set(ctx, "{1}after", "", 0).Err())
		require.True(t, redis.IsClusterDownError(node.Get(ctx, "{1}alone").Err()), "it knows of no other master")

		require.NoError(t, cluster.Reconnect(ctx))
		require.NoError(t, cluster.WaitReady(ctx))
		taken, err := cluster.Master(ctx, slot)
		require.NoError(t, err)
		require.Equal(t, replicas[0], taken)
		for _, server := range []*lab.Server{master, taken} {
			require.ElementsMatch(t, []string{"{1}on one side", "{1}after"}, connect(t, server).Keys(ctx, "*").Val())
		}
	})
}

func TestCutOff_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1})
	require.EqualError(t, cluster.CutOff(t.Context(), cluster.Nodes()[0]), "cut nodes off: the cluster was started without CanCutOff")
	another := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1, CanCutOff: true})
	require.EqualError(t, another.CutOff(t.Context(), cluster.Nodes()[0]), "cut nodes off: "+cluster.Nodes()[0].Addr()+" is not a node of this cluster")
}
