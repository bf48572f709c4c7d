//go:build unix

package lab_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func TestStartCluster_ServesAllSlotsFromThreeNodes_OnEveryBinary(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			const password = `p@ss "quoted" \`
			cluster := labtest.StartCluster(t, lab.Config{Binary: binary, Settings: map[string]string{"requirepass": password}}, 3)
			first, err := url.Parse(cluster.URLs()[0])
			require.NoError(t, err)
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{first.Host}, Password: password})
			defer client.Close()
			for i := range 100 {
				require.NoError(t, client.Set(t.Context(), strconv.Itoa(i), i, 0).Err())
			}
			for _, server := range cluster.Servers() { // each serves a part, and knows the address of all
				node := connect(t, server)
				require.InDelta(t, 33, node.DBSize(t.Context()).Val(), 20)
				nodes := node.ClusterNodes(t.Context()).Val()
				for i, of := range cluster.Servers() {
					require.Regexp(t, fmt.Sprintf(`%s@.* connected %d-%d\n`, of.Addr(), i*16384/3, (i+1)*16384/3-1), nodes)
				}
				require.Equal(t, map[string]string{"masterauth": password}, node.ConfigGet(t.Context(), "masterauth").Val())
			}
			require.NoError(t, cluster.Stop())
			for _, server := range cluster.Servers() {
				require.NoDirExists(t, server.Dir())
			}
		})
	}
}

func TestStartCluster_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	_, err := lab.StartCluster(t.Context(), lab.Config{}, 0)
	require.EqualError(t, err, "start a Redis Cluster: 0 masters, must be 1 to 100")
	_, err = lab.StartCluster(t.Context(), lab.Config{Settings: map[string]string{"port": "7000"}}, 3)
	require.ErrorContains(t, err, "settings: port: its nodes cannot share one")
	_, err = lab.StartCluster(t.Context(), lab.Config{Settings: map[string]string{"no-such-setting": "1"}}, 3)
	require.ErrorContains(t, err, "no-such-setting")
}
