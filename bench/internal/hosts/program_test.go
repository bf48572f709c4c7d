package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/netlab"
)

// bench returns a command of the bench program.
func bench(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// run runs a command on a host to its end. It returns the output, and the exit code.
func run(t *testing.T, on *netlab.Host, cmd *exec.Cmd) (output string, code int) {
	t.Helper()
	p, err := start(t.Context(), on, cmd, "")
	require.NoError(t, err)
	<-p.ended
	return p.log.String(), cmd.ProcessState.ExitCode()
}

// program runs on a host until it ends, or the lab does.
type program struct {
	cmd   *exec.Cmd
	log   output
	ended chan error
}

// start starts a command on a host, and waits until its output has the text ready.
func start(ctx context.Context, on *netlab.Host, cmd *exec.Cmd, ready string) (*program, error) {
	p := &program{cmd: cmd, ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := on.Start(cmd); err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", cmd.Path, on.Name(), err)
	}
	go func() { p.ended <- cmd.Wait() }()
	for !strings.Contains(p.log.String(), ready) {
		select {
		case err := <-p.ended:
			return nil, fmt.Errorf("%s on %s ended: %v: %s", cmd.Path, on.Name(), err, &p.log)
		case <-ctx.Done():
			return nil, fmt.Errorf("%s on %s: not ready: %w: %s", cmd.Path, on.Name(), ctx.Err(), &p.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return p, nil
}

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
