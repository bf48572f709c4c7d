//go:build unix

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func shell(script string) lab.ProcessConfig {
	return lab.ProcessConfig{Path: "/bin/sh", Args: []string{"-c", script}}
}

// said is a Ready that waits for a word in the log.
func said(word string) func(context.Context, *lab.Process) error {
	return func(_ context.Context, p *lab.Process) error {
		if !strings.Contains(p.Log(), word) {
			return errors.New("not said " + word)
		}
		return nil
	}
}

func start(t *testing.T, cfg lab.ProcessConfig) *lab.Process {
	t.Helper()
	process, err := lab.StartProcess(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}

func TestStartRedis_LeavesNoOrphan_WhenItsStarterIsKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	child := start(t, lab.ProcessConfig{
		Path: self, Env: append(os.Environ(), childVariable+"=redis"), Ready: said("\n"),
	})
	var pid int
	var dir string
	_, err = fmt.Sscanln(child.Log(), &pid, &dir)
	require.NoError(t, err, child.Log())
	require.NoError(t, syscall.Kill(pid, 0), "the server should run")
	require.DirExists(t, dir)

	child.Kill()
	requireGone(t, pid)
	require.NoError(t, labtest.Start(t, lab.Redis, lab.Config{}).Stop())
	require.NoDirExists(t, dir, "the next lab should sweep it")
}

func TestStartProcess_OutlivesTheGoroutineAndThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	started := make(chan *lab.Process)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with us
		process, err := lab.StartProcess(t.Context(), shell("echo up; exec sleep 60"))
		if err != nil {
			t.Error(err)
		}
		started <- process
	}()
	process := <-started
	t.Cleanup(process.Kill)
	select {
	case <-process.Done():
		t.Fatalf("ended: %v", process.Wait())
	case <-time.After(200 * time.Millisecond):
	}
}

func TestStartProcess_PassesEverythingOn(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	cfg := shell(`pwd; echo "$WORD" >&2; cat`)
	cfg.Dir, cfg.Env, cfg.Stdin = dir, []string{"WORD=from-env"}, strings.NewReader("from-stdin\n")
	cfg.Stdout, cfg.Stderr = &both, &both
	process := start(t, cfg)
	require.NoError(t, process.Wait())
	for _, out := range []string{both.String(), process.Log()} {
		require.Contains(t, out, dir+"\n")
		require.Contains(t, out, "from-env\n")
		require.Contains(t, out, "from-stdin\n")
	}
}

func TestStartProcess_ReportsAnEarlyEnd(t *testing.T) {
	t.Parallel()
	cfg := shell("echo reason >&2; exit 3")
	cfg.Ready = said("never")
	_, err := lab.StartProcess(t.Context(), cfg)
	require.EqualError(t, err, "start sh: sh ended: exit status 3; its log ends with: reason")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
}

func TestStartProcess_KillsWhatIsNotReadyInTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var pid int
	cfg := shell("exec sleep 60")
	cfg.Ready = func(_ context.Context, p *lab.Process) error {
		pid = p.PID()
		return errors.New("still asleep")
	}
	_, err := lab.StartProcess(ctx, cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "still asleep")
	requireGone(t, pid)
}

func TestStartProcess_ReportsWhatCannotRun(t *testing.T) {
	t.Parallel()
	_, err := lab.StartProcess(t.Context(), lab.ProcessConfig{Path: "/nowhere/program"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "start program")
}

func TestStartProcess_RunsAsAnotherAccount_WhenRootAsks(t *testing.T) {
	t.Parallel()
	cfg := shell("id -un")
	cfg.User = "nobody"
	process, err := lab.StartProcess(t.Context(), cfg)
	if os.Geteuid() == 0 {
		require.NoError(t, err)
		require.NoError(t, process.Wait())
		require.Equal(t, "nobody\n", process.Log())
	} else {
		require.ErrorIs(t, err, os.ErrPermission)
	}
	cfg.User = "no-such-account"
	_, err = lab.StartProcess(t.Context(), cfg)
	require.ErrorContains(t, err, "run as no-such-account")
}

func TestProcess_StopAsksFirst(t *testing.T) {
	t.Parallel()
	cfg := shell(`trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	cfg.Ready = said("up")
	polite := start(t, cfg)
	require.NoError(t, polite.Stop(time.Minute))
	require.Contains(t, polite.Log(), "bye")
	require.NoError(t, polite.Wait())
	require.ErrorIs(t, polite.Signal(os.Interrupt), os.ErrProcessDone)
	require.NoError(t, polite.Stop(0))

	plain := start(t, shell("exec sleep 60"))
	require.NoError(t, plain.Stop(time.Minute), "ended by the signal we sent")
}

func TestProcess_StopAsksWithTheSignalItWasGiven(t *testing.T) {
	t.Parallel()
	cfg := shell(`trap '' TERM; trap 'exit 0' INT; echo up; while :; do sleep 0.01; done`)
	cfg.Ready, cfg.StopSignal = said("up"), syscall.SIGINT
	require.NoError(t, start(t, cfg).Stop(time.Minute))
}

func TestProcess_StopKillsWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	cfg := shell(`trap '' TERM; echo up; while :; do sleep 0.01; done`)
	cfg.Ready = said("up")
	stubborn := start(t, cfg)
	require.ErrorContains(t, stubborn.Stop(50*time.Millisecond), "sh did not stop within 50ms and was killed")
	requireGone(t, stubborn.PID())
}

func TestProcess_StopReportsABadEnd(t *testing.T) {
	t.Parallel()
	process := start(t, shell("exit 4"))
	<-process.Done()
	require.EqualError(t, process.Stop(time.Minute), "sh ended: exit status 4")
}

func TestProcess_KillTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	cfg := shell(`sleep 60 & echo $!; wait`)
	cfg.Ready = said("\n")
	process := start(t, cfg)
	var grandchild int
	_, err := fmt.Sscan(process.Log(), &grandchild)
	require.NoError(t, err)
	process.Kill()
	requireGone(t, grandchild)
	require.NoError(t, process.Stop(time.Minute), "we killed it ourselves")
}

func TestProcess_LogKeepsTheEnd(t *testing.T) {
	t.Parallel()
	process := start(t, shell(`i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done`))
	require.NoError(t, process.Wait())
	require.True(t, strings.HasSuffix(process.Log(), "line 4999\n"))
	require.LessOrEqual(t, len(process.Log()), 16<<10)
}
