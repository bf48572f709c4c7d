package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/comparisons"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

func matrixOf(t *testing.T, stdout string) result.MatrixSummary {
	t.Helper()
	requireSchema(t, stdout)
	var s result.MatrixSummary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	return s
}

const twoStores = `title: Two stores
tables:
  - name: sagas
    title: Sagas
    measure: saga
    repeats: 2
    set: {in_flight: 4, duration: 500ms, warmup: 100ms, durability: D2, slo: p99=10s}
    axes:
      - name: store
        values:
          - {name: redis, set: {store: redis, cpus: 1, settings: {requirepass: topsecret}}}
          - {name: pebble, set: {store: pebble}}
          - {name: old, set: {store: redis, binary: redis-0.1}}
    compare: store
`

func TestMatrix_RunsStoresAndResumes(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "two.yml"), []byte(twoStores), 0o600))
	got := p.run("matrix", "two.yml", "--out", "out", "--json")
	require.Contains(t, []int{exitError, exitInvalid}, got.code, got.stderr)
	require.NotContains(t, got.stdout+got.stderr, "topsecret")
	s := matrixOf(t, got.stdout)
	require.Equal(t, got.code == exitError, s.Validity.Valid, "a variant that cannot run is an error")
	require.Equal(t, result.KindMatrix, s.Kind)
	require.Zero(t, *s.Check.Lost)
	sagas := s.Matrix.Tables[0]
	redis, pebble, old := sagas.Variants[0], sagas.Variants[1], sagas.Variants[2]
	require.Len(t, redis.Runs, 2)
	require.Regexp(t, `^(CPU affinity|cgroup v2): 1 of \d+ CPUs$`, redis.CPULimit)
	require.Equal(t, []string{"D2", "D2"}, []string{redis.Store.Durability, pebble.Store.Durability})
	require.Contains(t, redis.Figures, "cpu_us")
	require.Contains(t, pebble.Figures, "cpu_us")
	require.Contains(t, old.Failed, "redis-0.1 is not installed")
	require.Contains(t, got.stderr, "old could not run: redis-0.1 is not installed")

	dir := filepath.Join(p.dir, "out")
	requireFiles(t, dir, "matrix.json", result.FilePage, result.FileMarkdown, "runs", "sagas.csv", result.FileSummary)
	requirePages(t, dir, "redis-0.1 is not installed")
	text, err := os.ReadFile(filepath.Join(dir, "sagas.csv"))
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"store", "store_version", "durability"}, rows[0][:3])
	require.Len(t, rows, 4)
	one, _, err := result.Read(filepath.Join(dir, redis.Runs[0]))
	require.NoError(t, err)
	require.Equal(t, 4, one.Load.InFlight)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, pebble.Runs[1]))) // as if it had been interrupted
	again := p.run("matrix", "two.yml", "--out", "out")
	require.Contains(t, []int{exitError, exitInvalid}, again.code, again.stderr)
	require.Equal(t, 1, strings.Count(again.stderr, "sagas, block 2 of 2: pebble"), again.stderr)
	require.NotContains(t, again.stderr, ": redis\n")
	require.Contains(t, firstLine(again.stdout+"\n"), "Two stores")
	require.Contains(t, again.stdout, "old could not run")

	var saved result.MatrixSummary
	text, err = os.ReadFile(filepath.Join(dir, result.FileSummary))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &saved))
	require.Equal(t, saved, matrixOf(t, p.run("report", "out", "--json").stdout))
	shown := p.run("report", "out")
	require.Equal(t, exitOK, shown.code, shown.stderr)
	require.Empty(t, shown.stderr)
	require.Equal(t, strings.Replace(again.stdout, "bench report --verbose out, or report.html there", "--verbose, or report.html in out", 1), shown.stdout)
	require.Contains(t, p.run("report", "out", "--verbose").stdout, "each figure")
	require.Contains(t, p.run("report", "out", filepath.Join("out", redis.Runs[0])).stderr, "but one of bench matrix, which bench report shows alone")

	other := p.run("matrix", "two.yml", "--out", "out", "--repeats", "3")
	require.Equal(t, exitError, other.code)
	require.Contains(t, other.stderr, "has runs of another matrix (--repeats")
}

const operations = `title: Operations
tables:
  - name: operations
    title: Operations
    measure: operation
    repeats: 1
    set: {clients: 4, payload: 32, warmup: 50ms, duration: 250ms}
    axes:
      - name: servers
        values:
          - {name: one, set: {cpus: 1, durability: D2}}
          - {name: cluster, set: {nodes: 3, keys: many, keys_per_request: 10}}
          - {name: running, set: {store: 'URL'}}
      - name: operation
        values: [GET, EVALSHA10]
`

func TestMatrix_MeasuresOperations(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	server := labtest.Start(t, lab.Redis, lab.Config{})
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "operations.yml"), []byte(strings.Replace(operations, "URL", server.URL(), 1)), 0o600))
	got := p.run("matrix", "operations.yml", "--out", "out", "--json")
	require.Equal(t, exitOK, got.code, got.stderr)
	require.NotContains(t, got.stdout+got.stderr, server.Password())
	s := matrixOf(t, got.stdout)
	require.True(t, s.Validity.Valid, s.Validity.Because)
	for i, v := range s.Matrix.Tables[0].Variants {
		require.Empty(t, v.Failed)
		require.Positive(t, v.Figures["ops_per_s"].Median)
		require.Contains(t, v.Figures, "server_cpu_us")
		require.Contains(t, v.Figures, "round_trips")
		require.Equal(t, []string{"D2", "D2", "D0", "D0", "D0", "D0"}[i], v.Store.Durability)
		require.Equal(t, v.Names[0] == "one", v.CPULimit != "")
		if v.Names[0] == "one" && v.Names[1] == "EVALSHA10" {
			require.Positive(t, v.Figures["server_bytes_written"].Median)
		}
		_, nodes := v.Figures["busiest_cpu_us"]
		require.Equal(t, v.Names[0] == "cluster", nodes)
	}
}

func TestMatrix_RefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "bad.yml"), []byte(strings.Replace(twoStores, "in_flight: 4", "in_flight: none", 1)), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"matrix", "bad.yml"}, `bad.yml: line 7: tables[0].set.in_flight: "none": want a whole number`},
		{[]string{"matrix", "nothing"}, "variant file: open nothing: no such file or directory; by name there are " + strings.Join(comparisons.Names(), ", ")},
		{[]string{"matrix", "stores", "--rate", "fast"}, `--rate: "fast": want requests per time, as 500/s`},
		{[]string{"matrix", "stores", "--repeats", "0"}, "--repeats: 0, must be 1 to 100"},
		{[]string{"matrix", "stores", "--repeats", "1000000000"}, "--repeats: 1000000000, must be 1 to 100"},
	} {
		got := p.run(tt.args...)
		require.Equal(t, exitError, got.code)
		require.Contains(t, got.stderr, tt.want)
		require.Equal(t, []string{"bad.yml"}, p.files())
	}
}

func TestComparisons_CanAllBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range comparisons.Names() {
		text, err := comparisons.Read(name)
		require.NoError(t, err)
		_, err = matrix.Parse(name, text)
		require.NoError(t, err)
	}
}
