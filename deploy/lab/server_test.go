//go:build unix

package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeEngine runs whatever process returns.
type fakeEngine struct {
	command func(s *Server) ProcessConfig
}

func (fakeEngine) defaults() map[string]string            { return map[string]string{} }
func (fakeEngine) prepare(context.Context, *Server) error { return nil }
func (e fakeEngine) process(s *Server) ProcessConfig      { return e.command(s) }
func (fakeEngine) url(*Server) string                     { return "" }
func (fakeEngine) dsn(*Server, string) string             { return "" }

// fakeKind runs a shell with what command returns.
func fakeKind(command func(s *Server) ProcessConfig) *Kind {
	return &Kind{
		binaries: "sh", account: "redis",
		engine: func(context.Context, *Server) (engine, error) { return fakeEngine{command}, nil },
	}
}

func TestStart_ChoosesAnotherPort_WhenItsOwnIsTaken(t *testing.T) {
	t.Parallel()
	var ports []int
	kind := fakeKind(func(s *Server) ProcessConfig {
		ports = append(ports, s.port)
		script := "echo 'bind: Address already in use'; exit 1"
		if len(ports) == 3 {
			script = "echo up; exec sleep 60"
		}
		return ProcessConfig{
			Args: []string{"-c", script}, Dir: "/",
			Ready: func(_ context.Context, p *Process) error {
				if !strings.Contains(p.Log(), "up") {
					return errors.New("not up")
				}
				return nil
			},
		}
	})
	server, err := kind.Start(t.Context(), Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	require.Len(t, ports, 3)
	require.True(t, strings.HasSuffix(server.Addr(), ":"+strconv.Itoa(ports[2])))
}

func TestStart_LeavesNoDirectory_WhenItFails(t *testing.T) {
	t.Parallel()
	var dir string
	_, err := fakeKind(func(s *Server) ProcessConfig {
		dir = s.Dir()
		return ProcessConfig{Dir: "/nowhere"}
	}).Start(t.Context(), Config{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotEmpty(t, dir)
	require.NoDirExists(t, dir)
}

func TestRemoveStale_RemovesOnlyDirectoriesOfEndedProcessesOfThisHost(t *testing.T) {
	t.Parallel()
	ended := exec.Command("/bin/true")
	require.NoError(t, ended.Run())
	gone := strconv.Itoa(ended.Process.Pid)

	parent := t.TempDir()
	stale := filepath.Join(parent, dirPrefix()+gone+"-1")
	kept := []string{
		filepath.Join(parent, dirPrefix()+strconv.Itoa(os.Getpid())+"-1"),
		filepath.Join(parent, dirPrefix()+"x-1"),
		filepath.Join(parent, "sagabench-lab-ffffffff0-"+gone+"-1"),
		filepath.Join(parent, "somebody-"+gone+"-1"),
	}
	for _, dir := range append(kept, stale) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	}
	removeStale(parent)
	require.NoDirExists(t, stale)
	for _, dir := range kept {
		require.DirExists(t, dir)
	}
}

// Other users can make directories with names like ours in the shared parent.
func TestRemoveStale_KeepsDirectoriesOfOthers(t *testing.T) {
	t.Parallel()
	ended := exec.Command("/bin/true")
	require.NoError(t, ended.Run())
	parent, elsewhere := t.TempDir(), t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	stale := filepath.Join(parent, dirPrefix()+strconv.Itoa(ended.Process.Pid)+"-")
	require.NoError(t, os.Symlink(elsewhere, stale+"link"))
	planted := 1
	if os.Geteuid() == 0 { // or there are no others to be
		planted++
		const nobody = 65534
		require.NoError(t, os.MkdirAll(filepath.Join(stale+"1", dataDir), 0o700))
		require.NoError(t, os.Symlink("/dev/zero", filepath.Join(stale+"1", dataDir, "postmaster.pid")))
		require.NoError(t, os.Chown(stale+"1", nobody, nobody))
	}
	removeStale(parent)
	require.FileExists(t, precious)
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, planted)
}

// The files that a server writes are its account's, and may be anything.
func TestLine_ReadsTheBeginningOfPlainFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(path("plain"), []byte("one\n two \n"), 0o600))
	require.Equal(t, "two", line(path("plain"), 2))
	require.Empty(t, line(path("plain"), 9))

	require.NoError(t, os.WriteFile(path("long"), []byte(strings.Repeat("x", lineBytes)+"\nsecond\n"), 0o600))
	require.Empty(t, line(path("long"), 2))
	require.NoError(t, os.Symlink(path("plain"), path("link")))
	require.Empty(t, line(path("link"), 2))
	require.NoError(t, syscall.Mkfifo(path("pipe"), 0o600))
	require.Empty(t, line(path("pipe"), 1), "without waiting for a writer")
}

func TestWatchdog_KillsTheProcess_OnceItsStarterIsGone(t *testing.T) {
	t.Parallel()
	spared, doomed := exec.Command("/bin/sleep", "60"), exec.Command("/bin/sleep", "60")
	require.NoError(t, spared.Start())
	require.NoError(t, doomed.Start())

	release, err := startWatchdog("kill", "-9", strconv.Itoa(spared.Process.Pid))
	require.NoError(t, err)
	release()

	dog := watchdog("kill", "-9", strconv.Itoa(doomed.Process.Pid))
	leash, err := dog.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, dog.Start())
	require.NoError(t, leash.Close()) // as the kernel does when we die
	require.NoError(t, dog.Wait())
	require.ErrorContains(t, doomed.Wait(), "signal: killed")

	require.NoError(t, spared.Process.Signal(os.Interrupt), "released, it should not bite")
	require.ErrorContains(t, spared.Wait(), "signal: interrupt")
}

func TestLastLines_FitInOneLine(t *testing.T) {
	t.Parallel()
	require.Empty(t, lastLines("", 2))
	require.Equal(t, "b | c", lastLines("a\n\n b\nc", 2))
}
