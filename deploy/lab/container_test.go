//go:build linux

package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// useEngine puts the engine of tests on PATH, so the test cannot be parallel.
func useEngine(t *testing.T) (dir string) {
	t.Helper()
	dir = labtest.Engine(t)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func containers(t *testing.T, engine string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(engine, "container-*"))
	require.NoError(t, err)
	return found
}

func TestStart_RunsAServerOfAnImage(t *testing.T) {
	engine := useEngine(t)
	t.Run("kinds", func(t *testing.T) {
		for name, kind := range lab.Kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server, err := kind.Start(t.Context(), lab.Config{Image: name + ":1", CPUs: 0.5})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, server.Stop()) })
				require.Regexp(t, `^docker --cpus: 0.5 of \d+ CPUs$`, server.CPULimit())
				command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.PID()))
				require.NoError(t, err)
				require.NotContains(t, string(command), "docker", "PID is the server's, not that of the engine's client")

				first := server.PID()
				require.NoError(t, server.Kill())
				requireGone(t, first)
				require.NoError(t, server.Restart(t.Context()), "in the same directory")
				require.NoError(t, server.Signal(syscall.Signal(0)))
			})
		}
	})
	require.Empty(t, containers(t, engine))
	text, err := os.ReadFile(filepath.Join(engine, "commands"))
	require.NoError(t, err)
	require.Equal(t, len(lab.Kinds), strings.Count(string(text), "\npull "), "once for each image")
	for _, want := range []string{
		" --network=host --pid=host --user=", " --cpus=0.5 ", "/redis-server redis:1 -\n",
		" mysql:1 --no-defaults --datadir=", " postgres:1 -D ", " --workdir=" + os.TempDir(),
	} {
		require.Contains(t, string(text), want)
	}
}

func TestStart_SaysWhyAnImageCannotRun(t *testing.T) {
	engine := useEngine(t)
	for name, tt := range map[string]struct {
		cfg  lab.Config
		want string
	}{
		"no such image":           {lab.Config{Image: "absent:1"}, "pull image absent:1: start docker: exit status 1; its log ends with: manifest for absent:1 not found"},
		"an image without server": {lab.Config{Image: "empty:1"}, "find redis-server or valkey-server in image empty:1"},
		"a wrong setting":         {lab.Config{Image: "redis:1", Settings: map[string]string{"appendonly": "perhaps"}}, "redis-server of image redis:1 ended: exit status 1; its log ends with"},
		"a preloaded library":     {lab.Config{Image: "redis:1", PowerLoss: true}, "unsupported operation"},
	} {
		_, err := lab.Redis.Start(t.Context(), tt.cfg)
		require.ErrorContains(t, err, tt.want, name)
	}
	require.Empty(t, containers(t, engine))

	t.Setenv("PATH", t.TempDir())
	_, err := lab.Redis.Start(t.Context(), lab.Config{Image: "redis:1"})
	require.ErrorIs(t, err, lab.ErrNotInstalled)
	require.ErrorContains(t, err, "docker or podman")
}

func TestStart_LeavesNoContainer_WhenItsStarterIsKilled(t *testing.T) {
	engine := useEngine(t)
	self, err := os.Executable()
	require.NoError(t, err)
	child := start(t, lab.ProcessConfig{
		Path: self, Env: append(os.Environ(), childVariable+"=redis image redis:1"), Ready: said("\n"),
	})
	var pid int
	var dir string
	_, err = fmt.Sscanln(child.Log(), &pid, &dir)
	require.NoError(t, err, child.Log())
	require.Len(t, containers(t, engine), 1)

	require.NoError(t, child.Signal(os.Kill)) // Kill would end its watchdog, too
	requireGone(t, pid)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(containers(t, engine)) > 0 {
		require.NoError(t, ctx.Err(), "the watchdog should remove it")
		time.Sleep(10 * time.Millisecond)
	}
}
