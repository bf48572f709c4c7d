package probe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat_TakesAnyName(t *testing.T) {
	t.Parallel()
	got, err := parseStat("7 (a ) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 150 50 1000 200 20 0 1 0 12")
	require.NoError(t, err)
	require.Equal(t, processCPU{own: 2, ended: 12}, got)
	_, err = parseStat("7 (a) S 1")
	require.Error(t, err)
}
