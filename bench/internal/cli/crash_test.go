package cli

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
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

// lease is short enough for a test to wait for.
const lease = 2 * time.Second

// crashSchema is for the SQL stores of the tests below.
const crashSchema = "crash"

var shortLease = []string{
	"SAGABENCH_COORDINATOR_LEASE=" + lease.String(),
	"SAGABENCH_COORDINATOR_REQUEST_TIMEOUT=1s",
}

// The bench server is killed in the middle of a load whose branches are real calls, and
// started again: whatever was acknowledged is there, and whatever was begun is finished or
// compensated. Package faults checks how long that takes.
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
			drive(t, s.url, dir, load.Profile{}, func(seen *answers) {
				seen.await(t, &seen.acknowledged, fewAnswers)
				s.kill()
			})

			again := p.serve(name, "--listen", listen)
			requireQuiet(t, again.url)
			again.stop()
			requireWhole(t, target, dir)
		})
	}
}

// While the store's server is away there are errors, afterwards none, and with every write
// synced nothing acknowledged is lost. A coordinator's log says once that the store is away,
// and once that it is back, however often it is asked for meanwhile.
func TestServers_TheirStoreRestartsUnderLoad(t *testing.T) {
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
			s := newProgram(t, append(shortLease, "SAGABENCH_SQL_SCHEMA="+crashSchema)...).serve(server.URL(), "--listen", "127.0.0.1:0")
			c := newProgram(t, "SAGABENCH_REDIS_PREFIX=other", "SAGABENCH_SQL_SCHEMA=other").start("coordinator", server.URL(), "--listen", "127.0.0.1:0")
			c.awaitReady(http.StatusOK)
			dir := filepath.Join(t.TempDir(), "away")
			// An open loop: all sagas of a closed one may be past their first write, and
			// then they wait for the store and nobody sees an error. Any machine keeps up.
			drive(t, s.url, dir, load.Constant(20), func(seen *answers) {
				seen.await(t, &seen.acknowledged, 1)
				require.NoError(t, server.Kill())
				seen.await(t, &seen.failed, 1)
				c.awaitReady(http.StatusServiceUnavailable)
				for away := time.Now(); time.Since(away) < 2500*time.Millisecond; { // what repeats itself does so each second
					require.Equal(t, http.StatusServiceUnavailable, status(c.url+"/readyz"))
					_, _ = fetch(t, c.url+"/api/dtmsvr/all", "")
				}
				require.NoError(t, server.Restart(context.WithoutCancel(t.Context())))
				seen.await(t, &seen.acknowledged, seen.acknowledged.Load()+1)
			})
			requireQuiet(t, s.url)
			drive(t, s.url, filepath.Join(t.TempDir(), "back"), load.Profile{}, func(seen *answers) {
				seen.await(t, &seen.acknowledged, fewAnswers)
				require.Zero(t, seen.failed.Load())
			})
			s.stop()
			requireWhole(t, target, dir)
			c.requireOutagesLoggedOnce()
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

// fewAnswers are enough for sagas in every state.
const fewAnswers = 100

// answers counts those of a load.
type answers struct {
	acknowledged, failed atomic.Int64
}

func (a *answers) Started(func(time.Duration) float64) {}
func (a *answers) RequestSent()                        {}
func (a *answers) Ended(int64)                         {}

func (a *answers) RequestDone(answer load.Answer) {
	if answer.Kind == "" {
		a.acknowledged.Add(1)
	} else {
		a.failed.Add(1)
	}
}

// await waits until there are n.
func (a *answers) await(t *testing.T, counter *atomic.Int64, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return counter.Load() >= n }, patience, time.Millisecond)
}

// drive sends requests to a server at a rate, or without one in a closed loop, until during
// returns.
func drive(t *testing.T, url, dir string, rate load.Profile, during func(*answers)) {
	t.Helper()
	cfg, seen := load.Default(), new(answers)
	cfg.Targets = []load.Target{{URL: url + "/bench/saga"}}
	cfg.InFlight = 16
	cfg.Rate = rate
	cfg.Warmup = 0
	cfg.Duration = time.Hour
	cfg.Dir = dir
	cfg.Observer = seen
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := load.Run(ctx, cfg)
		ended <- err
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	during(seen)
}

// requireQuiet waits until no saga is unfinished.
func requireQuiet(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := metric(t.Context(), url, "sagabench_unfinished")
		return err == nil && n == 0
	}, patience, 20*time.Millisecond, "sagas are still unfinished")
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
