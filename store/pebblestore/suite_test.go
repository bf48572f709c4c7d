package pebblestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/store"
	"sagabench/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, harness()) }

func TestStore_Model(t *testing.T) { storetest.RunModel(t, harness()) }

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, harness()) }

func harness() storetest.Harness {
	open := func(t testing.TB, cfg Config) store.Store {
		s, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		return s
	}
	return storetest.Harness{
		Open: func(t testing.TB, opts storetest.Options) store.Store {
			cfg := DefaultConfig()
			cfg.Dir = t.TempDir()
			cfg.Retention = opts.Retention
			return open(t, cfg)
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			require.NoError(t, s.Close())
			return open(t, s.(*Store).cfg)
		},
	}
}
