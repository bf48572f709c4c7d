package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
)

// shortSearch holds no rate on any machine: that would take 100,000 requests in 2 s. Its steps
// end with their first requests.
var shortSearch = []string{"--slo", "p99.99=10us", "--hold", "2s", "--warmup", "50ms", "--payload", "10"}

func capacityOf(t *testing.T, stdout string) result.CapacitySummary {
	t.Helper()
	var s result.CapacitySummary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	return s
}

// How a search goes on that holds rates is in package capacity: which ones, and how long
// that takes, depends on what else this machine does.
func TestCapacity_Searches(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	p := newProgram(t)
	got := p.run(append([]string{"capacity", server.URL(), "--json", "--out", "found"}, shortSearch...)...)
	require.Equal(t, exitInvalid, got.code, got.stderr)
	requireKeysOf(t, "capacity", got.stdout)
	s := capacityOf(t, got.stdout)
	require.False(t, s.Validity.Valid)
	require.Equal(t, "redis", s.Run.Store.Driver)
	require.Positive(t, s.Check.Acknowledged)
	require.Equal(t, s.Check.Acknowledged, *s.Check.Terminal)
	require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated+*s.Check.Unfinished)
	require.Len(t, s.Capacity.Scaling, 10)
	require.Equal(t, 512, s.Capacity.Scaling[9].Load.InFlight)
	require.NotEmpty(t, s.Capacity.Steps)
	require.InDelta(t, 2, s.Capacity.HoldS, 0)
	require.Nil(t, s.Capacity.Spread)
	for _, search := range s.Capacity.Searches {
		require.Equal(t, s.Capacity.Search, search)
	}
	require.Nil(t, s.Capacity.Held)
	require.Contains(t, s.Capacity.CannotTell, "100,000 requests in a hold of 2.00 s; lengthen it with --hold")
	require.Contains(t, got.stderr, "closed loops with 1 to 512 in flight")
	require.Contains(t, got.stderr, "the result is in found")

	require.Equal(t, []string{"found"}, p.files())
	dir := filepath.Join(p.dir, "found")
	requireFiles(t, dir, result.FilePage, result.FileMarkdown, "steps", result.FileSummary)
	steps, err := filepath.Glob(filepath.Join(dir, "steps", "*", "*"))
	require.NoError(t, err)
	require.Len(t, steps, len(s.Capacity.Scaling)+len(s.Capacity.Steps)+len(s.Capacity.Rechecks), "a histogram of each")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer client.Close()
	require.Zero(t, client.DBSize(t.Context()).Val(), "the keys of the search are gone")

	shown := p.run("report", "found")
	require.Equal(t, exitOK, shown.code, shown.stderr)
	headline := firstLine(shown.stdout)
	require.Contains(t, headline, "NOT VALID because cannot tell here: no rate was high enough")
	require.Contains(t, shown.stdout, "on redis (D0: nothing on disk) at p99.99 ≤ 0.01 ms")
	requirePages(t, dir, headline)
	beside := p.run("report", "found", written(t, nil))
	require.Contains(t, beside.stdout, "2 results side by side\n", "below the verdict, where it is not valid")

	again := p.run("capacity", server.URL(), "--out", "found")
	require.Equal(t, exitError, again.code)
	require.Contains(t, again.stderr, "found is not empty")
	for _, other := range [][]string{{"compare", "found", "found"}, {"report", "--merge", "found", "found"}} {
		refused := p.run(other...)
		require.Equal(t, exitError, refused.code)
		require.Equal(t, []string{"found"}, p.files())
	}

	believe(t, dir)
	planned := p.run("plan", "--rate", "10/s", "--slo", "p50=200ms", "--from", "found")
	require.Equal(t, exitOK, planned.code, planned.stderr)
	require.Contains(t, firstLine(planned.stdout), "(redis) for 10.0 sagas/s, with p50 ≤ 200 ms")
}

// believe makes a result valid, and all its rates held: what follows does not test the
// machine.
func believe(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, result.FileSummary))
	require.NoError(t, err)
	s := capacityOf(t, string(text))
	s.Validity.Valid = true
	for i := range s.Capacity.Steps {
		m := &s.Capacity.Steps[i]
		m.Validity.Valid, m.LatencyMS.P50, m.Load.AchievedPerS = true, ptr(1.0), *m.Load.OfferedPerS
		m.Hold, m.DurationS, m.Load.Errors, m.Load.Dropped = true, s.Capacity.HoldS, 0, nil
	}
	if s.Capacity.Held == nil {
		s.Capacity.Held, s.Capacity.CannotTell = &result.Held{RatePerS: *s.Capacity.Steps[0].Load.OfferedPerS, DurationS: s.Capacity.HoldS}, ""
	}
	text, err = json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.FileSummary), text, 0o666))
}

// Ctrl-C ends a search early, with what it has, and leaves nothing running.
func TestCapacity_Interrupted(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"redis": {"redis", "--start"}, "pebble": {"pebble", "--durability=D2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			cmd := p.command(append(append([]string{"capacity"}, args...), "--json", "--out", "found")...)
			stdout, stderr := newLines(), newLines()
			cmd.Stdout, cmd.Stderr = stdout, stderr
			require.NoError(t, cmd.Start())
			_, err := stderr.find(soon(t), "1 in flight: ")
			require.NoError(t, err)
			children := childrenOf(t, cmd.Process.Pid)
			require.Len(t, children, map[string]int{"redis": 2, "pebble": 1}[name], "the bench server, and that of the store")
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.Error(t, cmd.Wait())
			require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
			for _, pid := range children {
				require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			}

			s := capacityOf(t, stdout.String())
			require.Contains(t, s.Validity.Because[0], "incomplete: interrupted")
			require.NotEmpty(t, s.Capacity.Scaling)
			require.Equal(t, map[string]string{"redis": "D0", "pebble": "D2"}[name], s.Run.Store.Durability)
			require.Contains(t, stdout.String(), `"steps": []`)
			require.NotEmpty(t, s.Capacity.NoFit)
			require.Zero(t, *s.Check.Lost)
			requireFiles(t, filepath.Join(p.dir, "found"), result.FilePage, result.FileMarkdown, "steps", result.FileSummary)
			shown := p.run("report", "found")
			require.Contains(t, firstLine(shown.stdout), "NOT VALID")
		})
	}
}

func TestCapacity_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "something"), nil, 0o666))
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	searched := func(args ...string) []string { return append([]string{"capacity", "pebble"}, args...) }
	running := func(target string, args ...string) []string {
		return append([]string{"capacity", "--target", target}, args...)
	}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no store":         {[]string{"capacity"}, "want one store"},
		"unknown store":    {[]string{"capacity", "mongodb"}, `"mongodb" is unknown: want pebble`},
		"unreachable":      {[]string{"capacity", "redis://:topsecret@127.0.0.1:1"}, "redis at 127.0.0.1:1: dial"},
		"nothing to start": {searched("--start"), "--start: pebble has no server"},
		"set, no start":    {[]string{"capacity", "redis", "--set", "save="}, "--set: it is for a server that --start starts"},
		"slo of nothing":   {searched("--slo", ""), "--slo: "},
		"slo of errors":    {searched("--slo", "errors=1%"), `--slo: "errors=1%" bounds no latency, as p99=20ms does`},
		"slo, errors":      {searched("--slo", "p99=20ms,errors=101%"), `--slo: errors="101%", want a share of the requests`},
		"slo, percentile":  {searched("--slo", "p98=20ms"), "want one of p50, p90, p95, p99, p99.9, p99.99 and errors"},
		"slo, time":        {searched("--slo", "p99=20"), `--slo: p99="20", want a time, as 20ms`},
		"slo, below 0":     {searched("--slo", "p99=-1ms"), "want a time, as 20ms"},
		"slo, twice":       {searched("--slo", "p99=20ms,p50=5ms,p99=30ms"), `--slo: p99="30ms": p99 has a limit already`},
		"short hold":       {searched("--hold", "1.9s"), "--hold: 1.9s, must be at least 2s"},
		"bad hold":         {searched("--hold", "long"), "--hold"},
		"no search":        {searched("--repeat", "0"), "--repeat: 0, must be at least 1"},
		"fill":             {searched("--fill", "-1"), "--fill: -1, at least 0"},
		"warmup":           {searched("--warmup", "-1s"), "--warmup: -1s, must not be negative"},
		"arrival":          {searched("--arrival", "bursts"), `arrival: "bursts", must be constant or poisson`},
		"steps":            {searched("--steps", "0"), "steps: 0, must be 1 to 1000"},
		"branches":         {searched("--branches", "some"), `branches: "some"`},
		"payload":          {searched("--payload", "-1"), "payload: -1"},
		"fail":             {searched("--fail", "2"), "fail: 2"},
		"metrics":          {searched("--metrics", "nonsense"), "--metrics: "},
		"rate":             {searched("--rate", "100/s"), "--rate"},
		"out not empty":    {searched("--out", full), full + " is not empty"},
		"out is a file":    {searched("--out", filepath.Join(full, "something")), "something"},
		"target of none":   {running("", "redis"), "--target: which servers?"},
		"target, start":    {running("http://127.0.0.1:1", "redis", "--start"), "--start and --target: servers that run already have a store"},
		"target, fill":     {running("http://127.0.0.1:1", "redis", "--fill", "5"), "--fill: the servers run already; fill the store through them"},
		"target, set":      {running("http://127.0.0.1:1", "redis", "--set", "save="), "--set: it is for a server that --start starts"},
		"target, embedded": {running("http://127.0.0.1:1", "pebble"), "pebble is held by its bench server: leave it out here"},
		"target, stores":   {running("http://127.0.0.1:1", "redis", "mysql"), "at most 1 arg"},
		"target, password": {running("http://me:topsecret@127.0.0.1:1"), "must not have a password"},
		"nobody there":     {running("http://127.0.0.1:1"), "target: http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"},
		"no bench server":  {running(elsewhere.URL), "target: " + elsewhere.URL + " is no bench server, or has another token (404 Not Found)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, tt.args, tt.says)
		})
	}
}
