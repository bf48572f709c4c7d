package lab_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func TestSlowSync_DelaysSyncs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it works by LD_PRELOAD")
	}
	const delay = 300 * time.Millisecond
	server := labtest.Start(t, lab.Redis, lab.Config{
		SlowSync: true,
		Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"},
	})
	client := connect(t, server)
	took := func() time.Duration {
		began := time.Now()
		require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
		return time.Since(began)
	}
	held := func() int64 {
		n, err := server.DelayedSyncs()
		require.NoError(t, err)
		return n
	}
	took()
	require.Zero(t, held())
	require.NoError(t, server.SlowSync(delay))
	require.GreaterOrEqual(t, took(), delay)
	require.EqualValues(t, 1, held())

	// One that waits already goes on when the delay ends.
	require.NoError(t, server.SlowSync(time.Hour))
	done := make(chan error, 1)
	go func() { done <- client.Set(t.Context(), "key", "value", 0).Err() }()
	require.Eventually(t, func() bool { return held() == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, server.SlowSync(0))
	require.NoError(t, <-done)

	plain := labtest.Start(t, lab.Redis, lab.Config{})
	require.ErrorContains(t, plain.SlowSync(delay), "SlowSync")
}

// Where the server's account could plant a link we write nothing.
func TestSlowSync_WritesNothingIntoTheServersDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it works by LD_PRELOAD")
	}
	server := labtest.Start(t, lab.Redis, lab.Config{SlowSync: true})
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("x"), 0o600))
	for _, name := range []string{"lab-slowsync.delay", "lab-slowsync.delay.new", "lab-slowsync.so"} {
		_ = os.Remove(filepath.Join(server.Dir(), name))
		require.NoError(t, os.Symlink(victim, filepath.Join(server.Dir(), name)))
	}
	require.NoError(t, server.SlowSync(time.Millisecond))
	info, err := os.Stat(victim)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "x", string(content))
}
