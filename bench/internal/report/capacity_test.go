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

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/bench/internal/usl"
	"sagabench/internal/document"
)

// capacityRun found 9,800 sagas/s on a Redis.
func capacityRun(t *testing.T) result.CapacitySummary {
	t.Helper()
	run := resulttest.OpenRun()
	c := result.Capacity{
		SLO:      result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: 0.001},
		RatePerS: resulttest.Ptr(9800.0), LowPerS: resulttest.Ptr(9600.0), HighPerS: resulttest.Ptr(10_100.0),
		Limit: result.Limit{Resource: "store CPU", Share: resulttest.Ptr(0.97), Evidence: "the store keeps 97.0% of its one core busy at 9,800/s"},
	}
	step := func(rate, p50, p99 float64, kept bool, why string) {
		m := result.Step{
			Measurement: result.Measurement{
				Load:        result.Load{Mode: result.Open, InFlight: 1000, OfferedPerS: resulttest.Ptr(rate), AchievedPerS: rate, Requests: int64(10 * rate)},
				LatencyMS:   result.Latency{P50: resulttest.Ptr(p50), P99: resulttest.Ptr(p99)},
				CostPerSaga: result.Cost{LoadCPUUS: resulttest.Ptr(30.0), AppCPUUS: resulttest.Ptr(60 - rate/400), StoreCPUUS: resulttest.Ptr(20 - rate/1000), StoreBytesIn: resulttest.Ptr(441.0), StoreFsyncs: nil},
				Resources:   result.Resources{AppCores: resulttest.Ptr(rate / 20_000), StoreCores: resulttest.Ptr(rate / 10_100), BusiestCore: resulttest.Ptr(rate / 10_500)},
			},
			DurationS: 10,
			MeetsSLO:  resulttest.Ptr(kept),
			Why:       why,
			Validity:  result.Validity{Valid: true},
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
		c.Scaling = append(c.Scaling, result.Step{Measurement: result.Measurement{Load: result.Load{Mode: result.Closed, InFlight: n, AchievedPerS: x}, LatencyMS: result.Latency{P50: resulttest.Ptr(1.5), P99: resulttest.Ptr(9.0)}}})
	}
	fit, err := usl.FitPoints(points, 1)
	require.NoError(t, err)
	c.Fit = &fit
	run.Run.Command = "bench capacity redis --slo p99=20ms,errors=0.1%"
	return result.CapacitySummary{
		Envelope: result.Envelope{
			Schema:      result.Schema,
			Run:         run.Run,
			Check:       resulttest.ClosedRun().Check,
			Environment: run.Environment,
			Validity:    result.Validity{Valid: true, Warnings: []string{"shared host: relative only"}},
		},
		Capacity: c,
	}
}

func TestCapacityDocument_Golden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, capacityDocument(capacityRun(t), "results/c")))
	resulttest.Golden(t, "capacity.txt", out.Bytes())
}

func TestCapacityDocument_SaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*result.Capacity)
		want   []string
	}{
		"an interval": {
			func(*result.Capacity) {},
			[]string{
				"9,800 sagas/s on redis (D2: about the last second at risk) at p99 ≤ 20 ms, limited by store CPU",
				"The 95% confidence interval is 9,600 to 10,100 sagas/s.",
			},
		},
		"no upper bound": {
			func(c *result.Capacity) { c.HighPerS, c.Limit = nil, result.Limit{} },
			[]string{"at least 9,800 sagas/s on redis (D2: about the last second at risk) at p99 ≤ 20 ms\n", "The service level was met at the highest tried rate."},
		},
		"never": {
			func(c *result.Capacity) { c.RatePerS, c.LowPerS, c.HighPerS = nil, nil, resulttest.Ptr(1000.0) },
			[]string{"no tried rate on redis", "meets p99 ≤ 20 ms", "violated at 1,000 sagas/s and above"},
		},
		"no fit": {
			func(c *result.Capacity) { c.Fit, c.NoFit = nil, "4 points are too few" },
			[]string{"No scaling law was fitted: 4 points are too few."},
		},
		"nothing": {func(c *result.Capacity) { *c = result.Capacity{} }, []string{"no tried rate"}},
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

// The law is drawn over the measured range only.
func TestCapacityDocument_DoesNotExtrapolate(t *testing.T) {
	t.Parallel()
	s := capacityRun(t)
	fit := *s.Capacity.Fit
	curve := search{s.Capacity}.scalingPart().Chart.Series[1].Points
	require.InDelta(t, fit.From, curve[0].X, 1e-9)
	require.InDelta(t, fit.To, curve[len(curve)-1].X, 1e-9)
}

func TestReadResult_OfASearch(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), capacityRun(t)
	require.NoError(t, result.WriteFile(dir, result.FileSummary, func(w io.Writer) error { return result.Encode(w, want) }))
	require.NoError(t, WritePages(dir, capacityDocument(want, "")))
	r, err := result.ReadResult(dir)
	require.NoError(t, err)
	require.Nil(t, r.Run)
	want.Capacity.Predicted = []result.Predicted{} // null is never written
	require.Equal(t, want.Capacity, r.Capacity.Capacity)
	require.Equal(t, capacityDocument(want, dir), Document(r))
	page, err := os.ReadFile(filepath.Join(dir, result.FilePage))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(page), "<svg"), "latency, throughput, cost")
	require.FileExists(t, filepath.Join(dir, result.FileMarkdown))
	_, _, err = result.Read(dir)
	require.ErrorContains(t, err, "not the result of one run")
}

func TestSideBySide_Golden(t *testing.T) {
	t.Parallel()
	rec, err := result.ReadHistogramLog(strings.NewReader(resulttest.SampleLog(t)))
	require.NoError(t, err)
	one, two, c := resulttest.ClosedRun(), resulttest.OpenRun(), capacityRun(t)
	d := SideBySide(result.Result{Dir: "results/a", Run: &one, Recording: rec}, result.Result{Dir: "results/b/", Run: &two}, result.Result{Dir: "results/c", Capacity: &c})
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, d))
	resulttest.Golden(t, "side-by-side.txt", out.Bytes())
	require.NoError(t, document.HTML(&out, d))
}

func TestSideBySide_OfEqualResults_HasNoDifferences(t *testing.T) {
	t.Parallel()
	one := resulttest.ClosedRun()
	d := SideBySide(result.Result{Dir: "x/1", Run: &one}, result.Result{Dir: "y/1", Run: &one})
	require.Equal(t, []string{"Single runs do not show a difference: bench compare repeats them."}, d.Lead)
	require.Empty(t, d.Verdict)
	require.Equal(t, []string{"1: x/1", "2: y/1"}, d.Parts[0].Table.Columns)
	for _, p := range d.Parts {
		require.NotEqual(t, "Differences", p.Title)
	}
}

func TestSideBySide_ShowsHowTheRateGrowsWithAppHosts(t *testing.T) {
	t.Parallel()
	text := func(hosts ...int) string {
		var results []result.Result
		for _, n := range hosts {
			s := resulttest.ClosedRun()
			s.Run.AppHosts, s.Load.AchievedPerS = n, 1000*float64(n)/(1+0.1*float64(n-1))
			results = append(results, result.Result{Dir: fmt.Sprintf("hosts-%d", n), Run: &s})
		}
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, SideBySide(results...)))
		return out.String()
	}
	require.NotContains(t, text(1, 1), "Throughput over app hosts")
	require.Contains(t, text(1, 2), "Throughput over app hosts")
	require.Regexp(t, `\n  2 +1,818 .* 818\n`, text(1, 2))
}
