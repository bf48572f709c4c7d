// Package storetest is the suite that every [store.Store] runs: tests of what
// the contract promises ([Run]), random sequences of changes compared with a
// store in memory ([RunModel]), and one benchmark for all ([Benchmark]).
//
// A backend's own test says how its store is opened and calls the three:
//
//	func TestStore(t *testing.T)      { storetest.Run(t, harness()) }
//	func TestStore_Model(t *testing.T) { storetest.RunModel(t, harness()) }
//	func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, harness()) }
//
// The suite asserts what package store promises and nothing else. What only one
// backend has is left to that backend's tests: its settings, its layout, what a
// crash or a lost server does to it.
//
// Times are the store's own: they are compared with each other, or with a
// tolerance of a minute, so the store's clock must be that close to ours.
package storetest

import (
	"testing"
	"time"

	"sagabench/store"
)

// Harness opens the stores that the suite tests. Both functions may be called
// from tests that run at the same time, and fail t when they cannot do their
// part.
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
		createTests(),
		transitionTests(),
		releaseTests(),
		batchTests(),
		claimTests(),
		statsTests(),
		listTests(),
		retentionTests(),
		lifecycleTests(),
		concurrencyTests(),
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
