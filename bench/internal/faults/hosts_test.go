package faults

import (
	"bufio"
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/cli"
	"sagabench/internal/testkit"
)

// asProgram makes this test binary the bench program: hosts are processes that can be
// killed and stopped.
const asProgram = "TEST_AS_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// What a host is set to.
const (
	lease          = 2 * time.Second
	requestTimeout = 400 * time.Millisecond // of a call of a branch
)

var settings = []string{
	"SAGABENCH_COORDINATOR_LEASE=" + lease.String(),
	"SAGABENCH_COORDINATOR_REQUEST_TIMEOUT=" + requestTimeout.String(),
	"SAGABENCH_COORDINATOR_RETRY_INTERVAL=50ms",
	"SAGABENCH_COORDINATOR_MAX_RETRY_INTERVAL=100ms",
	"SAGABENCH_COORDINATOR_POLL_INTERVAL=50ms",
	"SAGABENCH_GROUP_COMMIT_TIMEOUT=2s",
	"SAGABENCH_REDIS_TIMEOUT=1s",
	"SAGABENCH_SQL_TIMEOUT=1s",
}

// host is an app host: a process that runs bench coordinator.
type host struct {
	t     *testing.T
	store string   // as bench coordinator takes it
	env   []string // beside settings
	dir   string

	cmd *exec.Cmd
	url string
	log *testkit.Log
}

// start starts the host, also again after kill; it listens on the same address.
func (h *host) start() {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	listen := "127.0.0.1:0"
	if h.url != "" {
		listen = strings.TrimPrefix(h.url, "http://")
	}
	h.log = new(testkit.Log)
	h.cmd = exec.Command(exe, "coordinator", h.store, "--listen", listen)
	h.cmd.Dir = h.dir
	h.cmd.Env = append(append(append(os.Environ(), asProgram+"=1"), settings...), h.env...)
	h.cmd.Stderr = h.log
	stdout, err := h.cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, h.cmd.Start())
	ready := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if at, ok := strings.CutPrefix(lines.Text(), "serving on "); ok {
				ready <- at
			}
		}
	}()
	select {
	case h.url = <-ready:
	case <-time.After(30 * time.Second):
		h.kill()
		require.FailNow(h.t, "the host did not start", h.log.String())
	}
}

func (h *host) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

func (h *host) signal(s syscall.Signal) { require.NoError(h.t, h.cmd.Process.Signal(s)) }

// end asks the host to end, and makes sure that it does.
func (h *host) end() {
	if h.cmd.ProcessState != nil {
		return
	}
	h.signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = h.cmd.Process.Kill() })
	_ = h.cmd.Wait()
}

// at is a store's URL with another address.
func at(t *testing.T, storeURL, addr string) string {
	u, err := url.Parse(storeURL)
	require.NoError(t, err)
	u.Host = addr
	return u.String()
}
