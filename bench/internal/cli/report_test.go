package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/internal/race"
)

// A file of vegeta's results is a result, too: here one that holds no bodies.
func TestReport_OfVegetasResults(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	var attack bytes.Buffer
	encoder, began := vegeta.NewEncoder(&attack), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 400 {
		require.NoError(t, encoder.Encode(&vegeta.Result{
			Seq: uint64(i), Code: http.StatusOK, Timestamp: began.Add(time.Duration(i) * 5 * time.Millisecond), Latency: 2 * time.Millisecond,
			Method: http.MethodGet, URL: "http://app:8080/bench/saga",
		}))
	}
	for name, text := range map[string]string{
		"results.bin": attack.String(), "results.before.prom": "process_cpu_seconds_total 1\n", "results.after.prom": "process_cpu_seconds_total 2\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o666))
	}
	got := p.run("report", "results.bin")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "app 2,500") // µs of a second over 400 sagas
	require.Contains(t, got.stdout, "from the send")
	require.NotContains(t, got.stdout, "from the due time")
	require.Contains(t, got.stdout, "not audited")
	got = p.run("plan", "--rate", "100/s", "--slo", "p90=10s", "results.bin")
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

// What two load hosts saw is put together. The second one saw what the first did, at the very
// same time: package merge refuses results that were not measured together.
func TestReport_MergesLoadHosts(t *testing.T) {
	t.Parallel()
	p := newProgram(t, withoutSync)
	s := p.serve("pebble", "--listen", "127.0.0.1:0")
	loaded := p.run("load", "--target", s.url, "--in-flight", "2", "--duration", "1s", "--warmup", "0s", "--out", "one")
	require.Equal(t, exitOK, loaded.code, loaded.stderr)
	s.stop()
	require.NoError(t, os.CopyFS(filepath.Join(p.dir, "two"), os.DirFS(filepath.Join(p.dir, "one"))))
	p.edit(filepath.Join("two", result.FileSummary), `"id": "`, `"id": "two-`)

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
	p.edit(filepath.Join("one", result.FileSummary), `"valid": true`, `"valid": false`)
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

// edit replaces a text in a file that the program wrote.
func (p program) edit(name, old, with string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	text, err := os.ReadFile(path)
	require.NoError(p.t, err)
	require.Contains(p.t, string(text), old)
	require.NoError(p.t, os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o600))
}

func TestReport_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
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
