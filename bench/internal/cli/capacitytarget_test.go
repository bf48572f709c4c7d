package cli

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
)

// Two servers that run already are searched together; when one of them dies there is
// nothing to search on any more.
func TestCapacity_OfServersThatRun(t *testing.T) {
	race.Skip(t) // package session has sessions of servers that run
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	p := newProgram(t, "SAGABENCH_REDIS_URL="+redis.URL(), tokenVariable)
	one, two := p.serve("redis", "--listen", "127.0.0.1:0"), p.serve("redis", "--listen", "127.0.0.1:0")
	targets := one.url + "," + two.url
	search := func(out string) []string {
		return append([]string{"capacity", "redis", "--target", targets, "--json", "--out", out, "--repeat", "2"}, shortSearch...)
	}

	got := p.run(search("found")...)
	require.Equal(t, exitInvalid, got.code, got.stderr)
	requireKeysOf(t, "capacity", got.stdout)
	require.NotContains(t, got.stdout+got.stderr, theToken)
	s := capacityOf(t, got.stdout)
	require.Equal(t, 2, s.Run.AppHosts)
	require.Equal(t, "load on this machine, 2 servers that ran before", s.Run.Topology)
	require.Contains(t, s.Run.Command, "--target "+targets)
	require.Equal(t, "redis", s.Run.Store.Driver)
	require.Equal(t, 10, s.Run.Scenario.Payload)
	require.Equal(t, s.Check.Acknowledged, *s.Check.Terminal)
	require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated+*s.Check.Unfinished)
	require.Len(t, s.Capacity.Scaling, 10)
	require.NotEmpty(t, s.Capacity.Steps)
	require.Contains(t, got.stderr, "search 2 of 2")
	require.Len(t, s.Capacity.Searches, 2)
	require.Nil(t, s.Capacity.Spread, "neither of them can tell")
	require.Contains(t, s.Capacity.CannotTell, "100,000 requests in a hold of 2.00 s; lengthen it with --hold")
	require.Empty(t, s.Capacity.Rechecks)
	require.True(t, slices.ContainsFunc(s.Capacity.Scaling, func(m result.Step) bool {
		return m.CostPerSaga.StoreCPUUS != nil && m.CostPerSaga.AppCPUUS != nil
	}))
	for _, server := range []*running{one, two} {
		_, metrics := fetch(t, server.url+"/metrics", theToken)
		require.Regexp(t, `sagabench_sagas_total\{outcome="succeed"\} [1-9]`, metrics)
	}
	dir := filepath.Join(p.dir, "found")
	requireFiles(t, dir, result.FilePage, result.FileMarkdown, "steps", result.FileSummary)
	believe(t, dir)
	planned := p.run("plan", "--verbose", "--rate", "10/s", "--slo", "p50=200ms", "--from", "found")
	require.Equal(t, exitOK, planned.code, planned.stderr)
	require.Contains(t, planned.stdout, "2 app hosts)")

	cmd := p.command(search("died")...)
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "1 in flight: ")
	require.NoError(t, err)
	two.kill()
	require.ErrorAs(t, cmd.Wait(), new(*exec.ExitError))
	require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
	s = capacityOf(t, stdout.String())
	require.Contains(t, s.Validity.Because[0], "incomplete: not all servers answer any more: target: "+two.url)
	require.Zero(t, *s.Check.Lost)
	require.Less(t, len(s.Capacity.Scaling), 10)

	got = p.run(search("none")...)
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "bench: target: "+two.url+": dial tcp")
	require.NoDirExists(t, filepath.Join(p.dir, "none"))
}
