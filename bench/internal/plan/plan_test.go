package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

func ptr[T any](x T) *T { return &x }

// promise is what the measured rates up to 8,000/s keep.
var promise = result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: 0.001}

// step is a measurement at an offered rate, on a machine that is 90% busy at 8,000/s.
// off is how far its costs are off.
func step(perS, appUS, storeUS, p99, off float64) result.Step {
	return result.Step{
		Measurement: result.Measurement{
			Load:      result.Load{Mode: result.Open, InFlight: 1000, OfferedPerS: ptr(perS), AchievedPerS: perS, Requests: int64(10 * perS)},
			LatencyMS: result.Latency{P50: ptr(p99 / 3), P99: ptr(p99), Mean: ptr(p99 / 2)},
			CostPerSaga: result.Cost{
				AppCPUUS: ptr(appUS * off), StoreCPUUS: ptr(storeUS * off), LoadCPUUS: ptr(16 * off),
				StoreBytesIn: ptr(400.0), StoreBytesOut: ptr(50.0), StoreMemoryBytes: ptr(250.0),
			},
			Resources: result.Resources{HostBusy: ptr(0.9 * perS / 8000), StoreCores: ptr(perS * storeUS / 1e6), StoreOneCore: true},
		},
		DurationS: 10,
		Validity:  result.Validity{Valid: true},
	}
}

// searched is a search for the highest rate on Redis: app CPU per saga falls from 60
// to 40 µs as the rate rises from 2,000 to 8,000/s, store CPU from 20 to 10.
func searched(repeats ...float64) *result.CapacitySummary {
	c := &result.CapacitySummary{
		Envelope: result.Envelope{
			Run: result.Run{
				ID: "20261121-083542-redis", SharedHost: true,
				Store:    result.Store{Driver: "redis", Version: "7.0.15", Durability: "D3"},
				Scenario: result.Scenario{Steps: 2, Branches: "empty"},
			},
			Validity:    result.Validity{Valid: true},
			Environment: result.Environment{Cores: 2},
		},
		Capacity: result.Capacity{SLO: promise},
	}
	if len(repeats) == 0 {
		repeats = []float64{1}
	}
	for _, off := range repeats {
		c.Capacity.Steps = append(
			c.Capacity.Steps,
			step(8000, 40, 10, 18, off), step(2000, 60, 20, 3, off), step(4000, 50, 15, 5, off), step(9000, 39, 9, 200, off),
		)
	}
	return c
}

func of(c *result.CapacitySummary) []result.Result { return []result.Result{{Capacity: c}} }

func line(t *testing.T, lines []plan.Line, what string) plan.Line {
	t.Helper()
	for _, l := range lines {
		if l.What == what {
			return l
		}
	}
	require.Fail(t, "no such line", what)
	return plan.Line{}
}

func TestMake_SizesRedis(t *testing.T) {
	t.Parallel()
	d := plan.Demand{RatePerS: 40_000, Peak: 3, SLO: promise, Retention: 24 * time.Hour}
	p, validity, err := plan.Make(d, of(searched()))
	require.NoError(t, err)
	require.InDelta(t, 120_000, p.PeakPerS, 0)
	require.InDelta(t, 8000, p.Kept, 0)
	require.InDelta(t, 9000, *p.Broken, 0)
	require.InDelta(t, 0.9, *p.Usable, 1e-9)

	for what, want := range map[string]float64{
		// Up to 1.8 of the 2 cores of each: at 39 µs, that of 9,000/s and more, it takes
		// 2.6 hosts, so 3; they use 3 × 40,000 × 39 µs.
		"app hosts": 3,
		"app CPU":   4.68,
		// Up to 0.9 of the core of each: 120,000 × 9 µs take 1.2; a cluster has three.
		"store nodes":                                 3,
		"store CPU":                                   1.08,
		"held by unfinished sagas":                    120_000 * 0.009 * 250, // in flight by Little's law
		"held by finished sagas":                      40_000 * 86_400 * 250,
		"network to the store":                        120_000 * 400,
		"network from the store":                      120_000 * 50,
		"written to disk":                             120_000 * 400,
		"headroom of the app hosts":                   100 * (3*1.8/4.68 - 1),
		"headroom of the store nodes":                 100 * (3*0.9/1.08 - 1),
		"load of the app hosts left when one is lost": 100 * 4.68 / (2 * 1.8),
		"sagas waiting when a store node is lost":     100.0 / 3,
	} {
		l := line(t, p.Lines, what)
		require.NotNil(t, l.Value, what)
		require.InEpsilon(t, want, *l.Value, 1e-9, what)
		require.Nil(t, l.Low, what)
		require.NotEmpty(t, l.Basis, what)
		if !strings.HasPrefix(what, "load of") && !strings.HasPrefix(what, "sagas waiting") {
			require.True(t, l.Extrapolated, what)
		}
	}
	hosts := line(t, p.Lines, "app hosts")
	require.Equal(t, "app CPU per saga 39.0 µs, measured at 9,000/s (20261121-083542-redis); used to 90.0%: "+
		"the machine was that busy at 8,000/s, the highest rate that kept the promise", hosts.Basis)
	require.Equal(t, "if 3 carry 3 times what one does, which was not measured", hosts.Caveat)
	require.Nil(t, line(t, p.Lines, "store fsyncs").Value)
	require.Equal(t, "fsyncs per saga was not measured", line(t, p.Lines, "store fsyncs").Basis)
	require.Contains(t, p.Breaks, "the promise, if it is an app host: the 2 left would have 130% of the load")
	require.Contains(t, validity.Warnings, "extrapolated: the peak is 120,000/s, the highest rate that was measured and followed 9,000/s")
	require.Contains(t, validity.Warnings, "no interval: no rate was measured twice")

	doc := shown(p, validity, "bench plan")
	require.NoError(t, doc.Check())
	require.Equal(t, "3 app hosts and 3 store nodes (redis) for 40,000 sagas/s, at the peak 120,000/s, with p99 ≤ 20 ms", doc.Headline)
	row := doc.Parts[0].Table.Rows[5]
	require.Equal(t, "held by finished sagas", row.Name)
	require.Equal(t, []string{"864", "–", "–", "GB", "extrapolated"}, row.Cells)
}

func TestPlan_KeysAreStable(t *testing.T) {
	t.Parallel()
	p, _, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 2, SLO: promise, Retention: time.Hour}, of(searched()))
	require.NoError(t, err)
	p.Lines, p.Breaks = p.Lines[:1], ""
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"rate_per_s": 3000, "peak_per_s": 6000, "retention_s": 3600,
		"slo": {"latencies": [{"percentile": 99, "ms": 20}], "errors": 0.001},
		"from": ["20261121-083542-redis"],
		"store": {"driver": "redis", "version": "7.0.15", "settings": null, "durability": "D3"},
		"kept_per_s": 8000, "broken_per_s": 9000, "usable": 0.9,
		"lines": [{
			"what": "app hosts", "value": 1, "low": null, "high": null, "unit": "hosts of 2 cores",
			"basis": "app CPU per saga 45.0 µs, measured at 4,000/s and 8,000/s (20261121-083542-redis); used to 90.0%: the machine was that busy at 8,000/s, the highest rate that kept the promise",
			"caveat": "", "extrapolated": false
		}],
		"breaks_first": ""
	}`, string(text))
}

func TestMake_TakesTheCostAtTheRateOfTheDemand(t *testing.T) {
	t.Parallel()
	p, _, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 2, SLO: promise}, of(searched()))
	require.NoError(t, err)
	cpu := line(t, p.Lines, "app CPU")
	require.InDelta(t, 6000*45e-6, *cpu.Value, 1e-9) // between 50 µs at 4,000/s and 40 at 8,000
	require.Contains(t, cpu.Basis, "measured at 4,000/s and 8,000/s")
	for _, l := range p.Lines {
		require.False(t, l.Extrapolated, l.What)
	}
	require.InDelta(t, 1, *line(t, p.Lines, "app hosts").Value, 0)
	require.Zero(t, *line(t, p.Lines, "held by finished sagas").Value)
	require.Equal(t, "they are deleted at once", line(t, p.Lines, "held by finished sagas").Basis)
	require.Nil(t, line(t, p.Lines, "load of the app hosts left when one is lost").Value)
	require.Contains(t, p.Breaks, "the store: 100% of the sagas wait")
}

func TestMake_JudgesTheDemandedPromiseAnew(t *testing.T) {
	t.Parallel()
	strict := result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 10}}, Errors: 0.001}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 1, SLO: strict}, of(searched()))
	require.NoError(t, err)
	require.InDelta(t, 4000, p.Kept, 0)
	require.InDelta(t, 8000, *p.Broken, 0)
	require.InDelta(t, 0.45, *p.Usable, 1e-9)
	require.True(t, strings.HasPrefix(validity.Warnings[0], "laxer search: "), validity.Warnings)

	// What most repeats of a rate did counts, and no rate above a broken one.
	c := searched(1, 1, 1)
	for i := range c.Capacity.Steps {
		if m := &c.Capacity.Steps[i]; *m.Load.OfferedPerS == 4000 && i > 4 {
			m.Load.Errors = m.Load.Requests
		}
	}
	p, validity, err = plan.Make(plan.Demand{RatePerS: 3000, Peak: 1, SLO: promise}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 2000, p.Kept, 0)
}

func TestMake_IntervalsComeFromRepeats(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 40_000, Peak: 3, SLO: promise, Retention: time.Hour}, of(searched(0.9, 1, 1.1)))
	require.NoError(t, err)
	require.NotContains(t, strings.Join(validity.Warnings, "\n"), "no interval")
	cpu := line(t, p.Lines, "app CPU")
	// Four rates of three repeats, 10% apart: eight degrees of freedom, t = 2.306.
	off := 2.306 * 0.1 * 1.1547
	require.InEpsilon(t, 4.68, *cpu.Value, 1e-9)
	require.InEpsilon(t, 4.68*(1-off), *cpu.Low, 1e-3)
	require.InEpsilon(t, 4.68*(1+off), *cpu.High, 1e-3)
	hosts := line(t, p.Lines, "app hosts")
	require.Equal(t, []float64{2, 3, 4}, []float64{*hosts.Low, *hosts.Value, *hosts.High})
}

func TestMake_GivesSQLOnePrimary(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.Store = result.Store{Driver: "mysql", Durability: "D2"}
	for i := range c.Capacity.Steps {
		c.Capacity.Steps[i].Resources.StoreOneCore = false
		c.Capacity.Steps[i].CostPerSaga.StoreFsyncs = ptr(0.1)
	}
	small, validity, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 2, SLO: promise}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 1, *line(t, small.Lines, "store cores").Value, 0) // 8,000 × 10 µs
	require.Empty(t, line(t, small.Lines, "store cores").Caveat)
	require.InDelta(t, 800, *line(t, small.Lines, "store fsyncs").Value, 1e-9)
	require.Contains(t, validity.Warnings, "durability: the store was measured at D2: about the last second at risk")

	large, _, err := plan.Make(plan.Demand{RatePerS: 250_000, Peak: 2, SLO: promise}, of(c))
	require.NoError(t, err)
	cores := line(t, large.Lines, "store cores")
	require.InDelta(t, 5, *cores.Value, 0) // 500,000 × 9 µs are 4.5, at most 90% busy
	require.True(t, cores.Extrapolated)
	require.Contains(t, cores.Caveat, "more than the 2 cores of the measured machine")
	require.InDelta(t, 1, *line(t, large.Lines, "store nodes").Value, 0)
	require.Contains(t, large.Breaks, "the store: 100%")
}

func TestMake_CountsEmbeddedHostsByWhatOneCarried(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.Store = result.Store{Driver: "pebble", Durability: "D3"}
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources.StoreOneCore = false
		m.CostPerSaga.StoreCPUUS, m.CostPerSaga.StoreBytesIn, m.CostPerSaga.StoreMemoryBytes = nil, nil, nil
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 35_000, Peak: 1, SLO: promise, Retention: time.Hour}, of(c))
	require.NoError(t, err)
	hosts := line(t, p.Lines, "app hosts")
	require.Equal(t, []float64{4, 5, 5}, []float64{*hosts.Low, *hosts.Value, *hosts.High})
	require.Zero(t, *line(t, p.Lines, "store nodes").Value)
	require.Nil(t, line(t, p.Lines, "held by finished sagas").Value)
	require.Nil(t, line(t, p.Lines, "written to disk").Value)
	require.InEpsilon(t, 100*(40_000.0/35_000-1), *line(t, p.Lines, "headroom of the app hosts").Value, 1e-9)
	require.Contains(t, p.Breaks, "the 4 left would have 109% of the load")
	require.NoError(t, shown(p, validity, "").Check())

	p, _, err = plan.Make(plan.Demand{RatePerS: 25_000, Peak: 1, SLO: promise}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 4, *line(t, p.Lines, "app hosts").Value, 0)
	p, _, err = plan.Make(plan.Demand{RatePerS: 1000, Peak: 1, SLO: promise}, of(c))
	require.NoError(t, err)
	require.Contains(t, p.Breaks, "there is one, and nothing is accepted")
}

func TestMake_LeavesOpenWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.SharedHost = false
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources, m.CostPerSaga = result.Resources{}, result.Cost{}
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 2, SLO: promise, Retention: time.Hour}, of(c))
	require.NoError(t, err)
	require.Nil(t, p.Usable)
	for _, l := range p.Lines {
		if l.What != "store nodes" && l.What != "sagas waiting when a store node is lost" {
			require.Nil(t, l.Value, l.What)
		}
	}
	require.NoError(t, shown(p, validity, "").Check())
	_, err = json.Marshal(p)
	require.NoError(t, err)
}

func TestMake_RefusesWhatCarriesNoPlan(t *testing.T) {
	t.Parallel()
	good := plan.Demand{RatePerS: 4000, Peak: 2, SLO: promise}
	goal := func(p, ms float64) plan.Demand {
		return plan.Demand{RatePerS: 4000, Peak: 2, SLO: result.SLO{Latencies: []result.LatencyGoal{{Percentile: p, MS: ms}}}}
	}
	changed := func(change func(*result.CapacitySummary)) []result.Result {
		c := searched()
		change(c)
		return of(c)
	}
	for name, test := range map[string]struct {
		demand  plan.Demand
		results []result.Result
		want    string
	}{
		"no rate":  {plan.Demand{Peak: 1, SLO: promise}, of(searched()), "it takes a rate above 0"},
		"no peak":  {plan.Demand{RatePerS: 1, SLO: promise}, of(searched()), "a peak of at least 1"},
		"no goal":  {plan.Demand{RatePerS: 1, Peak: 1}, of(searched()), "a latency to keep"},
		"nothing":  {good, nil, "nothing was measured in an open loop"},
		"p99.999":  {goal(99.999, 20), of(searched()), "p99.999 is not measured"},
		"too fast": {goal(99, 1), of(searched()), "no measured rate kept the service level, not even the lowest, 2,000/s"},
		"unjudged": {goal(99.9, 100), of(searched()), "no measured rate kept the service level"},
		"closed loop": {good, []result.Result{{Run: &result.Summary{
			Envelope: result.Envelope{
				Validity: result.Validity{Valid: true},
			},
			Measurement: result.Measurement{
				Load: result.Load{Mode: result.Closed, AchievedPerS: 10_000},
			},
		}}}, "nothing was measured in an open loop"},
		"unlike": {good, append(of(searched()), changed(func(c *result.CapacitySummary) {
			c.Run.ID, c.Run.Store.Durability = "other", "D2"
		})...), "results 20261121-083542-redis and other have different stores"},
	} {
		_, _, err := plan.Make(test.demand, test.results)
		require.ErrorIs(t, err, plan.ErrNoPlan, name)
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestMake_TakesRunsOfOneRate(t *testing.T) {
	t.Parallel()
	c := searched()
	var results []result.Result
	for i, m := range c.Capacity.Steps {
		run := c.Run
		run.ID = fmt.Sprintf("run-%d", i)
		results = append(results, result.Result{Run: &result.Summary{
			Envelope: result.Envelope{
				Run:         run,
				Validity:    c.Validity,
				Environment: c.Environment,
			},
			Measurement: result.Measurement{
				Load:        m.Load,
				LatencyMS:   m.LatencyMS,
				CostPerSaga: m.CostPerSaga,
				Resources:   m.Resources,
			},
		}})
	}
	d := plan.Demand{RatePerS: 3000, Peak: 2, SLO: promise, Retention: time.Hour}
	apart, _, err := plan.Make(d, results)
	require.NoError(t, err)
	together, _, err := plan.Make(d, of(c))
	require.NoError(t, err)
	require.Equal(t, []string{"run-0", "run-1", "run-2", "run-3"}, apart.From)
	for i, l := range together.Lines {
		require.Equal(t, l.Value, apart.Lines[i].Value, l.What)
	}
}

func TestPredict_InterpolatesBetweenTheMeasuredRates(t *testing.T) {
	t.Parallel()
	lines, err := plan.Predict(3000, of(searched(0.95, 1, 1.05)))
	require.NoError(t, err)
	for what, want := range map[string]float64{
		"load CPU": 3000 * 16e-6, "app CPU": 3000 * 55e-6, "store CPU": 3000 * 17.5e-6,
	} {
		l := line(t, lines, what)
		require.InEpsilon(t, want, *l.Value, 1e-9, what)
		require.Less(t, *l.Low, want)
		require.Greater(t, *l.High, want)
		require.False(t, l.Extrapolated)
	}
	require.Nil(t, line(t, lines, "store fsyncs").Value)

	for _, perS := range []float64{1000, 20_000} {
		lines, err = plan.Predict(perS, of(searched()))
		require.NoError(t, err)
		for _, l := range lines {
			require.True(t, l.Extrapolated)
			require.Nil(t, l.Low)
		}
	}
	_, err = plan.Predict(0, of(searched()))
	require.ErrorIs(t, err, plan.ErrNoPlan)
}

// shown is the plan as bench plan shows it.
func shown(p plan.Plan, v result.Validity, command string) document.Document {
	return report.Plan(plan.Result{Envelope: result.Envelope{Run: result.Run{Command: command}, Validity: v}, Plan: p})
}
