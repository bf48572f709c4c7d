package pebblestore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// TestMain lets the test binary be the child process of its own tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir, os.Getenv(childWorker)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// open opens the store of cfg for one test.
func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func inTemp(t testing.TB) Config {
	cfg := DefaultConfig()
	cfg.Dir = t.TempDir()
	return cfg
}

// must applies changes that nothing is wrong with.
func must(t testing.TB, s store.Applier, changes ...store.Change) {
	t.Helper()
	for i, err := range s.Apply(context.Background(), changes) {
		require.NoError(t, err, "change %d, of %s", i, changes[i].Gid())
	}
}

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// small makes a store begin logs and write tables every few batches.
func small(o *pebble.Options) {
	o.MemTableSize = 32 << 10
	o.L0CompactionThreshold = 2
}

// keys counts the keys of a kind.
func keys(t testing.TB, s *Store, prefix byte) (n int) {
	t.Helper()
	require.NoError(t, s.scan(prefix, func(it *pebble.Iterator) error {
		for valid := it.First(); valid; valid = it.Next() {
			n++
		}
		return nil
	}))
	return n
}
