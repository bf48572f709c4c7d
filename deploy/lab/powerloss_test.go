package lab_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// What a server wrote and did not sync is gone with the machine, and only then.
func TestLosePower_LeavesWhatWasSynced(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it works by LD_PRELOAD")
	}
	server := labtest.Start(t, lab.Redis, lab.Config{
		PowerLoss: true,
		Settings:  map[string]string{"appendonly": "yes", "appendfsync": "no"},
	})
	set := func(key string) {
		require.NoError(t, connect(t, server).Set(t.Context(), key, "value", 0).Err())
	}
	has := func(key string) bool {
		n, err := connect(t, server).Exists(t.Context(), key).Result()
		require.NoError(t, err)
		return n == 1
	}
	set("written")
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	require.True(t, has("written"), "the kernel has it")

	require.NoError(t, connect(t, server).ConfigSet(t.Context(), "appendfsync", "always").Err())
	set("synced") // and what was written before
	require.NoError(t, connect(t, server).ConfigSet(t.Context(), "appendfsync", "no").Err())
	set("not synced")
	require.NoError(t, server.LosePower())
	require.NoError(t, server.Restart(t.Context()))
	require.True(t, has("written"))
	require.True(t, has("synced"))
	require.False(t, has("not synced"))

	plain := labtest.Start(t, lab.Redis, lab.Config{})
	require.ErrorContains(t, plain.LosePower(), "PowerLoss")
}

// Every way to write, by a program of its own: what is not synced is undone, in the
// order in which it was written, and what is synced stays.
func TestLosePower_UndoesEveryWayToWrite(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it works by LD_PRELOAD")
	}
	dir := t.TempDir()
	disk := lab.NewDisk(t.Context(), t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), []byte("0123456789"), 0o600))
	big := rand.Text()
	for len(big) < 100_000 {
		big += big
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big"), []byte(big), 0o600))
	program := filepath.Join(t.TempDir(), "writes")
	output, err := exec.CommandContext(t.Context(), "cc", "-pthread", "-o", program, "testdata/writes.c").CombinedOutput()
	require.NoError(t, err, "%s", output)
	command := exec.CommandContext(t.Context(), program)
	command.Dir, command.Env = dir, disk.Env()
	output, err = command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, disk.Undo())
	for name, want := range map[string]string{
		"old": "01234S6789", "big": big, "new": "", "appended": "synced", "dsync": "on disk", "renamed": "synced", "shared": "by two", "during": "in time",
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(content), name)
	}
}
