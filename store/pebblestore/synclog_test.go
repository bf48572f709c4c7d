package pebblestore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written after the last sync is lost, and nothing else.
func TestLosePower_LeavesWhatWasSynced(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{true, false} {
		cfg := inTemp(t)
		cfg.Sync, cfg.SyncLog = sync, filepath.Join(t.TempDir(), "synced")
		s := open(t, cfg)
		must(t, s, advance("table", created))
		require.NoError(t, s.db.Flush())
		must(t, s, advance("log", created))
		require.NoError(t, s.syncLog(t.Context()))
		before := filepath.Join(t.TempDir(), "synced") // of a crash at this point
		copyFile(t, cfg.SyncLog, before)
		must(t, s, advance("last", created))

		crash := func(syncLog string) *Store {
			crashed := inTemp(t)
			require.NoError(t, os.CopyFS(crashed.Dir, os.DirFS(cfg.Dir)))
			require.NoError(t, LosePower(crashed.Dir, syncLog))
			return open(t, crashed)
		}
		after := crash(before)
		require.Equal(t, created, stageOf(t, after, "table"))
		require.Equal(t, created, stageOf(t, after, "log"))
		require.Equal(t, none, stageOf(t, after, "last"))
		if sync {
			require.Equal(t, created, stageOf(t, crash(cfg.SyncLog), "last"))
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

func TestLosePower_RefusesALogOfAnotherKind(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "synced")
	require.Error(t, LosePower(t.TempDir(), log))
	for _, line := range []string{"x\n", "1\n", "1 a b\n", "-1 a\n"} {
		require.NoError(t, os.WriteFile(log, []byte(line), 0o600))
		require.ErrorContains(t, LosePower(t.TempDir(), log), "want a length and a name", line)
	}
	require.NoError(t, os.WriteFile(log, []byte("1 a\n2"), 0o600)) // cut by the crash
	require.NoError(t, LosePower(t.TempDir(), log))
}
