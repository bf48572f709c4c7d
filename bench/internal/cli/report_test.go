package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

// A file of vegeta's results is a result, too: here that of a run, which holds no bodies.
func TestReport_OfVegetasResults(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("run", "pebble", "--rate", "200/s", "--json", "--duration", "2s", "--warmup", "100ms", "--out", "made")
	require.Contains(t, []int{exitOK, exitInvalid}, got.code, got.stderr)
	for _, when := range []string{"before", "after"} {
		text := "process_cpu_seconds_total " + map[string]string{"before": "1", "after": "2"}[when] + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, "made", "results."+when+".prom"), []byte(text), 0o666))
	}
	got = p.run("report", "made/results.bin")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "app 2,5") // µs of a second over 400 sagas
	require.Contains(t, got.stdout, "from the send")
	require.NotContains(t, got.stdout, "from the due time")
	require.Contains(t, got.stdout, "not audited")
	got = p.run("plan", "--rate", "100/s", "--slo", "p90=10s", "made/results.bin")
	require.Contains(t, got.stdout, "an unknown store", got.stderr)
}

func TestReport_ShowsAResultAgain(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	dir := written(t, nil)
	got := p.run("report", dir, "--out", "pages", "--verbose")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Empty(t, got.stderr)
	require.Contains(t, firstLine(got.stdout), "1,000 sagas/s on redis (D3")
	require.Contains(t, got.stdout, "go run bench/main.go run redis --rate 1000/s", "how it was made, not how it is shown")
	requireFiles(t, filepath.Join(p.dir, "pages"), result.FilePage, result.FileMarkdown)
	requirePages(t, filepath.Join(p.dir, "pages"), "1,000 sagas/s on redis")

	markdown := p.run("report", dir, "--markdown")
	require.Equal(t, exitOK, markdown.code, markdown.stderr)
	page, err := os.ReadFile(filepath.Join(p.dir, "pages", result.FileMarkdown))
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(page), "\n")[:3], strings.Split(markdown.stdout, "\n")[:3])
	require.Equal(t, []string{"pages"}, p.files())
}

// One that must not be relied on says so first; showing it is no mistake.
func TestReport_SaysThatAResultIsNotValid(t *testing.T) {
	t.Parallel()
	got := newProgram(t).run("report", written(t, func(s *result.Summary) {
		s.Validity = result.Validity{Because: []string{"3 sagas are lost"}}
	}))
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, "NOT VALID because 3 sagas are lost", firstLine(got.stdout))
}

func TestReport_SetsResultsSideBySide(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	a, b := written(t, nil), written(t, func(s *result.Summary) { s.Run.Store.Durability = "D0" })
	got := p.run("report", a, b, "--out", "pages")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, "2 results side by side", firstLine(got.stdout))
	require.Contains(t, got.stdout, "Not ranked: durability differs")
	requirePages(t, filepath.Join(p.dir, "pages"), "2 results side by side")
}

// Two load hosts drive one server at the same time, and what they saw is put together.
func TestReport_MergesLoadHosts(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.serve("pebble", "--listen", "127.0.0.1:0")
	var hosts sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		hosts.Go(func() {
			got := p.run("load", "--target", s.url, "--in-flight", "2", "--duration", "2s", "--warmup", "0s", "--out", name)
			if got.code != exitOK {
				t.Errorf("%s: %s", name, got.stderr)
			}
		})
	}
	hosts.Wait()
	s.stop()

	got := p.run("report", "--merge", "one", "two", "--out", "merged", "--json")
	require.Equal(t, exitOK, got.code, got.stderr)
	requireKeys(t, got.stdout)
	var merged result.Summary
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &merged))
	require.Equal(t, 4, merged.Load.InFlight)
	var requests, acknowledged int64
	for _, name := range []string{"one", "two"} {
		one, _, err := result.Read(filepath.Join(p.dir, name))
		require.NoError(t, err)
		requests += one.Load.Requests
		acknowledged += one.Check.Acknowledged
	}
	require.Equal(t, requests, merged.Load.Requests)
	require.Equal(t, acknowledged, merged.Check.Acknowledged)
	dir := filepath.Join(p.dir, "merged")
	requireFiles(t, dir, result.FileAcknowledged, result.FilePercentiles, result.FileHistogramLog,
		result.FilePage, result.FileMarkdown, result.FileResults, result.FileSummary)

	again := p.run("report", "merged")
	require.Equal(t, exitOK, again.code, again.stderr)
	requirePages(t, dir, firstLine(again.stdout))
	require.Contains(t, p.run("report", "--merge", "one", "two", "--markdown").stdout, firstLine(again.stdout))

	// What is not valid is so in any form.
	summary := filepath.Join(p.dir, "one", result.FileSummary)
	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	invalid := strings.Replace(string(text), `"valid": true`, `"valid": false`, 1)
	require.NotEqual(t, string(text), invalid)
	require.NoError(t, os.WriteFile(summary, []byte(invalid), 0o600))
	for _, form := range []string{"--markdown", "--json", "--markdown=false"} {
		require.Equal(t, exitInvalid, p.run("report", "--merge", "one", "two", form).code, form)
	}

	for out, says := range map[string]string{"one": "--out: one is not empty", filepath.Join("one", result.FileSummary): "--out: "} {
		got = p.run("report", "--merge", "one", "two", "--out", out)
		require.Equal(t, exitError, got.code)
		require.Contains(t, got.stderr, says)
	}
	// One whose journal is not there any more is not half merged.
	require.NoError(t, os.Remove(filepath.Join(p.dir, "two", result.FileAcknowledged)))
	got = p.run("report", "--merge", "one", "two", "--out", "half")
	require.Equal(t, exitError, got.code)
	require.NoDirExists(t, filepath.Join(p.dir, "half"))
}

func TestReport_RefusesWrongInput(t *testing.T) {
	t.Parallel()
	one := written(t, nil)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "something"), nil, 0o666))
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"nothing to show":   {[]string{"report"}, "requires at least 1 arg"},
		"nowhere":           {[]string{"report", "no/where"}, "no/where: no result of bench run, load or capacity"},
		"the second is not": {[]string{"report", one, "no/where"}, "no/where: no result"},
		"JSON":              {[]string{"report", one, "--json"}, "--json: each result has its summary.json"},
		"out not empty":     {[]string{"report", one, "--out", full}, "--out: " + full + " is not empty"},
		"out is the result": {[]string{"report", one, "--out", one}, "is not empty"},
		"merge of one":      {[]string{"report", "--merge", one}, "it has no latency.hlog"},
		"unknown flag":      {[]string{"report", one, "--pdf"}, "--pdf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, tt.args, tt.says)
		})
	}
	for dir, says := range noResults(t) {
		requireRefused(t, []string{"report", one, dir}, says)
		requireRefused(t, []string{"report", "--merge", dir, one, "--out", "merged"}, says)
	}
}
