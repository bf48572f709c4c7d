package hosts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/cli"
	"sagabench/deploy/netlab"
)

var (
	link     netlab.Link
	mbit     = flag.Int64("mbit", 0, "bandwidth of what each host sends, in Mbit/s; 0: unlimited")
	duration = flag.Duration("duration", 4*time.Second, "of the load on the two app hosts")
	inFlight = flag.Int("in-flight", 32, "requests in flight to each app host")
	out      = flag.String("out", "", "directory for the results; empty: a temporary one")
	up       = flag.Bool("up", false, "run no tests: keep a lab up until Ctrl-C")
)

func init() {
	flag.DurationVar(&link.Delay, "delay", time.Millisecond, "of a packet from host to host; a ping takes twice as long")
	flag.Float64Var(&link.Loss, "loss", 0, "share of lost packets, 0 to less than 1")
}

// asProgram makes this test binary the bench program.
const asProgram = "TEST_AS_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	link.Bandwidth = *mbit * 1_000_000
	if !*up {
		os.Exit(m.Run())
	}
	if err := keepUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// root is the directory of the module.
const root = "../../.."

// keepUp keeps a lab with a Redis up until a signal comes, and says how to get to its
// hosts.
func keepUp() error {
	if err := os.Chdir(root); err != nil { // where shells begin
		return err
	}
	cfg := netlab.DefaultConfig()
	cfg.Link = link
	lab, err := netlab.Start(cfg)
	if err != nil {
		return err
	}
	defer lab.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := startRedis(ctx, lab.Host("store"))
	if err != nil {
		return err
	}
	fmt.Printf("A packet from host to host takes %v. A shell on each host, as root, in other terminals:\n\n", link.Delay)
	for _, h := range lab.Hosts() {
		enter := fmt.Sprintf("nsenter --all --wd --target %d bash", h.PID())
		if cpus := h.CPUs(); len(cpus) > 0 {
			enter = "taskset --cpu-list " + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(cpus), "[]")), ",") + " " + enter
		}
		fmt.Printf("  %-5s %v  %s\n", h.Name(), h.Addr(), enter)
	}
	fmt.Printf("\nA Redis runs on store: export SAGABENCH_REDIS_URL=%s\n", redisURL)
	fmt.Println("Ctrl-C ends the lab, with everything that runs on its hosts.")
	select {
	case <-ctx.Done():
		return nil
	case err := <-redis.ended:
		return fmt.Errorf("redis-server ended: %w: %s", err, &redis.log)
	}
}

// redisURL is that of the Redis on the host store.
const redisURL = "redis://store:6379"

// startRedis starts a Redis on a host. It has no password: nothing but the hosts of the lab
// can reach it.
func startRedis(ctx context.Context, on *netlab.Host, args ...string) (*program, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: make deps installs it", err)
	}
	args = append([]string{"--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""}, args...)
	return start(ctx, on, exec.Command(path, args...), "Ready to accept connections")
}

// newLab starts a lab with a Redis on the host store for a test.
func newLab(t *testing.T, link netlab.Link) *netlab.Lab {
	t.Helper()
	cfg := netlab.DefaultConfig()
	cfg.Link = link
	lab := newHosts(t, cfg)
	_, err := startRedis(soon(t), lab.Host("store"))
	require.NoError(t, err)
	return lab
}

// newHosts starts a lab for a test. Without root there is none: make test says that these
// tests are skipped.
func newHosts(t *testing.T, cfg netlab.Config) *netlab.Lab {
	t.Helper()
	lab, err := netlab.Start(cfg)
	if errors.Is(err, netlab.ErrNotRoot) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	return lab
}

// soon ends when a program should have started on the busiest machine.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
