package storetest

import (
	"testing"

	"sagabench/store"
)

// The model keeps the contract, so the suite has to find it in order.
func modelHarness() Harness {
	return Harness{
		Open:   func(_ testing.TB, opts Options) store.Store { return NewModel(opts.Retention) },
		Reopen: func(_ testing.TB, s store.Store) store.Store { return s.(*Model).Reopen() },
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	Run(t, modelHarness())
}

func TestModel_AgainstItself(t *testing.T) {
	t.Parallel()
	RunModel(t, modelHarness())
}

func BenchmarkModel(b *testing.B) { Benchmark(b, modelHarness()) }
