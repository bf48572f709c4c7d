package filesystem

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf_NamesAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	last := make(map[string]string) // by where it is mounted: a later one hides an earlier one
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		last[fields[1]] = fields[2]
	}
	require.NotEmpty(t, last)
	for place, name := range last {
		got := Of(place)
		if name == "tmpfs" || name == "ext4" || name == "overlay" || name == "xfs" || name == "btrfs" {
			require.Contains(t, []string{name, ""}, got, place) // empty: we may not look there
		}
	}
	require.Empty(t, Of("/nowhere/at/all"))
	require.True(t, InMemory("tmpfs"))
	require.False(t, InMemory("ext4"))
	require.False(t, InMemory(""), "which is not known")
}
