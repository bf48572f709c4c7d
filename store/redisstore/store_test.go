package redisstore

import (
	"crypto/rand"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
	"sagabench/store/storetest"
)

// harness opens stores on a server, each under a prefix of its own.
func harness(server *lab.Server) storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB, opts storetest.Options) store.Store {
			cfg := testConfig(server)
			cfg.Retention = opts.Retention
			return open(t, cfg)
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			require.NoError(t, s.Close())
			return open(t, s.(*Store).cfg)
		},
	}
}

func testConfig(server *lab.Server) Config {
	cfg := DefaultConfig()
	cfg.URL = server.URL()
	cfg.Prefix = "test-" + rand.Text()
	return cfg
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

// shared are the servers of tests that change none.
var shared labtest.SharedRedis

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // whatever the cores: mostly it waits for clusters and disks
	shared.M = m
	os.Exit(shared.Run())
}

// onServers runs a test on a server and on a Redis Cluster, which other tests use, too. Each
// call of config returns another prefix.
func onServers(t *testing.T, test func(t *testing.T, config func() Config)) {
	t.Helper()
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		test(t, func() Config { return testConfig(shared.Server(t)) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, func() Config { return clusterConfig(shared.Cluster(t)) })
	})
}

// clusterConfig lets a claim wait for all servers, also on a busy machine.
func clusterConfig(cluster *redisnodes.Cluster) Config {
	cfg := testConfig(cluster.Nodes()[1])
	cfg.Timeout = 2 * time.Minute
	return cfg
}

// holder returns the server of a key.
func holder(s *Store, key string) *node { return s.nodes.owner(slotOf(key)) }

// keysOf returns the keys of the prefix on all servers.
func keysOf(t testing.TB, s *Store) (keys []string) {
	t.Helper()
	for _, server := range s.nodes.all() {
		held, err := server.Keys(t.Context(), s.cfg.Prefix+":*").Result()
		require.NoError(t, err)
		keys = append(keys, held...)
	}
	return keys
}

// TestStore runs on every version of Redis that there is a binary of.
func TestStore(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			server := labtest.Start(t, lab.Redis, lab.Config{Binary: binary})
			storetest.Run(t, harness(server))
		})
	}
}

// It lists often, which reads the keys of all other tests, so it has a cluster of its own.
func TestStore_Cluster(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3})
	h := harness(cluster.Nodes()[1])
	h.Open = func(t testing.TB, opts storetest.Options) store.Store {
		cfg := clusterConfig(cluster)
		cfg.Retention, cfg.Shards = opts.Retention, 6
		return open(t, cfg)
	}
	storetest.Run(t, h)
	storetest.RunModel(t, h)
}

func TestStore_Model(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, harness(labtest.Start(t, lab.Redis, lab.Config{})))
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, harness(labtest.Start(b, lab.Redis, lab.Config{})))
}
