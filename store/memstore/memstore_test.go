package memstore_test

import (
	"testing"

	"sagabench/store"
	"sagabench/store/memstore"
	"sagabench/store/storetest"
)

var harness = storetest.Harness{
	Open:   func(_ testing.TB, opts storetest.Options) store.Store { return memstore.New(opts.Retention) },
	Reopen: func(_ testing.TB, s store.Store) store.Store { return s.(*memstore.Store).Reopen() },
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness)
}

func TestStore_Model(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, harness)
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, harness) }
