package cli

import (
	"testing"

	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"
)

func childrenOf(t *testing.T, pid int) (pids []int) {
	t.Helper()
	p, err := process.NewProcess(int32(pid))
	require.NoError(t, err)
	children, err := p.Children()
	require.NoError(t, err)
	for _, c := range children {
		pids = append(pids, int(c.Pid))
	}
	return pids
}

func childOf(t *testing.T, pid int) int {
	t.Helper()
	pids := childrenOf(t, pid)
	require.Len(t, pids, 1)
	return pids[0]
}
