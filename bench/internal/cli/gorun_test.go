package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A SIGTERM or a kill of go run ends the go command alone. The program that it runs
// ends with it; one that was built and started otherwise does not end with its parent.
func TestMain_UnderGoRun_EndsWithIt(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	cache := strings.Repeat("ab", 32) + "-d"
	linked, cached := filepath.Join(t.TempDir(), "go-build123", "b001", "exe", "main"), filepath.Join(t.TempDir(), "ab", cache, "main")
	for _, built := range []string{linked, cached} {
		require.NoError(t, os.MkdirAll(filepath.Dir(built), 0o777))
		if os.Link(exe, built) != nil { // another file system
			content, err := os.ReadFile(exe)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(built, content, 0o777))
		}
	}
	for name, tt := range map[string]struct {
		exe  string
		ends bool
	}{"go run": {linked, true}, "go run again": {cached, true}, "built": {exe, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The shell stands for the go command: it waits, as it does not end with this.
			parent := exec.Command("sh", "-c", `"$0" serve pebble --listen 127.0.0.1:0; exit`, tt.exe)
			parent.Dir = t.TempDir()
			parent.Env = append(os.Environ(), asProgram+"=1")
			out := newLines()
			parent.Stdout, parent.Stderr = out, out
			parent.WaitDelay = time.Millisecond // it does not outlive its child's output
			require.NoError(t, parent.Start())
			line, err := out.find(soon(t), servingPrefix)
			require.NoError(t, err, out)
			child := childOf(t, parent.Process.Pid)
			defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()

			require.NoError(t, parent.Process.Kill())
			_ = parent.Wait()
			// Not whether its process is there: nobody may wait for an orphan.
			gone := func() bool {
				c, err := net.Dial("tcp", strings.TrimPrefix(line, servingPrefix+"http://"))
				if err == nil {
					c.Close()
				}
				return err != nil
			}
			if tt.ends {
				require.Eventually(t, gone, patience, 20*time.Millisecond)
			} else {
				require.Never(t, gone, time.Second, 100*time.Millisecond)
			}
		})
	}
}

func TestMain_SaysItsVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "--version"} {
		got := newProgram(t).run(arg)
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Regexp(t, `^bench version \S+, go1\.\d+.*\n$`, got.stdout)
	}
}
