package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProgram makes this test binary the bench program, so that the tests run it
// as a user does: a process of its own, which starts itself as a child.
const asProgram = "TEST_AS_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// They wait for servers and for the ends of runs more than they compute: twice as many at a
	// time as go test would run. Its flag -parallel is read after this.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	if err := os.Setenv(asProgram, "1"); err != nil { // for what a test itself starts
		panic(err)
	}
	code := m.Run()
	stopServers()
	os.Exit(code)
}

// program is the bench program in an empty directory.
type program struct {
	t   *testing.T
	dir string
	env []string
}

func newProgram(t *testing.T, env ...string) program {
	return program{t: t, dir: t.TempDir(), env: env}
}

type outcome struct {
	stdout, stderr string
	code           int
}

// command ends with the test, and at the latest after longest.
func (p program) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(p.t, err)
	ctx, cancel := context.WithTimeout(p.t.Context(), longest)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = p.dir
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), p.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

func (p program) run(args ...string) outcome {
	cmd := p.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(p.t, err)
	}
	requireSchema(p.t, stdout.String())
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// withoutSync is for runs whose subject is not the disk: they measure for a fraction of a second,
// in which a busy disk may not sync once.
const withoutSync = "SAGABENCH_PEBBLE_SYNC=false"

// requireRan makes sure that a short run ended well. A machine that is kept busy may not answer
// a request in a fraction of a second: then the result is not valid, and says so.
func (o outcome) requireRan(t *testing.T) {
	t.Helper()
	if o.code != exitInvalid || !strings.Contains(o.stdout, "no request was sent in the measured part") {
		require.Equal(t, exitOK, o.code, o.stderr+o.stdout)
	}
}

// files lists what is in the program's directory.
func (p program) files() []string {
	entries, err := os.ReadDir(p.dir)
	require.NoError(p.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// longest is how long a command may take that a slow machine runs beside others.
const longest = 2 * patience

// running is a server, running.
type running struct {
	program
	cmd      *exec.Cmd
	url      string
	out, err *lines
}

// serve starts a bench server, and stops it when the test ends.
func (p program) serve(args ...string) *running {
	p.t.Helper()
	return p.start(append([]string{"serve"}, args...)...)
}

// start starts a server.
func (p program) start(args ...string) *running {
	p.t.Helper()
	return p.startWith(func(*exec.Cmd) {}, args...)
}

// startWith starts a server by a command that was changed.
func (p program) startWith(change func(*exec.Cmd), args ...string) *running {
	p.t.Helper()
	s := &running{program: p, cmd: p.command(args...), out: newLines(), err: newLines()}
	change(s.cmd)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.err
	require.NoError(p.t, s.cmd.Start())
	p.t.Cleanup(func() { s.stop() })
	line, err := s.out.find(soon(p.t), servingPrefix)
	require.NoError(p.t, err, "the server did not start: %v", s.err)
	s.url = strings.TrimPrefix(line, servingPrefix)
	return s
}

func (s *running) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	}
}

// kill ends the server as a crash would.
func (s *running) kill() {
	require.NoError(s.t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
}
