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

// capacityRun held 9,800 sagas/s on a Redis, and not 10,300.
func capacityRun(t *testing.T) result.CapacitySummary {
	t.Helper()
	run := resulttest.OpenRun()
	run.Run.DurationS = 372
	c := result.Capacity{
		SLO:   result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: 0.001},
		HoldS: 60,
		Search: result.Search{
			Held: &result.Held{
				RatePerS: 9800, DurationS: 60.002,
				LatencyMS:      result.Latency{P50: resulttest.Ptr(4.2), P99: resulttest.Ptr(17.4)},
				Interval:       []result.LatencyInterval{{Percentile: 99, LowMS: 16.2, HighMS: 18.9}},
				OverLimitShare: 0.033, Errors: 1,
			},
			Next: &result.Next{RatePerS: 10_300, Why: "1.42% of the requests took longer than 20 ms or failed, in 71 of 104 seconds; 2 attempts, 104 s in all"},
		},
		Limit: result.Limit{Resource: "store CPU", Share: resulttest.Ptr(0.97), Evidence: "the store keeps 97% of the one core busy on which it runs commands"},
	}
	c.Searches = []result.Search{c.Search}
	step := func(rate, seconds float64, hold bool, p50, p99 float64, why string) {
		m := result.Step{
			RatePerS: rate, DurationS: seconds, Hold: hold,
			Measurement: result.Measurement{
				Load:        result.Load{Mode: result.Open, InFlight: 1000, OfferedPerS: resulttest.Ptr(rate), AchievedPerS: rate, Requests: int64(seconds * rate)},
				LatencyMS:   result.Latency{P50: resulttest.Ptr(p50), P99: resulttest.Ptr(p99)},
				CostPerSaga: result.Cost{LoadCPUUS: resulttest.Ptr(30.0), AppCPUUS: resulttest.Ptr(60 - rate/400), StoreCPUUS: resulttest.Ptr(20 - rate/1000), StoreBytesIn: resulttest.Ptr(441.0), StoreFsyncs: nil},
				Resources:   result.Resources{AppCores: resulttest.Ptr(rate / 20_000), StoreCores: resulttest.Ptr(rate / 13_000), BusiestCore: resulttest.Ptr(rate / 13_500)},
			},
			MeetsSLO: resulttest.Ptr(why == ""),
			Why:      why,
			Validity: result.Validity{Valid: true},
		}
		c.Steps = append(c.Steps, m)
	}
	step(12_000, 4, false, 90, 240, "31.2% of the requests took longer than 20 ms or failed, in 4 of 4 seconds")
	step(16_000, 4, false, 900, 2400, "overloaded: 10,300/s achieved of 16,000/s")
	step(4000, 4, false, 1.5, 4.4, "")
	step(8000, 4, false, 2.2, 8.9, "")
	step(10_200, 60, true, 4.4, 19.1, "")
	step(10_300, 60, true, 4.6, 21.5, "1.31% of the requests took longer than 20 ms or failed, in 36 of 60 seconds")
	step(10_300, 44, true, 4.7, 22.9, "1.57% of the requests took longer than 20 ms or failed, in 35 of 44 seconds")
	step(9800, 60.002, true, 4.2, 17.4, "")
	c.Steps[1].Load.AchievedPerS = 10_300
	c.Steps[7].Load.Errors = 1
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
	c.Rechecks, c.Predicted = []result.Step{}, []result.Predicted{}
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

// severalSearches makes it three searches, of which two held another rate.
func severalSearches(c *result.Capacity) {
	other := func(rate float64) result.Search {
		held := *c.Held
		held.RatePerS = rate
		return result.Search{Held: &held, Next: c.Next}
	}
	c.Searches = []result.Search{other(10_100), c.Search, other(9510)}
	c.Spread = &result.Spread{Low: 9510, Median: 9800, High: 10_100}
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
		"held": {
			func(*result.Capacity) {},
			[]string{
				"9,800 sagas/s on redis (D2: about the last second at risk) held at p99 ≤ 20 ms, limited by store CPU Held for 60.0 s: p99 17.4 ms (16.2 to 18.9 within this hold), over the limit in 3.30% of its seconds, 1 request failed or not sent.",
				"10,300/s was not held: 1.42% of the requests took longer than 20 ms or failed, in 71 of 104 seconds; 2 attempts, 104 s in all.",
				"4,000 4.00 4,000 1.50 4.40 0 met",
				"10,200 60.0, hold 10,200 4.40 19.1 0 met",
				"10,300 44.0, hold 10,300 4.70 22.9 0 violated",
				"16,000 4.00 10,300 900 2,400 0 overloaded",
			},
		},
		"no higher rate was broken": {
			func(c *result.Capacity) { c.Next, c.Limit = nil, result.Limit{} },
			[]string{"9,800 sagas/s on redis (D2: about the last second at risk) held at p99 ≤ 20 ms Held for 60.0 s", "1 request failed or not sent. 134,900 sagas acknowledged"},
		},
		"none held": {
			func(c *result.Capacity) { c.Held = nil },
			[]string{"no rate on redis (D2: about the last second at risk) held p99 ≤ 20 ms Not even 10,300/s was held: 1.42% of the requests"},
		},
		"cannot tell": {
			func(c *result.Capacity) { c.Held, c.CannotTell = nil, "the load generator was late" },
			[]string{"cannot tell the highest rate on redis (D2: about the last second at risk) at p99 ≤ 20 ms 10,300/s was not held: 1.42%"},
		},
		"several searches": {
			severalSearches,
			[]string{"1 request failed or not sent. 10,300/s was not held", "Spread of 3 searches: 9,510 to 10,100 sagas/s, median 9,800.", "search held, sagas/s not held, sagas/s p99, ms 1 10,100 10,300 17.4 2 9,800 10,300 17.4 3 9,510 10,300 17.4"},
		},
		"one of them cannot tell": {
			func(c *result.Capacity) {
				severalSearches(c)
				c.Searches = append(c.Searches, result.Search{CannotTell: "uneven"})
			},
			[]string{"Spread of 3 searches: 9,510 to 10,100 sagas/s, median 9,800.", "4 cannot tell – –"},
		},
		"a search without a held rate": {
			func(c *result.Capacity) {
				c.Searches = append(c.Searches, c.Search, result.Search{Next: c.Next})
				c.Spread = &result.Spread{Low: 0, Median: 9800, High: 9800}
			},
			[]string{"Spread of 3 searches: 0 to 9,800 sagas/s, median 9,800. 0: no rate was held."},
		},
		"two latencies": {
			func(c *result.Capacity) {
				c.SLO.Latencies = append([]result.LatencyGoal{{Percentile: 50, MS: 5}}, c.SLO.Latencies...)
				c.Held.Interval = nil
			},
			[]string{"held at p50 ≤ 5 ms, p99 ≤ 20 ms", "Held for 60.0 s: p50 4.20 ms, p99 17.4 ms, over a limit in"},
		},
		"no fit": {
			func(c *result.Capacity) { c.Fit, c.NoFit = nil, "4 points are too few" },
			[]string{"No scaling law was fitted: 4 points are too few."},
		},
		"nothing": {func(c *result.Capacity) { *c = result.Capacity{Predicted: []result.Predicted{{}}} }, []string{"the search for the highest rate on redis"}},
	} {
		s := capacityRun(t)
		c.change(&s.Capacity)
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, capacityDocument(s, "")), name)
		for _, want := range c.want {
			require.Contains(t, unwrapped(out.String()), want, name)
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
