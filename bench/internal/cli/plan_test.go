package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
	"sagabench/internal/race"
)

// rates are valid runs on Redis at 1,000/s, which meets p99 ≤ 20 ms, and 2,000/s, which
// does not.
func rates(t *testing.T) []string {
	t.Helper()
	return []string{written(t, nil), written(t, func(s *result.Summary) {
		s.Run.ID = "20260101-120100-redis"
		s.Load.OfferedPerS, s.Load.AchievedPerS, s.Load.Requests = ptr(2000.0), 2000, 20_000
		s.LatencyMS.P99 = ptr(50.0)
	})}
}

func TestPlan_FromRuns(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	args := append([]string{"plan", "--rate", "500/s", "--peak", "2x", "--p99", "20ms", "--retention", "1h"}, append([]string{"--from"}, rates(t)...)...)
	got := p.run(append(args, "--out", "planned", "--verbose")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	headline := firstLine(got.stdout)
	require.Equal(t, "1 app host and 1 store node (redis) for 500 sagas/s, at the peak 1,000/s, with p99 ≤ 20 ms", headline)
	require.NotContains(t, got.stdout, "Extrapolated")
	text := strings.Join(strings.Fields(got.stdout), " ")
	require.Contains(t, text, "of 1h at the average rate")
	require.Contains(t, text, "measured at 1,000/s (20260101-120000-redis and 1 more)")
	require.Contains(t, text, "go run bench/main.go plan --rate 500/s")

	dir := filepath.Join(p.dir, "planned")
	requireFiles(t, dir, result.FilePage, result.FileMarkdown, result.FileSummary)
	requirePages(t, dir, headline)

	again := p.run(append(args, "--json")...)
	require.Equal(t, exitOK, again.code, again.stderr)
	require.Empty(t, again.stderr)
	requireKeysOf(t, "plan", again.stdout)
	written, err := os.ReadFile(filepath.Join(dir, result.FileSummary))
	require.NoError(t, err)
	var made plan.Result
	require.NoError(t, json.Unmarshal(written, &made))
	require.InDelta(t, 1000, made.Plan.Held, 0)
	require.InDelta(t, 2000, *made.Plan.Next, 0)
	require.True(t, made.Validity.Valid)
	require.Contains(t, made.Run.ID, "-plan")
	require.Contains(t, made.Run.Command, "go run bench/main.go plan --rate 500/s")
	require.Equal(t, "redis", made.Run.Store.Driver)
	require.EqualValues(t, 24_000, made.Check.Acknowledged, "those of both results")
	require.EqualValues(t, 0, *made.Check.Lost)
	require.Equal(t, []string{"planned"}, p.files())

	refused := p.run("report", "planned")
	require.Equal(t, exitError, refused.code)
	require.Contains(t, refused.stderr, "no result of bench run, load or capacity")

	got = p.run(append(args, "--out", "planned")...)
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "--out: planned is not empty")
}

// What a plan rests on makes it invalid, with the exit code of any such result.
func TestPlan_OfAnInvalidResultIsInvalid(t *testing.T) {
	t.Parallel()
	invalid := written(t, func(s *result.Summary) {
		s.Validity = result.Validity{Because: []string{"the audit found 3 of 12,000 acknowledged sagas lost"}}
		s.Check.Lost = ptr(int64(3))
	})
	p := newProgram(t)
	got := p.run("plan", "--rate", "500/s", "--from", invalid)
	require.Equal(t, exitInvalid, got.code, got.stderr)
	require.Equal(t, "NOT VALID because 20260101-120000-redis: the audit found 3 of 12,000 acknowledged sagas lost", firstLine(got.stdout))
	got = p.run("plan", "--rate", "500/s", "--from", invalid, "--json")
	require.Equal(t, exitInvalid, got.code, got.stderr)
	var made plan.Result
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &made))
	require.False(t, made.Validity.Valid)
	require.EqualValues(t, 3, *made.Check.Lost)
}

func TestPlan_SaysWhatIsExtrapolated(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run(append([]string{"plan", "--rate", "20000/s"}, rates(t)...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	text := strings.Join(strings.Fields(got.stdout), " ")
	require.Contains(t, text, "(redis) for 20,000 sagas/s, with p99 ≤ 20 ms; extrapolated: the store was measured to hold 1,000/s, and the peak is 20.0 times that")
}

func TestPlan_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	results := rates(t)
	one := results[0]
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "something"), nil, 0o666))
	closed := written(t, func(s *result.Summary) { s.Load.Mode, s.Load.OfferedPerS = result.Closed, nil })
	other := written(t, func(s *result.Summary) { s.Run.ID, s.Run.Store.Durability = "other", "D0" })
	with := func(args ...string) []string {
		return append([]string{"plan", "--rate", "500/s", "--from", one}, args...)
	}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no rate":          {[]string{"plan", one}, `--rate: "", want sagas per time, as 20000/s`},
		"bad rate":         {[]string{"plan", "--rate", "fast", one}, `--rate: "fast"`},
		"rate of none":     {[]string{"plan", "--rate", "0/s", one}, `--rate: "0/s"`},
		"endless rate":     {[]string{"plan", "--rate", "Inf/s", one}, `--rate: "Inf/s"`},
		"no result":        {[]string{"plan", "--rate", "500/s"}, "--from: which results? bench capacity STORE makes one"},
		"nowhere":          {with("no/where"), "no/where: no result of bench run, load or capacity"},
		"bad peak":         {with("--peak", "high"), `--peak: "high", want a multiple of the rate, at least 1x`},
		"peak below":       {with("--peak", "0.5x"), `--peak: "0.5x"`},
		"endless peak":     {with("--peak", "Infx"), `--peak: "Infx"`},
		"bad p99":          {with("--p99", "soon"), `--slo: p99="soon", want a time, as 20ms`},
		"p99 of none":      {with("--p99", "0s"), "--slo: p99="},
		"bad slo":          {with("--slo", "p98=20ms"), "--slo: "},
		"both slo and p99": {with("--slo", "p99=20ms", "--p99", "30ms"), "[p99 slo] were all set"},
		"retention":        {with("--retention", "-1h"), "--retention: -1h0m0s, must not be negative"},
		"branch latency":   {with("--branch-latency", "-1s"), "--branch-latency: -1s, must not be negative"},
		"bad retention":    {with("--retention", "1 day"), "--retention"},
		"out not empty":    {with("--out", full), "--out: " + full + " is not empty"},
		"twice":            {with(one), "result 20260101-120000-redis is there twice"},
		"closed loop":      {[]string{"plan", "--rate", "1/s", closed}, "nothing was measured in an open loop"},
		"unlike":           {with(other), "have different durability classes"},
		"not held":         {with("--p99", "1ms"), "no rate was held at p99 ≤ 1 ms: not even 1,000/s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, tt.args, tt.says)
		})
	}
	for dir, says := range noResults(t) {
		requireRefused(t, with(dir, "--out", "planned"), says)
	}
}
