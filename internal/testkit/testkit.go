// Package testkit has what the tests of several packages need: stores, a proxy that
// breaks connections, an authority that signs certificates, and a log that can be read
// while it is written.
package testkit

import (
	"bytes"
	"crypto/rand"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
	"sagabench/store/pebblestore"
	"sagabench/store/redisstore"
)

// OnEveryStore runs a test on Pebble and on Redis, in parallel.
func OnEveryStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run("pebble", func(t *testing.T) {
		t.Parallel()
		test(t, OpenPebble(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, OpenRedis(t, labtest.Start(t, lab.Redis, lab.Config{})))
	})
}

// OpenPebble opens a store in a directory of its own and closes it when the test ends.
func OpenPebble(t testing.TB) store.Store {
	t.Helper()
	cfg := pebblestore.DefaultConfig()
	cfg.Dir = t.TempDir()
	s, err := pebblestore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// OpenRedis opens a store with a prefix of its own and closes it when the test ends.
func OpenRedis(t testing.TB, server *lab.Server) store.Store {
	t.Helper()
	cfg := redisstore.DefaultConfig()
	cfg.URL = server.URL()
	cfg.Prefix = "test-" + rand.Text()
	s, err := redisstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Log is a writer that may be read while it is written to.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
