package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/internal/race"
)

func comparisonOf(t *testing.T, stdout string) compare.Result {
	t.Helper()
	var c compare.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	return c
}

func TestCompare_InterleavesVariants(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync)
	got := p.run("compare", "redis --start --set requirepass=topsecret", "pebble --payload 100", "--pairs", "2",
		"--duration", "300ms", "--warmup", "100ms", "--in-flight", "4", "--gate", "app_cpu_us<=+5%", "--gate-unclear", "0", "--json", "--out", "compared")
	require.Contains(t, []int{exitOK, exitInvalid}, got.code, got.stderr)
	requireKeysOf(t, "compare", got.stdout)
	require.NotContains(t, got.stdout+got.stderr, "topsecret")
	c := comparisonOf(t, got.stdout)
	require.Equal(t, got.code == exitOK, c.Validity.Valid, c.Validity.Because)
	require.Equal(t, 2, c.Compare.Pairs)
	require.Len(t, c.Compare.A.Runs, 2)
	require.Equal(t, "go run bench/main.go run redis --start --set 'requirepass=***'", c.Compare.A.Command)
	require.Equal(t, []string{"redis", "pebble"}, []string{c.Compare.A.Store.Driver, c.Compare.B.Store.Driver})
	require.Contains(t, strings.Join(c.Compare.NotRanked, "\n"), "too few runs: 2 of each, 5 are needed")
	require.Contains(t, strings.Join(c.Compare.NotRanked, "\n"), "mismatched durability")
	require.Equal(t, compare.CannotTell, c.Gates[0].Outcome)
	require.Contains(t, c.Run.Command, `'pebble --payload 100' --pairs 2`)
	require.Zero(t, *c.Check.Lost)
	turns := strings.Index(got.stderr, "pair 1 of 2, A: redis --start")
	for _, next := range []string{"pair 1 of 2, B: pebble --payload 100", "pair 2 of 2, B:", "pair 2 of 2, A:"} {
		at := strings.Index(got.stderr, next)
		require.Greater(t, at, turns, next)
		turns = at
	}

	require.Equal(t, []string{"compared"}, p.files())
	dir := filepath.Join(p.dir, "compared")
	requireFiles(t, dir, result.FilePage, result.FileMarkdown, runsDir, result.FileSummary)
	requireFiles(t, filepath.Join(dir, runsDir), "01-a", "01-b", "02-a", "02-b")
	one, _, err := result.Read(filepath.Join(dir, runsDir, "02-b"))
	require.NoError(t, err)
	require.Equal(t, 100, one.Run.Scenario.Payload)
	require.Equal(t, 4, one.Load.InFlight)
	require.NoDirExists(t, filepath.Join(dir, runsDir, "02-b", "store"))

	// The same from the results of the runs.
	again := p.run("compare", "compared/runs/01-a,compared/runs/02-a", "compared/runs/01-b,compared/runs/02-b", "--json")
	require.Equal(t, got.code, again.code, again.stderr)
	require.Equal(t, c.Compare.Metrics, comparisonOf(t, again.stdout).Compare.Metrics)
}

func TestCommonArgs_HasTheConfigFile(t *testing.T) {
	t.Parallel()
	a := new(app)
	cmd := a.compareCommand()
	a.configFlag(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--config", "conf.yml", "--steps", "3", "--out", "x", "--json", "--pairs", "7"}))
	require.Equal(t, []string{"--config=conf.yml", "--steps=3"}, commonArgs(cmd))
}

func TestCompare_Results(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	d0 := func(s *result.Summary) { s.Run.Store.Durability = "D0" }
	for name, tt := range map[string]struct {
		pairs   int
		factor  float64 // of the CPU per saga of B
		changeB func(*result.Summary)
		gate    string
		code    int
		outcome compare.Outcome
		says    string // the headline, in part
	}{
		"a gate is broken":      {5, 1.2, nil, "store_cpu_us<=+5%", exitGate, compare.Broken, "B against A: store CPU per saga higher by 20"},
		"a gate is kept":        {5, 1.2, nil, "store_cpu_us<=+30%", exitOK, compare.Kept, "B against A: store CPU per saga higher by 20"},
		"no difference":         {5, 1, nil, "app_cpu_us<=+5%", exitOK, compare.Kept, "No difference shown between A and B"},
		"a gate on too few":     {1, 2, nil, "store_cpu_us<=+5%", exitUnclear, compare.CannotTell, "Not ranked: too few runs"},
		"mismatched durability": {5, 1.2, d0, "store_cpu_us<=+5%", exitUnclear, compare.CannotTell, "Not ranked: mismatched durability: A is D3, B is D0"},
		"one is not valid":      {5, 1.2, func(s *result.Summary) { s.Validity.Valid = false }, "store_cpu_us<=+5%", exitInvalid, compare.CannotTell, "NOT VALID"},
		"the other way":         {5, 0.8, nil, "store_cpu_us>=-5%", exitGate, compare.Broken, "store CPU per saga lower by "},
		"nothing to look at":    {5, 1.2, nil, "store_fsyncs<=+5%", exitUnclear, compare.CannotTell, "B against A"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			a, b := pairs(t, tt.pairs, tt.factor, tt.changeB)
			got := p.run("compare", a, b, "--gate", tt.gate, "--out", "compared")
			require.Equal(t, tt.code, got.code, got.stderr+got.stdout)
			require.Contains(t, firstLine(got.stdout), tt.says)
			require.Contains(t, got.stdout, string(tt.outcome))
			dir := filepath.Join(p.dir, "compared")
			requireFiles(t, dir, result.FilePage, result.FileMarkdown, result.FileSummary)
			requirePages(t, dir, tt.says)
			text, err := os.ReadFile(filepath.Join(dir, result.FileSummary))
			require.NoError(t, err)
			c := comparisonOf(t, string(text))
			require.Equal(t, tt.outcome, c.Gates[0].Outcome, c.Gates[0].Evidence)
			require.Equal(t, int64(2*tt.pairs*12_000), c.Check.Acknowledged)

			bare := newProgram(t)
			without := bare.run("compare", a, b)
			require.Empty(t, bare.files(), "nothing is written that was not asked for")
			require.NotContains(t, without.stdout, "Gates")
		})
	}
}

// The exit code of gates: the worst of them, where that of "cannot tell" can be chosen.
func TestCompare_ExitCodeOfGates(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	a, b := pairs(t, 5, 1.2, nil)
	const kept, broken, unclear = "store_cpu_us<=+30%", "store_cpu_us<=+5%", "store_cpu_us<=+20%"
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"kept":                   {[]string{"--gate", kept}, exitOK},
		"cannot tell":            {[]string{"--gate", kept, "--gate", unclear}, exitUnclear},
		"cannot tell, passes":    {[]string{"--gate", kept, "--gate", unclear, "--gate-unclear", "0"}, exitOK},
		"cannot tell, as broken": {[]string{"--gate", unclear, "--gate-unclear", "3"}, exitGate},
		"broken before":          {[]string{"--gate", unclear, "--gate", broken, "--gate-unclear", "9"}, exitGate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newProgram(t).run(append([]string{"compare", a, b}, tt.args...)...)
			require.Equal(t, tt.code, got.code, got.stdout+got.stderr)
			require.Equal(t, name != "kept", strings.Contains(got.stdout, "cannot tell"), got.stdout)
		})
	}
}

// Both runs of a pair have the same random arrivals, other pairs others.
func TestCompare_RandomArrivals(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync)
	got := p.run("compare", "pebble", "pebble --payload 10", "--pairs", "2", "--rate", "100/s", "--arrival", "poisson",
		"--duration", "300ms", "--warmup", "100ms", "--json", "--out", "compared")
	c := comparisonOf(t, got.stdout)
	require.Equal(t, []uint64{compare.Seed(c.Run.ID, 1), compare.Seed(c.Run.ID, 2)}, c.Compare.Seeds)
	for _, pair := range []string{"01", "02"} {
		var offered []float64
		for _, side := range []string{"a", "b"} {
			s, _, err := result.Read(filepath.Join(p.dir, "compared", runsDir, pair+"-"+side))
			require.NoError(t, err)
			offered = append(offered, *s.Load.OfferedPerS)
		}
		require.InDelta(t, offered[0], offered[1], 1e-9)
	}
	require.NotContains(t, strings.Join(c.Compare.NotRanked, "\n"), "load")
}

// The figures of all audits are in that of the comparison.
func TestCompare_AddsUpWhatTheAuditsExempted(t *testing.T) {
	t.Parallel()
	a, b := pairs(t, 2, 1, func(s *result.Summary) { s.Check.Expired, s.Check.ForceStopped = 3, 1 })
	c := comparisonOf(t, newProgram(t).run("compare", a, b, "--json").stdout)
	require.EqualValues(t, 6, c.Check.Expired)
	require.EqualValues(t, 2, c.Check.ForceStopped)
}

// Ctrl-C keeps the pairs that were made.
func TestCompare_Interrupted(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync)
	cmd := p.command("compare", "pebble", "pebble", "--duration", "100ms", "--warmup", "0s", "--pairs", "1000", "--json", "--out", "compared")
	stdout, stderr := newLines(), newLines()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "pair 2 of 1000, A")
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInvalid, cmd.ProcessState.ExitCode(), stderr)
	c := comparisonOf(t, stdout.String())
	require.Regexp(t, `^it is incomplete: interrupted in pair \d+ of 1000$`, c.Validity.Because[0])
	require.Positive(t, c.Compare.Pairs)
	requireFiles(t, filepath.Join(p.dir, "compared"), result.FilePage, result.FileMarkdown, runsDir, result.FileSummary)
}

func TestCompare_InterruptedBeforeThereIsAPair(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("compare", "pebble", "pebble", "--duration", "1h", "--warmup", "0s", "--out", "compared")
	stderr := newLines()
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	_, err := stderr.find(soon(t), "measuring")
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitError, cmd.ProcessState.ExitCode(), stderr)
	require.Equal(t, "bench: interrupted in pair 1 of 5: nothing to compare; what was run is in compared/runs", lastLine(stderr.String()))
	_, _, err = result.Read(filepath.Join(p.dir, "compared", runsDir, "01-a"))
	require.NoError(t, err)
}

// A variant that fails when it runs is named, and the runs before it are kept.
func TestCompare_VariantFails(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("compare", "pebble", "redis://:topsecret@127.0.0.1:1", "--duration", "100ms", "--warmup", "0s", "--out", "compared")
	require.Equal(t, exitError, got.code)
	require.Contains(t, lastLine(got.stderr), "bench: variant B, in pair 1 of 5: ")
	require.Contains(t, lastLine(got.stderr), "redis at 127.0.0.1:1: dial")
	require.Contains(t, lastLine(got.stderr), "what was run is in compared/runs")
	require.NotContains(t, got.stderr, "topsecret")
	requireFiles(t, filepath.Join(p.dir, "compared"), runsDir)
}

func TestCompare_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	one := written(t, nil)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "something"), nil, 0o666))
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"one only":        {[]string{"compare", "pebble"}, "accepts 2 arg(s), received 1"},
		"unknown gate":    {[]string{"compare", one, one, "--gate", "speed<=5%"}, `--gate: not a gate: "speed<=5%" names no metric; there are achieved_per_s`},
		"bad gate":        {[]string{"compare", one, one, "--gate", "app_cpu_us<5"}, `--gate: not a gate: "app_cpu_us<5" is not METRIC<=CHANGE%`},
		"bad exit code":   {[]string{"compare", one, one, "--gate-unclear", "256"}, "--gate-unclear: 256, must be 0 to 125"},
		"no pairs":        {[]string{"compare", "pebble", "pebble", "--pairs", "0"}, "--pairs: 0, at least 1"},
		"bad pairs":       {[]string{"compare", "pebble", "pebble", "--pairs", "some"}, "--pairs"},
		"of each one":     {[]string{"compare", one, "redis://:topsecret@h"}, "two results or two variants"},
		"empty variant":   {[]string{"compare", "pebble", " "}, "variant B: it is empty: want what follows bench run"},
		"unknown flag, A": {[]string{"compare", "pebble --fast", "pebble"}, "variant A: unknown flag: --fast"},
		"unknown flag, B": {[]string{"compare", "pebble", "pebble --fast"}, "variant B: unknown flag: --fast"},
		"bad value, B":    {[]string{"compare", "pebble", "pebble --payload much"}, "variant B: invalid argument"},
		"two stores":      {[]string{"compare", "pebble", "pebble redis"}, "variant B: want one store"},
		"unknown store":   {[]string{"compare", "pebble", "mongodb"}, `variant B: invalid request: store: "mongodb" is unknown: want pebble`},
		"no server, B":    {[]string{"compare", "pebble", "pebble --start"}, "variant B: --start: pebble has no server to start"},
		"bad steps, A":    {[]string{"compare", "pebble --steps 0", "pebble"}, "variant A: invalid request: steps: 0, must be 1 to 1000"},
		"bad fill, B":     {[]string{"compare", "pebble", "pebble --fill -1"}, "variant B: --fill: -1, at least 0"},
		"out not empty":   {[]string{"compare", one, one, "--out", full}, "--out: " + full + " is not empty"},
		"out, variants":   {[]string{"compare", "pebble", "pebble", "--out", full}, "--out: " + full + " is not empty"},
		"out is A":        {[]string{"compare", one, one, "--out", one}, "is not empty"},
		"bad duration":    {[]string{"compare", "pebble", "pebble", "--duration", "long"}, "--duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, tt.args, tt.says)
		})
	}
	for dir, says := range noResults(t) {
		requireRefused(t, []string{"compare", one, dir, "--out", "compared"}, says)
	}
}
