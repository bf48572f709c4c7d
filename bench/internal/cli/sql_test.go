package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/filesystem"
	"sagabench/store"
)

// A run on a server that it starts has all costs that the server knows of.
func TestRun_OnASQLServer_HasItsCosts(t *testing.T) {
	forEachSQL(t, func(t *testing.T, k *sqlKind) {
		places := t.TempDir()
		handOver(t, places, k.name) // every server's account passes through it
		p := newProgram(t, "TMPDIR="+places)
		got := p.run("run", k.name, "--start", "--json", "--duration", "1s", "--warmup", "1200ms", "--in-flight", "16")
		require.Equal(t, exitOK, got.code, got.stderr+got.stdout)
		requireKeys(t, got.stdout)
		var s result.Summary
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
		require.True(t, s.Validity.Valid, s.Validity.Because)
		require.Equal(t, "D3", s.Run.Store.Durability)
		require.Equal(t, k.name, s.Run.Store.Driver)
		require.Equal(t, "load, app and store on one machine, in processes of their own", s.Run.Topology)
		require.Positive(t, s.Check.Acknowledged)
		require.Equal(t, s.Check.Acknowledged, *s.Check.Terminal)
		require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated+*s.Check.Unfinished)
		require.NotContains(t, strings.Join(s.Validity.Warnings, "\n"), "counts differ")

		requireNothingIn(t, places)

		c := s.CostPerSaga
		for _, cpu := range []*float64{c.StoreCPUUS, c.AppCPUUS, c.LoadCPUUS} {
			require.NotNil(t, cpu)
		}
		require.Positive(t, *c.StoreRoundTrips)
		if s.Load.Requests > 1000 { // else those of the server's own work are the most, or PostgreSQL has not told of them yet
			require.Positive(t, *c.StoreFsyncs)
			require.Less(t, *c.StoreFsyncs, 6.0, "it commits twice, and two may meet in none")
		}
		if k == mysqlKind {
			require.Greater(t, *c.StoreBytesIn, 100.0)
			require.Positive(t, *c.StoreBytesOut)
			require.Positive(t, *c.StoreCalls)
		} else {
			require.Greater(t, *c.StoreMemoryBytes, 100.0)
			require.Nil(t, c.StoreBytesIn, "PostgreSQL does not count them")
			require.Nil(t, c.StoreCalls)
		}
	})
}

// With --set a run compares durability classes; what is set is read back.
func TestRun_SetsWhatItStarts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"redis": "appendonly=yes", "mysql": "innodb-flush-log-at-trx-commit=2", "postgres": "synchronous_commit=off",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			got := p.run("run", name, "--start", "--set", set, "--json", "--duration", "300ms", "--warmup", "100ms")
			got.requireRan(t)
			p.requireNoPassword(got)
			var s result.Summary
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
			require.Equal(t, "D2", s.Run.Store.Durability)
			setting, value, _ := strings.Cut(strings.ReplaceAll(set, "-", "_"), "=")
			require.Equal(t, value, s.Run.Store.Settings[setting])
			require.Contains(t, s.Run.Command, "--set "+set)
			require.NotEmpty(t, s.Run.Store.Settings[store.FileSystem])
			require.Equal(t, name != "redis", s.Run.Store.Settings[store.LossWindow] != "", s.Run.Store.Settings)
		})
	}
}

// A file system in memory forgets all at a restart of the machine: an embedded store
// there is in class D0, and a server is not started there.
func TestRun_DoesNotTakeMemoryForADisk(t *testing.T) {
	t.Parallel()
	const memory = "/dev/shm"
	if filesystem.Of(memory) != "tmpfs" {
		t.Skip("this system has no " + memory)
	}
	place, err := os.MkdirTemp(memory, "sagabench-cli-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(place)) })
	require.NoError(t, os.Chmod(place, 0o711))
	run := func(args ...string) result.Store {
		p := newProgram(t, "TMPDIR="+place)
		got := p.run(append(append([]string{"run"}, args...), "--json", "--duration", "300ms", "--warmup", "100ms")...)
		got.requireRan(t)
		var s result.Summary
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
		return s.Run.Store
	}
	embedded := run("pebble:" + filepath.Join(place, "store"))
	require.Equal(t, "D0", embedded.Durability)
	require.Equal(t, "tmpfs", embedded.Settings[store.FileSystem])
	if filesystem.InMemory(filesystem.Of("/var/tmp")) {
		return
	}
	started := run("redis", "--start", "--set", "appendonly=yes")
	require.Equal(t, "D2", started.Durability)
	require.Equal(t, filesystem.Of("/var/tmp"), started.Settings[store.FileSystem])
}

// requireNoPassword looks in what was written and printed for the random password
// of a server that was started.
func (p program) requireNoPassword(got outcome) {
	p.t.Helper()
	password := regexp.MustCompile(`[A-Z2-7]{26}`)
	require.NotRegexp(p.t, password, got.stdout+got.stderr)
	err := filepath.WalkDir(p.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			require.NotRegexp(p.t, password, string(content), path)
		}
		return err
	})
	require.NoError(p.t, err)
}

// A run on somebody's server leaves nothing there, however it ends, and is nowhere
// but in a schema of its own.
func TestRun_LeavesNoSchema(t *testing.T) {
	forEachSQL(t, func(t *testing.T, k *sqlKind) {
		server := k.server(t)
		admin := k.admin(t, server)
		url := server.URL()
		if k == mysqlKind { // a database that is named is not for a run
			url = strings.TrimSuffix(url, "/") + "/standing?tls=false"
		}
		p := newProgram(t, "SAGABENCH_"+strings.ToUpper(k.name)+"_URL="+url, "SAGABENCH_SQL_SCHEMA=standing")
		requireNothingLeft := func() {
			t.Helper()
			require.Empty(t, schemas(t, admin, "sagabench%"))
			require.Empty(t, schemas(t, admin, "standing"))
		}

		got := p.run("run", k.name, "--json", "--duration", "300ms", "--warmup", "100ms", "--branches", "http", "--fail", "0.2")
		got.requireRan(t)
		var s result.Summary
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
		require.Zero(t, *s.Check.Lost)
		requireNothingLeft()

		disturbances := map[string]func(pid int) error{
			"interrupted":          func(pid int) error { return syscall.Kill(pid, syscall.SIGINT) },
			"bench server killed":  func(pid int) error { return syscall.Kill(childOf(t, pid), syscall.SIGKILL) },
			"bench server stopped": func(pid int) error { return syscall.Kill(childOf(t, pid), syscall.SIGTERM) },
		}
		commands := map[string]*exec.Cmd{}
		for name := range disturbances {
			cmd := p.command("run", k.name, "--duration", "1h", "--warmup", "0s", "--in-flight", "8", "--json", "--out", name)
			cmd.Stdout, cmd.Stderr = newLines(), newLines()
			require.NoError(t, cmd.Start())
			commands[name] = cmd
		}
		for name, cmd := range commands {
			_, err := cmd.Stderr.(*lines).find(soon(t), "measuring")
			require.NoError(t, err, name)
		}
		require.Len(t, schemas(t, admin, "sagabench_%"), len(commands))
		for name, cmd := range commands {
			require.NoError(t, disturbances[name](cmd.Process.Pid))
		}
		for name, cmd := range commands {
			require.Error(t, cmd.Wait())
			require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), "%s: %v", name, cmd.Stderr)
			require.NoError(t, json.Unmarshal([]byte(cmd.Stdout.(*lines).String()), &s))
			require.Zero(t, *s.Check.Lost, name)
		}
		requireNothingLeft()

		taken := filepath.Join(p.dir, "taken")
		require.NoError(t, os.MkdirAll(filepath.Join(taken, "something"), 0o777))
		require.Equal(t, exitError, p.run("run", k.name, "--out", taken).code)
		requireNothingLeft()
	})
}

// A server by its URL, whose store outlasts what is done with it.
func TestServe_OnASQLServer(t *testing.T) {
	forEachSQL(t, func(t *testing.T, k *sqlKind) {
		schema := "serve_on"
		p := newProgram(t, "SAGABENCH_SQL_SCHEMA="+schema)
		url := k.server(t).URL()
		s := p.serve(url, "--listen", "127.0.0.1:0")
		bench, _ := p.load(url, "--target", s.url)
		s.stop()
		c := p.start("coordinator", url, "--listen", "127.0.0.1:0")
		dtm, _ := p.load(url, "--protocol", "dtm", "--target", c.url)
		c.stop()
		require.Equal(t, bench.Check.Acknowledged, p.ended(bench))
		require.Equal(t, dtm.Check.Acknowledged, p.ended(dtm))
		require.Zero(t, *dtm.Check.Lost+*dtm.Check.BothOutcomes+*dtm.Check.Uncompensated+*dtm.Check.Unfinished)
		if dtm.Load.Requests > 0 && dtm.CostPerSaga.StoreCPUUS == nil {
			// Other tests use this server: its processes may come and go too fast to be counted.
			require.Contains(t, strings.Join(dtm.Validity.Warnings, "\n"), "not measured: ")
		}
		require.True(t, dtm.Run.SharedHost)

		got := p.run("check", url, "--json")
		require.Equal(t, exitOK, got.code, got.stderr)
		var found result.Envelope
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &found))
		require.Equal(t, *dtm.Check.Terminal, *found.Check.Terminal)
		require.Equal(t, k.name, found.Run.Store.Driver)
		require.NotEmpty(t, schemas(t, k.admin(t, k.server(t)), schema))
	})
}

// requireNothingIn makes sure that no server is left, nor its files, whose place was
// in dir.
func requireNothingIn(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	processes, err := process.Processes()
	require.NoError(t, err)
	for _, p := range processes {
		command, _ := p.Cmdline() // it may be gone
		require.NotContains(t, command, dir)
	}
}

// A mistyped name must not be answered by "every saga is whole", nor leave a new
// store behind.
func TestCheck_WhereThereIsNoSaga_IsAnError(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	for name, tt := range map[string]struct{ store, env string }{
		"pebble":   {"pebble:there", ""},
		"redis":    {redis.URL(), "SAGABENCH_REDIS_PREFIX=nobody"},
		"mysql":    {mysqlKind.server(t).URL(), "SAGABENCH_SQL_SCHEMA=check_nobody"},
		"postgres": {postgresKind.server(t).URL(), "SAGABENCH_SQL_SCHEMA=check_nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, tt.env)
			for range 2 { // the first would have made it
				got := p.run("check", tt.store, "--allow-empty")
				require.Equal(t, exitError, got.code, got.stdout)
				require.Contains(t, got.stderr, "there is no store of sagas here")
			}
			require.Empty(t, p.files())
			p.serve(tt.store, "--listen", "127.0.0.1:0").stop()
			got := p.run("check", tt.store)
			require.Equal(t, exitError, got.code, got.stdout)
			require.Contains(t, got.stderr, "the store holds no saga")
			got = p.run("check", tt.store, "--allow-empty")
			require.Equal(t, exitOK, got.code, got.stderr)
		})
	}
}
