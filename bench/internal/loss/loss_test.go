package loss_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/cli"
	"sagabench/bench/internal/loss"
	"sagabench/bench/internal/session"
	"sagabench/internal/config"
	"sagabench/store/open"
)

// asProgram makes this test binary the bench program, which runs the bench server.
const asProgram = "TEST_AS_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func crashOf(t *testing.T, name string, crash loss.Crash, of backend.Start) loss.Config {
	t.Helper()
	target, err := open.Parse(name, open.DefaultConfig())
	require.NoError(t, err)
	cfg := loss.Default()
	of.Start, of.Nodes = !target.Embedded(), 1
	cfg.Servers, err = of.Check(name, &target)
	require.NoError(t, err)
	cfg.Store, cfg.Crash, cfg.Dir, cfg.Duration, cfg.InFlight = target, crash, t.TempDir(), 1500*time.Millisecond, 16
	cfg.Program = session.Program{
		Path: os.Args[0], Args: []string{"serve", name, "--listen", "127.0.0.1:0"}, Announce: "serving on ",
		Env: environment,
	}
	return cfg
}

// environment selects the store.
func environment(t open.Target) []string {
	env := append(os.Environ(), asProgram+"=1")
	for key, value := range t.Location() {
		env = append(env, config.Variable(key)+"="+value)
	}
	return env
}

// What each class promises, a crash must show. The settings keep what may be lost from
// being synced by chance just before it.
func TestRun_ShowsWhatACrashLoses(t *testing.T) {
	t.Parallel()
	type settings = []string
	for name, tt := range map[string]struct {
		store    string
		settings settings
		crash    loss.Crash
		class    string
		loses    bool
	}{
		"redis none":           {open.Redis, nil, loss.Process, "D0", true},
		"redis AOF, process":   {open.Redis, settings{"appendonly=yes", "appendfsync=no"}, loss.Process, "D1", false},
		"redis AOF, machine":   {open.Redis, settings{"appendonly=yes", "appendfsync=no"}, loss.Machine, "D1", true},
		"redis AOF always":     {open.Redis, settings{"appendonly=yes", "appendfsync=always"}, loss.Machine, "D3", false},
		"mysql flush 1":        {open.MySQL, nil, loss.Machine, "D3", false},
		"mysql flush 2":        {open.MySQL, settings{"innodb_flush_log_at_trx_commit=2", "innodb_flush_log_at_timeout=2000"}, loss.Machine, "D2", true},
		"postgres on":          {open.Postgres, nil, loss.Machine, "D3", false},
		"pebble sync, machine": {open.Pebble, nil, loss.Machine, "D3", false},
		"pebble sync, process": {open.Pebble, nil, loss.Process, "D3", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireLoss(t, crashOf(t, tt.store, tt.crash, backend.Start{Set: tt.settings}), tt.class, tt.loses)
		})
	}
}

// In class D4 the replica has all that was acknowledged, and nothing else has.
func TestRun_ThePrimaryIsLost_InD4_LosesNothing(t *testing.T) {
	t.Parallel()
	for _, store := range []string{open.Redis, open.MySQL, open.Postgres} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			requireLoss(t, crashOf(t, store, loss.Lost, backend.Start{Replicas: 1, Durability: "D4"}), "D4", false)
		})
	}
}

// requireLoss crashes a store.
func requireLoss(t *testing.T, cfg loss.Config, class string, loses bool) {
	t.Helper()
	began := time.Now()
	got, err := loss.Run(t.Context(), cfg)
	took := time.Since(began)
	require.NoError(t, err)
	require.Equal(t, class, got.Store.Durability)
	require.Positive(t, got.Check.Acknowledged)
	require.Zero(t, *got.Check.BothOutcomes+*got.Check.Uncompensated, got.Findings)
	require.Equal(t, loses, *got.Check.Lost > 0, got.Findings)
	if !loses { // the only lost saga may have been acknowledged last
		require.Zero(t, got.WindowMS)
	}
	require.Less(t, got.WindowMS, 1000*took.Seconds())
	left, err := os.ReadDir(cfg.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRun_RefusesWhatIsNotPossible(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*loss.Config){
		`crash: "fire", must be process, machine or lost`: func(c *loss.Config) { c.Crash = "fire" },
		"crash: lost: the store has no replica":           func(c *loss.Config) { c.Crash = loss.Lost },
		"in flight: 0, must be at least 1":                func(c *loss.Config) { c.InFlight = 0 },
		"duration: 0s, must be more than 0":               func(c *loss.Config) { c.Duration = 0 },
		"retention of finished sagas: 0s":                 func(c *loss.Config) { c.Store.Config.Retention = 0 },
		"steps: 0, must be":                               func(c *loss.Config) { c.Scenario.Steps = 0 },
		"start program-that-is-not-there":                 func(c *loss.Config) { c.Program.Path = "program-that-is-not-there" },
	} {
		cfg := crashOf(t, open.Pebble, loss.Process, backend.Start{})
		change(&cfg)
		_, err := loss.Run(t.Context(), cfg)
		require.ErrorContains(t, err, says)
	}
}
