package sample

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFromFiles_LeavesOutWhatIsNoCount(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]bool{"3": true, "NaN": false, "+Inf": false, "1e300": false, "-1": false} {
		dir := t.TempDir()
		var files []string
		for i, x := range []string{"1", after} {
			files = append(files, filepath.Join(dir, []string{"before", "after"}[i]))
			require.NoError(t, os.WriteFile(files[i], []byte(metricSagas+" "+x+"\n"+metricCPU+" "+x+"\n"), 0o666))
		}
		u, sagas, err := FromFiles(files[:1], files[1:], time.Second)
		require.NoError(t, err)
		require.Equal(t, want, sagas != nil, after)
		require.Equal(t, want, u.Resources.AppCores != nil, after)
	}
}
