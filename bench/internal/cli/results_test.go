package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
)

// Results for the commands that read them.

func ptr[T any](x T) *T { return &x }

// aRun is a valid one of an open loop on Redis. Others differ by what change does.
func aRun(change func(*result.Summary)) result.Summary {
	s := result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema,
			Run: result.Run{
				ID: "20260101-120000-redis", Started: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), DurationS: 10,
				Command: "go run bench/main.go run redis --rate 1000/s", Topology: "load, app and store on one machine", SharedHost: true,
				Store:    result.Store{Driver: "redis", Version: "7.0.15", Durability: "D3", Settings: map[string]string{"appendfsync": "always"}},
				Scenario: result.Scenario{Steps: 2, Branches: "empty"},
			},
			Check: result.Check{
				Acknowledged: 12_000, Terminal: ptr(int64(12_000)), Lost: ptr(int64(0)),
				BothOutcomes: ptr(int64(0)), Uncompensated: ptr(int64(0)), Unfinished: ptr(int64(0)),
			},
			Validity:    result.Validity{Valid: true},
			Environment: result.Environment{CPU: "a processor", Cores: 2, Memory: 16_000_000_000, Kernel: "6.1", Go: "go1.26"},
		},
		Measurement: result.Measurement{
			Load:        result.Load{Mode: result.Open, InFlight: 1000, OfferedPerS: ptr(1000.0), AchievedPerS: 1000, Requests: 10_000, Delayed: ptr(int64(0)), Dropped: ptr(int64(0))},
			LatencyMS:   result.Latency{P50: ptr(2.0), P99: ptr(5.0), Max: ptr(9.0), Mean: ptr(2.2)},
			ServiceMS:   result.Latency{P50: ptr(2.0), P99: ptr(5.0), Max: ptr(9.0), Mean: ptr(2.2)},
			CostPerSaga: result.Cost{StoreCPUUS: ptr(10.0), AppCPUUS: ptr(30.0), LoadCPUUS: ptr(20.0), StoreMemoryBytes: ptr(200.0)},
			Resources:   result.Resources{LoadCores: ptr(0.02), AppCores: ptr(0.03), StoreCores: ptr(0.01), StoreOneCore: true, HostBusy: ptr(0.05)},
		},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// written is the directory of such a run.
func written(t *testing.T, change func(*result.Summary)) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "result")
	require.NoError(t, report.WriteRun(dir, aRun(change)))
	return dir
}

// pairs are interleaved runs of A and B, whose store and app CPU per saga differ by a
// factor; as bench compare takes them.
func pairs(t *testing.T, n int, factor float64, changeB func(*result.Summary)) (a, b string) {
	t.Helper()
	var dirs [2][]string
	for pair := range n {
		for side := range dirs {
			dirs[side] = append(dirs[side], written(t, func(s *result.Summary) {
				order := 2*pair + (side+pair)%2 // A B B A …
				s.Run.Started = s.Run.Started.Add(time.Duration(order) * time.Minute)
				s.Run.ID = result.RunID(s.Run.Started, "redis")
				noise := 1 + 0.002*float64((order*7)%5)
				*s.CostPerSaga.StoreCPUUS *= noise
				*s.CostPerSaga.AppCPUUS *= noise
				if side == 1 {
					*s.CostPerSaga.StoreCPUUS *= factor
					*s.CostPerSaga.AppCPUUS *= factor
					if changeB != nil {
						changeB(s)
					}
				}
			}))
		}
	}
	return strings.Join(dirs[0], ","), strings.Join(dirs[1], ",")
}

// noResults are directories that hold none, and what is said of each.
func noResults(t *testing.T) map[string]string {
	t.Helper()
	one, err := os.ReadFile(filepath.Join(written(t, nil), result.FileSummary))
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(one), `"load"`)
	holding := func(text string) (dir string) {
		dir = t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, result.FileSummary), []byte(text), 0o666))
		return dir
	}
	return map[string]string{
		t.TempDir(): "no result of bench run, load or capacity",
		holding(strings.Replace(string(one), `"schema": 2`, `"schema": 1`, 1)): "it has schema 1 of an older version, and this program reads 2: measure again",
		holding(before):                     "unexpected end of JSON input",
		holding(`{"schema": 2, "lua": {}}`): "no result of bench run, load or capacity",
	}
}

// requireRefused runs the program with wrong input: one line says what is wrong, and
// nothing is written.
func requireRefused(t *testing.T, args []string, says string) {
	t.Helper()
	p := newProgram(t)
	got := p.run(args...)
	require.Equal(t, exitError, got.code, got.stderr)
	require.Contains(t, got.stderr, says)
	require.True(t, strings.HasPrefix(got.stderr, "bench: "), got.stderr)
	require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
	require.NotContains(t, got.stderr, "topsecret")
	require.Empty(t, got.stdout)
	require.Empty(t, p.files())
}

// requireKeysOf compares the keys of a summary with those that are promised, the ones in
// lists as well: steps[].load.mode. What may be null or has keys of somebody else's is
// not looked into.
func requireKeysOf(t *testing.T, name, summary string) {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal([]byte(summary), &tree))
	var keys []string
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			leaf := []string{"settings", "errors_by_kind", "versions", "fit", "ratio", "again[]", "middle", "predicted[]", "held", "next", "spread", "searches[]", "store_disk"}
			if slices.Contains(leaf, path[strings.LastIndex(path, ".")+1:]) {
				break
			}
			for key, below := range node {
				walk(strings.TrimPrefix(path+"."+key, "."), below)
			}
			return
		case []any:
			if strings.HasSuffix(path, ".not_measurable") { // null where all was measurable: chance
				break
			}
			path += "[]"
			for _, below := range node {
				walk(path, below)
			}
		}
		keys = append(keys, path)
	}
	walk("", tree)
	slices.Sort(keys)
	got := strings.Join(slices.Compact(keys), "\n") + "\n"
	golden := filepath.Join("testdata", name+"-keys.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// requirePages makes sure that a directory has the report as a page and as Markdown, and
// that both have the headline.
func requirePages(t *testing.T, dir, headline string) {
	t.Helper()
	require.NotEmpty(t, headline)
	for _, name := range []string{result.FilePage, result.FileMarkdown} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), headline, name)
	}
}

// firstLine is the headline, unless a verdict comes before it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// requireFiles compares what is below a directory, but for what is in the directories of
// single measurements and runs.
func requireFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.Equal(t, want, got, fmt.Sprint("in ", dir))
}
