package cli

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A result names hosts, commands and what a server logged: other users of the
// machine cannot read it, whatever the umask allows.
func TestRun_ItsResultIsForItsUserAlone(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync)
	short := []string{"--duration", "200ms", "--warmup", "50ms", "--out"}
	p.run(append([]string{"run", "pebble"}, append(short, "a")...)...).requireRan(t)
	p.run(append([]string{"run", "pebble"}, append(short, "b")...)...).requireRan(t)
	got := p.run("report", "a", "b", "--out", "both")
	require.Equal(t, exitOK, got.code, got.stderr)
	files := 0
	require.NoError(t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == p.dir {
			return err
		}
		info, err := d.Info()
		require.NoError(t, err)
		files++
		require.Zero(t, info.Mode().Perm()&0o077, "%s: %v", path, info.Mode())
		return nil
	}))
	require.Greater(t, files, 12)
}
