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
	// Open gives a fresh, empty store that shares nothing with any other. The
	// suite closes it, and Close allows a second call, so Open may register a
	// Close of its own with t.Cleanup.
	Open func(t testing.TB, opts Options) store.Store

	// Reopen closes s, if it is not closed yet, and opens what it left, with
	// the options that s was opened with.
	Reopen func(t testing.TB, s store.Store) store.Store
}

// Options is what the suite varies from test to test.
type Options struct {
	Retention time.Duration // how long a finished saga is kept; 0: not at all
}

// Run tests the stores of h, each test on a store of its own, in parallel.
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
	// brief is a retention that does.
	brief = 50 * time.Millisecond
	// tolerance is how far a store's clock may be from ours.
	tolerance = time.Minute
	// patience is how long a test waits for what must happen.
	patience = 20 * time.Second
)
