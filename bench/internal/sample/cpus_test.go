package sample

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCPUsOf_AreThoseThatAProcessMayRunOn(t *testing.T) {
	t.Parallel()
	own := cpusOf(os.Getpid())
	if runtime.GOOS != "linux" {
		require.Nil(t, own)
		return
	}
	require.Len(t, own, runtime.NumCPU())
	require.Nil(t, cpusOf())
	require.Nil(t, cpusOf(os.Getpid(), 1<<30), "there is no such process")
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("no taskset here")
	}
	bound := exec.CommandContext(t.Context(), taskset, "--cpu-list", strconv.Itoa(own[0]), "cat")
	stdin, err := bound.StdinPipe()
	require.NoError(t, err)
	stdout, err := bound.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bound.Start())
	_, err = stdin.Write([]byte("x"))
	require.NoError(t, err)
	_, err = stdout.Read(make([]byte, 1)) // it has become cat
	require.NoError(t, err)
	require.Equal(t, own[:1], cpusOf(bound.Process.Pid))
	require.Equal(t, own, cpusOf(bound.Process.Pid, os.Getpid()))
	require.NoError(t, stdin.Close())
	require.NoError(t, bound.Wait())
}
