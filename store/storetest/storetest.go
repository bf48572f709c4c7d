// Package storetest is the test suite of every [store.Store]. [Run] tests what the
// contract promises. [RunModel] compares random sequences of changes with a store in
// memory. [Benchmark] measures all stores in the same way.
//
// A store's own tests open it and call the three:
//
//	func TestStore(t *testing.T)      { storetest.Run(t, harness()) }
//	func TestStore_Model(t *testing.T) { storetest.RunModel(t, harness()) }
//	func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, harness()) }
//
// The suite tests only what package store promises. A store's own tests cover its
// settings, its layout, and crashes or loss of its server.
//
// The suite compares a store's times with each other, or with the local clock. The
// two clocks may differ by less than a minute.
package storetest

import (
	"testing"
	"time"

	"sagabench/store"
)

// Harness opens the stores that the suite tests. Parallel tests call both functions,
// which fail t on an error.
type Harness struct {
	// Open returns a new, empty store that shares nothing with others. The suite
	// closes it. Open may also close it in t.Cleanup.
	Open func(t testing.TB, opts Options) store.Store

	// Reopen closes s, if it is open, and opens the same store with the same options.
	Reopen func(t testing.TB, s store.Store) store.Store

	// Busy reports whether an error of s says that a change was not made because the server was
	// too slow. Tests whose goroutines wait for each other make it again. Nil: no error says so.
	Busy func(s store.Store, err error) bool
}

// Options differ between tests.
type Options struct {
	Retention time.Duration // how long a finished saga is kept; 0: not at all
}

// Run tests the stores of h in parallel, each test with its own store.
func Run(t *testing.T, h Harness) {
	for _, area := range [][]test{
		createTests,
		transitionTests,
		releaseTests,
		batchTests,
		claimTests,
		statsTests,
		listTests,
		retentionTests,
		lifecycleTests,
		concurrencyTests,
	} {
		for _, tt := range area {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.run(open(t, h, Options{Retention: tt.retention}))
			})
		}
	}
}

// test is one subtest of Run.
type test struct {
	name      string
	retention time.Duration
	run       func(*fixture)
}

const (
	// long is a retention, a lease or a delay that does not end during a test.
	long = time.Hour
	// brief is a retention that ends during a test.
	brief = 50 * time.Millisecond
	// tolerance is the allowed difference of a store's clock from the local one.
	tolerance = time.Minute
	// patience is how long a test waits for something that must happen.
	patience = time.Minute
)
