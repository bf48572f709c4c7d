package redisstore

import (
	"crypto/rand"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
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

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // whatever the cores: mostly it waits for clusters and disks
	os.Exit(m.Run())
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

func TestStore_Model(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, harness(labtest.Start(t, lab.Redis, lab.Config{})))
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, harness(labtest.Start(b, lab.Redis, lab.Config{})))
}
