package faults

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/cli"
	"sagabench/deploy/lab"
)

// asProgram makes this test binary the bench program: hosts are processes that can be
// killed and stopped.
const asProgram = "TEST_AS_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	_ = flag.Set("test.parallel", "6") // whatever the cores: mostly it waits
	os.Exit(m.Run())
}

// Settings of a host.
const (
	lease          = 2 * time.Second
	requestTimeout = 400 * time.Millisecond // of a call of a branch
	storeTimeout   = time.Second
)

var settings = []string{
	"SAGABENCH_COORDINATOR_LEASE=" + lease.String(),
	"SAGABENCH_COORDINATOR_REQUEST_TIMEOUT=" + requestTimeout.String(),
	"SAGABENCH_COORDINATOR_RETRY_INTERVAL=50ms",
	"SAGABENCH_COORDINATOR_MAX_RETRY_INTERVAL=100ms",
	"SAGABENCH_COORDINATOR_POLL_INTERVAL=50ms",
	"SAGABENCH_GROUP_COMMIT_TIMEOUT=2s",
	"SAGABENCH_REDIS_TIMEOUT=" + storeTimeout.String(),
	"SAGABENCH_SQL_TIMEOUT=" + storeTimeout.String(),
}

// host is an app host: a process that runs bench coordinator.
type host struct {
	*lab.Process
	t     *testing.T
	store string   // as bench coordinator takes it
	env   []string // in addition to settings
	dir   string
	url   string
}

// start starts the host, or starts it again on the same address after Kill.
func (h *host) start() {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	h.Process, err = lab.StartProcess(ctx, lab.ProcessConfig{
		Path:  exe,
		Args:  []string{"coordinator", h.store, "--listen", cmp.Or(strings.TrimPrefix(h.url, "http://"), "127.0.0.1:0")},
		Dir:   h.dir,
		Env:   slices.Concat(os.Environ(), []string{asProgram + "=1"}, settings, h.env),
		Ready: func(_ context.Context, p *lab.Process) error { return h.serves(p.Log()) },
	})
	require.NoError(h.t, err)
	h.t.Cleanup(h.Kill)
}

// serves sets the URL from the host's log.
func (h *host) serves(log string) error {
	_, after, _ := strings.Cut(log, "serving on ")
	url, _, whole := strings.Cut(after, "\n")
	if !whole {
		return errors.New("it does not say where it listens")
	}
	if h.url == "" { // later it is the same, and clients read it
		h.url = url
	}
	return nil
}

func (h *host) signal(s syscall.Signal) { require.NoError(h.t, h.Signal(s)) }

// at returns a store's URL with another address.
func at(t *testing.T, storeURL, addr string) string {
	u, err := url.Parse(storeURL)
	require.NoError(t, err)
	u.Host = addr
	return u.String()
}
