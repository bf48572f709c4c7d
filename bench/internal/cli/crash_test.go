package cli

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/load"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
	"sagabench/store/open"
)

// Short enough for a test to wait for; the promises are relative to it.
const lease = 2 * time.Second

// crashSchema is for the SQL stores of the tests below.
const crashSchema = "crash"

var shortLease = []string{
	"SAGABENCH_COORDINATOR_LEASE=" + lease.String(),
	"SAGABENCH_COORDINATOR_REQUEST_TIMEOUT=1s",
}

// The bench server is killed in the middle of a run whose branches are real
// calls, and started again: whatever was acknowledged is there, and whatever was
// begun is finished or compensated within a lease and two seconds.
func TestServe_KilledUnderLoad(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	for _, name := range []string{"pebble", redis.URL(), mysqlKind.server(t).URL(), postgresKind.server(t).URL()} {
		target, err := open.Parse(name, openConfig(t))
		require.NoError(t, err)
		t.Run(target.Driver, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, append(shortLease, "SAGABENCH_PEBBLE_DIR="+target.Config.Pebble.Dir, "SAGABENCH_SQL_SCHEMA="+crashSchema)...)
			listen := freeAddress(t)
			s := p.serve(name, "--listen", listen, "--branches", "http", "--fail", "0.2", "--steps", "3")
			dir := filepath.Join(t.TempDir(), "result")
			halfWay := func() { s.kill() }
			drive(t, s.url, dir, load.Profile{}, 2*time.Second, halfWay)

			again := p.serve(name, "--listen", listen)
			restarted := time.Now()
			requireQuiet(t, again.url, restarted.Add(lease+2*time.Second))
			again.stop()
			requireWhole(t, target, dir)
		})
	}
}

// While the store's server is away there are errors, afterwards none, and with
// every write synced nothing acknowledged is lost.
func TestServe_StoreRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		open.Redis:    {"appendonly": "yes", "appendfsync": "always"},
		open.MySQL:    nil,
		open.Postgres: nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := lab.Kinds[name].Start(context.WithoutCancel(t.Context()), lab.Config{Settings: settings})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, server.Stop()) })
			target, err := open.Parse(server.URL(), openConfig(t))
			require.NoError(t, err)
			require.Equal(t, store.D3, durability(t, target))
			p := newProgram(t, append(shortLease, "SAGABENCH_SQL_SCHEMA="+crashSchema)...)
			s := p.serve(server.URL(), "--listen", "127.0.0.1:0")
			dir := filepath.Join(t.TempDir(), "away")
			restarted := make(chan error, 1)
			// An open loop: all sagas of a closed one may be past their first write, and
			// then they wait for the store and nobody sees an error.
			result := drive(t, s.url, dir, load.Constant(400), 2*time.Second, func() {
				if err := server.Kill(); err != nil {
					restarted <- err
					return
				}
				time.AfterFunc(500*time.Millisecond, func() { restarted <- server.Restart(context.WithoutCancel(t.Context())) })
			})
			require.NoError(t, <-restarted)
			require.Positive(t, result.Errors, "nobody noticed that the server was away")
			require.Positive(t, result.Succeeded)

			requireQuiet(t, s.url, time.Now().Add(lease+2*time.Second))
			after := drive(t, s.url, filepath.Join(t.TempDir(), "back"), load.Profile{}, time.Second, func() {})
			require.Zero(t, after.Errors, after.ErrorsByKind)
			s.stop()
			requireWhole(t, target, dir)
		})
	}
}

// durability is the class of a store's server.
func durability(t *testing.T, target open.Target) store.Durability {
	t.Helper()
	s, err := target.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	return settings.Durability
}

// drive sends requests to a server at a rate, or without one in a closed loop, and
// calls halfWay in the middle of it.
func drive(t *testing.T, url, dir string, rate load.Profile, duration time.Duration, halfWay func()) load.Result {
	t.Helper()
	cfg := load.Default()
	cfg.Targets = []load.Target{{URL: url + "/bench/saga"}}
	cfg.InFlight = 16
	cfg.Rate = rate
	cfg.Warmup = 0
	cfg.Duration = duration
	cfg.Dir = dir
	timer := time.AfterFunc(duration/2, halfWay)
	defer timer.Stop()
	result, err := load.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Positive(t, result.Acknowledged)
	return result
}

// requireQuiet waits until no saga is unfinished.
func requireQuiet(t *testing.T, url string, deadline time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := metric(t.Context(), url, "sagabench_unfinished")
		return err == nil && n == 0
	}, time.Until(deadline), 20*time.Millisecond, "sagas are still unfinished")
}

// requireWhole audits a store that nobody uses any more against a journal.
func requireWhole(t *testing.T, target open.Target, dir string) {
	t.Helper()
	s, err := target.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	found, err := audit.Journals(t.Context(), s, target.Config.Retention, dir)
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	require.Zero(t, *found.Lost+*found.BothOutcomes+*found.Uncompensated+*found.Unfinished)
	require.GreaterOrEqual(t, *found.Terminal, found.Acknowledged)
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Stats{}, stats)
}

func openConfig(t *testing.T) open.Config {
	a := app{options: defaults()}
	a.options.Pebble.Dir = filepath.Join(t.TempDir(), "data")
	a.options.SQL.Schema = crashSchema
	return a.openConfig()
}

// freeAddress is one that a server can be started on twice.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
