package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotOf_AgreesWithTheServer(t *testing.T) {
	t.Parallel()
	server := open(t, clusterConfig(shared.Cluster(t)))
	defer server.Close()
	for _, key := range []string{"123456789", "p:{a}", "p:{a}:gid", "{}x", "a{b", "{a}{b}", "a{{b}}c", ""} {
		want, err := server.nodes.seeds[0].ClusterKeySlot(t.Context(), key).Result()
		require.NoError(t, err)
		require.Equal(t, int(want), slotOf(key), "%q", key)
	}
}

// Masters that share the slots evenly, in ranges, share the shards as evenly as their
// numbers allow.
func TestShardTags_AreSpreadEvenly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 6, 10, 100, MaxShards} {
		tags := shardTags(n)
		require.Len(t, tags, n)
		for _, masters := range []int{1, 2, 3, 5, 10} {
			held := make([]int, masters)
			for _, tag := range tags {
				held[slotOf("p:{"+tag+"}")*masters/slots]++
			}
			for _, h := range held {
				require.InDelta(t, float64(n)/float64(masters), h, 1, "%d shards, %d masters: %v", n, masters, held)
			}
		}
	}
	require.Equal(t, shardTags(12), shardTags(12))
}
