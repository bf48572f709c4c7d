package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/usl"
	"sagabench/internal/document"
)

// capacityRun found 9,800 sagas/s on a Redis.
func capacityRun(t *testing.T) CapacitySummary {
	t.Helper()
	run := openRun()
	c := Capacity{
		SLO:      SLO{Latencies: []LatencyGoal{{Percentile: 99, MS: 20}}, Errors: 0.001},
		RatePerS: ptr(9800.0), LowPerS: ptr(9600.0), HighPerS: ptr(10_100.0),
		Limit: Limit{Resource: "store CPU", Share: ptr(0.97), Evidence: "the store keeps 97.0% of its one core busy at 9,800/s"},
	}
	step := func(rate, p50, p99 float64, kept bool, why string) {
		m := Measured{
			DurationS: 10, Load: Load{Mode: Open, InFlight: 1000, OfferedPerS: ptr(rate), AchievedPerS: rate, Requests: int64(10 * rate)},
			LatencyMS: Latency{P50: ptr(p50), P99: ptr(p99)}, Kept: ptr(kept), Why: why, Validity: Validity{Valid: true},
			CostPerSaga: Cost{LoadCPUUS: ptr(30.0), AppCPUUS: ptr(60 - rate/400), StoreCPUUS: ptr(20 - rate/1000), StoreBytesIn: ptr(441.0), StoreFsyncs: nil},
			Resources:   Resources{AppCores: ptr(rate / 20_000), StoreCores: ptr(rate / 10_100), BusiestCore: ptr(rate / 10_500)},
		}
		c.Steps = append(c.Steps, m)
	}
	step(1000, 1.2, 3.1, true, "")
	step(4000, 1.5, 4.4, true, "")
	step(16_000, 900, 2400, false, "p99 2,400 ms")
	step(8000, 2.2, 8.9, true, "")
	step(12_000, 90, 240, false, "p99 240 ms")
	step(9800, 4.1, 17.2, true, "")
	step(9800, 4.4, 21.5, false, "p99 21.5 ms")
	step(9800, 4.2, 18.5, true, "")
	c.Steps[2].Load.AchievedPerS = 10_300
	var points []usl.Point
	for i, n := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512} {
		f := float64(n)
		x := 900 * f / (1 + 0.04*(f-1) + 0.00004*f*(f-1)) * (1 + 0.02*float64(i%3-1))
		points = append(points, usl.Point{N: f, X: x})
		c.Scaling = append(c.Scaling, Measured{Load: Load{Mode: Closed, InFlight: n, AchievedPerS: x}, LatencyMS: Latency{P50: ptr(1.5), P99: ptr(9.0)}})
	}
	fit, err := usl.FitPoints(points, 1)
	require.NoError(t, err)
	c.Fit = &fit
	run.Run.Command = "bench capacity redis --slo p99=20ms,errors=0.1%"
	return CapacitySummary{
		Schema: Schema, Run: run.Run, Check: closedRun().Check, Environment: run.Environment,
		Validity: Validity{Valid: true, Warnings: []string{"shared host: relative only"}}, Capacity: c,
	}
}

func TestCapacityDocument_Golden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, capacityDocument(capacityRun(t), "results/c")))
	golden(t, "capacity.txt", out.Bytes())
}

func TestCapacityDocument_SaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Capacity)
		want   []string
	}{
		"an edge": {
			func(*Capacity) {},
			[]string{
				"9,800 sagas/s on redis (D2: about the last second at risk) at p99 ≤ 20 ms, limited by store CPU",
				"With 95% confidence the highest rate that keeps it is from 9,600 to 10,100 sagas/s.",
			},
		},
		"no edge": {
			func(c *Capacity) { c.HighPerS, c.Limit = nil, Limit{} },
			[]string{"at least 9,800 sagas/s on redis (D2: about the last second at risk) at p99 ≤ 20 ms\n", "It was kept at the highest rate that was tried."},
		},
		"never": {
			func(c *Capacity) { c.RatePerS, c.LowPerS, c.HighPerS = nil, nil, ptr(1000.0) },
			[]string{"no rate that was tried on redis", "keeps p99 ≤ 20 ms", "not kept at 1,000 sagas/s, nor above"},
		},
		"no fit": {
			func(c *Capacity) { c.Fit, c.NoFit = nil, "4 points are too few" },
			[]string{"No law was fitted: 4 points are too few."},
		},
		"nothing": {func(c *Capacity) { *c = Capacity{} }, []string{"no rate that was tried"}},
	} {
		s := capacityRun(t)
		c.change(&s.Capacity)
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, capacityDocument(s, "")), name)
		for _, want := range c.want {
			require.Contains(t, out.String(), want, name)
		}
		require.NoError(t, document.HTML(&out, capacityDocument(s, "")), name)
	}
}

// The law is drawn where it was measured, and nowhere else.
func TestCapacityDocument_DoesNotExtrapolate(t *testing.T) {
	t.Parallel()
	s := capacityRun(t)
	fit := *s.Capacity.Fit
	curve := lawSeries(fit)
	require.Len(t, curve.Points, 61)
	require.InDelta(t, fit.From, curve.Points[0].X, 1e-9)
	require.InDelta(t, fit.To, curve.Points[60].X, 1e-9)
}

func TestReadResult_OfASearch(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), capacityRun(t)
	require.NoError(t, WriteFile(dir, FileSummary, func(w io.Writer) error { return Encode(w, want) }))
	require.NoError(t, WritePages(dir, capacityDocument(want, "")))
	r, err := ReadResult(dir)
	require.NoError(t, err)
	require.Nil(t, r.Run)
	require.Equal(t, want.Capacity, r.Capacity.Capacity)
	require.Equal(t, capacityDocument(want, dir), Document(r))
	page, err := os.ReadFile(filepath.Join(dir, FilePage))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(page), "<svg"), "latency, throughput, cost")
	require.FileExists(t, filepath.Join(dir, FileMarkdown))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, "not the result of one run")
}

func TestReadResult_SaysWhatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadResult(dir)
	require.ErrorIs(t, err, ErrNoResult)
	require.ErrorIs(t, err, os.ErrNotExist)
	for content, want := range map[string]string{
		`{"schema": 1, "lua": {}}`:  ErrNoResult.Error(),
		`{"schema": 2, "load": {}}`: "schema 2",
		`{`:                         "unexpected end",
		`{"schema": 1, "load": 7}`:  "cannot unmarshal",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, FileSummary), []byte(content), 0o644))
		_, err := ReadResult(dir)
		require.ErrorContains(t, err, want)
	}
}

func TestSideBySide_Golden(t *testing.T) {
	t.Parallel()
	rec, err := ReadHistogramLog(strings.NewReader(sampleLog(t)))
	require.NoError(t, err)
	one, two, c := closedRun(), openRun(), capacityRun(t)
	d := SideBySide(Result{Dir: "results/a", Run: &one, Recording: rec}, Result{Dir: "results/b/", Run: &two}, Result{Dir: "results/c", Capacity: &c})
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, d))
	golden(t, "beside.txt", out.Bytes())
	require.NoError(t, document.HTML(&out, d))
}

func TestSideBySide_OfTheLikeHasNothingToSay(t *testing.T) {
	t.Parallel()
	one := closedRun()
	d := SideBySide(Result{Dir: "x/1", Run: &one}, Result{Dir: "y/1", Run: &one})
	require.Equal(t, []string{"One of each shows no difference: that takes repeats, made in turns."}, d.Lead)
	require.Empty(t, d.Verdict)
	require.Equal(t, []string{"1: x/1", "2: y/1"}, d.Parts[0].Table.Columns)
	for _, p := range d.Parts {
		require.NotEqual(t, "What is not the same", p.Title)
	}
}

func TestSideBySide_ShowsHowTheRateGrowsWithAppHosts(t *testing.T) {
	t.Parallel()
	text := func(hosts ...int) string {
		var results []Result
		for _, n := range hosts {
			s := closedRun()
			s.Run.AppHosts, s.Load.AchievedPerS = n, 1000*float64(n)/(1+0.1*float64(n-1))
			results = append(results, Result{Dir: fmt.Sprintf("hosts-%d", n), Run: &s})
		}
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, SideBySide(results...)))
		return out.String()
	}
	require.NotContains(t, text(1, 1), "Throughput over app hosts")
	require.Contains(t, text(1, 2), "No law was fitted")
	six := text(1, 2, 3, 4, 6, 8)
	require.Contains(t, six, "Throughput over app hosts")
	require.Regexp(t, `σ, contention +0\.100 `, six)
}
