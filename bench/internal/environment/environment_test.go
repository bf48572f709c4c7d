package environment

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe_DescribesThisMachine(t *testing.T) {
	t.Parallel()
	e := Describe(t.Context())
	require.NotEmpty(t, e.CPU)
	require.Positive(t, e.Cores)
	require.Greater(t, e.Memory, int64(1<<20))
	require.NotEmpty(t, e.Kernel)
	if runtime.GOOS == "linux" {
		require.Regexp(t, `^[-0-9a-f]{36}/net:\[[0-9]+\]$`, e.HostID)
	}
	require.True(t, strings.HasPrefix(e.Go, "go1."))
	require.NotNil(t, e.Versions, "empty in a test's binary, which lists no modules")
}

func TestCommitByGit_OnlyInsideTheModule(t *testing.T) {
	t.Parallel()
	require.Nil(t, commitByGit(t.Context(), "example.com/another"))
	if commit := commitByGit(t.Context(), module); commit != nil { // a copy without .git has none
		require.Regexp(t, `^[0-9a-f]{40}(\+dirty)?$`, *commit)
	}
}
