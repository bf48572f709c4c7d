package compare_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
)

func TestMake_SaysByHowMuchAndWhoIsBetter(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	for i := range b.Runs {
		*b.Runs[i].CostPerSaga.AppCPUUS *= 0.8
		b.Runs[i].Load.AchievedPerS *= 0.9
	}
	c, v := compared(t, a, b)
	require.Equal(t, result.Validity{Valid: true}, v)
	require.Equal(t, 5, c.Pairs)
	require.Equal(t, []string{"run-0", "run-3", "run-4", "run-7", "run-8"}, c.A.Runs)
	require.Empty(t, c.Differences)

	cpu := metric(t, c, "app_cpu_us")
	require.InDelta(t, 30, *cpu.A, 0.5)
	require.InDelta(t, 24, *cpu.B, 0.5)
	require.InDelta(t, 0.8, cpu.Ratio.Value, 0.01)
	require.Less(t, *cpu.Ratio.Low, 0.8)
	require.Greater(t, *cpu.Ratio.High, 0.8)
	require.InDelta(t, -20, *cpu.Effect, 1)
	require.Contains(t, cpu.Verdict, "B lower by ")
	require.Equal(t, "B", *cpu.Better)

	rate := metric(t, c, "achieved_per_s")
	require.Contains(t, rate.Verdict, "B lower by ")
	require.Equal(t, "A", *rate.Better)

	same := metric(t, c, "store_cpu_us")
	require.Equal(t, compare.NoDifference, same.Verdict)
	require.Nil(t, same.Better)
}

func TestMake_CallsNothingADifferenceThatIsTooSmallToMatter(t *testing.T) {
	t.Parallel()
	exact := func(int) func() float64 { return func() float64 { return 1 } }
	a, b := sides(5, exact)
	for i := range b.Runs {
		*b.Runs[i].CostPerSaga.StoreBytesIn *= 1.009
		*b.Runs[i].CostPerSaga.StoreBytesOut *= 1.011
	}
	c, _ := compared(t, a, b)
	require.Equal(t, compare.NoDifference, metric(t, c, "store_bytes_in").Verdict)
	require.Equal(t, "B higher by 1.10%", metric(t, c, "store_bytes_out").Verdict)
}

func TestMake_RanksNobodyWithFewRuns(t *testing.T) {
	t.Parallel()
	for pairs, interval := range map[int]bool{1: false, 2: false, 3: true, 4: true} {
		a, b := sides(pairs, quiet())
		for i := range b.Runs {
			*b.Runs[i].CostPerSaga.AppCPUUS *= 2
		}
		c, v := compared(t, a, b)
		require.True(t, v.Valid)
		require.Contains(t, v.Warnings[0], "not ranked: too few runs: ")
		for _, m := range c.Metrics {
			if slices.Contains([]string{"store_calls", "store_bytes_written", compare.KeyBusiest}, m.Metric) {
				continue // these runs do not have them
			}
			require.Nil(t, m.Better)
			require.Equal(t, interval, m.Ratio.Low != nil)
			if interval {
				require.Equal(t, "not judged: too few pairs", m.Verdict)
			} else {
				require.Equal(t, "too few pairs for an interval", m.Verdict)
			}
		}
		require.InDelta(t, 2, metric(t, c, "app_cpu_us").Ratio.Value, 0.1)
	}
}

func TestMake_SaysWhatKeepsTheSidesFromBeingRanked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(a, b *compare.Side)
		valid bool
		want  string
	}{
		"mismatched durability": {func(_, b *compare.Side) {
			for i := range b.Runs {
				b.Runs[i].Run.Store.Durability = "D2"
			}
		}, true, "mismatched durability: A is D3, B is D2"},
		"unknown durability": {func(a, b *compare.Side) {
			for i := range b.Runs {
				a.Runs[i].Run.Store.Durability, b.Runs[i].Run.Store.Durability = "", ""
			}
		}, true, "mismatched durability: A is unknown, B is unknown"},
		"invalid": {func(_, b *compare.Side) {
			b.Runs[1].Validity = result.Validity{Because: []string{"3 sagas are lost", "it is incomplete"}}
		}, false, "run 2 of B (run-2) is not valid because 3 sagas are lost (and 1 more)"},
		"a setting changed": {func(a, _ *compare.Side) {
			a.Runs[4].Run.Store.Settings = map[string]string{"appendfsync": "everysec"}
		}, false, "the runs of A differ: setting appendfsync was always in the first and everysec in run 5"},
		"not interleaved": {func(a, b *compare.Side) {
			for i := range b.Runs {
				b.Runs[i].Run.Started = a.Runs[4].Run.Started.Add(time.Duration(i+1) * time.Minute)
			}
		}, true, "not interleaved: the runs of A and B were not made in pairs one after another, so a change of the machine may be the difference"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := sides(5, quiet())
			for i := range b.Runs {
				*b.Runs[i].CostPerSaga.AppCPUUS *= 2
			}
			test.spoil(&a, &b)
			c, v := compared(t, a, b)
			require.Equal(t, test.valid, v.Valid)
			if test.valid {
				require.Equal(t, "not ranked: "+test.want, v.Warnings[0])
			} else {
				require.Equal(t, []string{test.want}, v.Because)
			}
			for _, m := range c.Metrics {
				require.Nil(t, m.Better)
			}
			d := shown(c, v, nil, "bench compare a b")
			require.NoError(t, d.Check())
			require.Equal(t, "Not ranked: "+test.want, d.Headline)
			require.Equal(t, test.valid, d.Verdict == "")
		})
	}
}

func TestMake_ListsWhatElseDiffers(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	for i := range b.Runs {
		r := &b.Runs[i]
		r.Run.Store.Settings = map[string]string{"appendfsync": "always", "io-threads": "4"}
		r.Run.Scenario.Steps, r.Load.InFlight, r.Run.Commit = 3, 128, nil
		r.Environment.Cores = 4
	}
	c, v := compared(t, a, b)
	require.True(t, v.Valid)
	require.ElementsMatch(t, []compare.Difference{
		{Of: "setting", Name: "io-threads", A: "–", B: "4"},
		{Of: "scenario", Name: "steps", A: "2", B: "3"},
		{Of: "load", Name: "in flight", A: "64", B: "128"},
		{Of: "version", Name: "commit", A: "0f3a9c2", B: "–"},
		{Of: "machine", Name: "cores", A: "2", B: "4"},
	}, c.Differences)
	require.Equal(t, []string{
		"mismatched scenario: steps 2 and 3", "mismatched load: in flight 64 and 128", "mismatched machine: cores 2 and 4",
	}, v.Warnings)
	require.Contains(t, shown(c, v, nil, "").Lead, "Different, too: scenario steps; load in flight; version commit; 2 more.")
}

func TestMake_LeavesOutWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	for i := range a.Runs {
		a.Runs[i].CostPerSaga.StoreFsyncs = ptr(0.0)
		b.Runs[i].CostPerSaga.StoreFsyncs = ptr(0.0)
		b.Runs[i].CostPerSaga.StoreCPUUS = nil
		b.Runs[i].CostPerSaga.StoreRoundTrips = ptr(0.0)
		b.Runs[i].Load.OfferedPerS = ptr(20_000.0) // far from reached
	}
	a.Runs[2].LatencyMS.P999 = nil
	c, v := compared(t, a, b)
	for key, verdict := range map[string]string{
		"store_fsyncs": compare.NoDifference, "store_cpu_us": "not measured in every run",
		"store_round_trips": "no ratio: it was 0 in some runs", "p99_ms": "not measured in every run",
	} {
		m := metric(t, c, key)
		require.Equal(t, verdict, m.Verdict, key)
		require.Nil(t, m.Ratio, key)
	}
	require.Nil(t, metric(t, c, "store_cpu_us").B)
	require.NotNil(t, metric(t, c, "store_cpu_us").A)
	require.Nil(t, metric(t, c, "p999_ms").A)
	require.Contains(t, v.Warnings, "overloaded: 5 of the runs; their latencies are no service level and are not compared")

	require.NoError(t, shown(c, v, nil, "").Check())
	_, err := json.Marshal(c)
	require.NoError(t, err)
}

func TestMake_SaysADrift(t *testing.T) {
	t.Parallel()
	noise := quiet()
	a, b := sides(5, func(i int) func() float64 {
		draw := noise(i)
		return func() float64 { return draw() * (1 + 0.02*float64(i)) }
	})
	c, v := compared(t, a, b)
	require.True(t, v.Valid)
	require.True(t, slices.ContainsFunc(v.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "drift: app CPU per saga was higher by ")
	}), v.Warnings)
	require.Equal(t, compare.NoDifference, metric(t, c, "app_cpu_us").Verdict)
}

// Random arrivals offer another rate in each run: it is the profile that must be the same.
func TestMake_ComparesRandomArrivals(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	poisson := func(s *compare.Side, i, pair int) {
		l := &s.Runs[i].Load
		l.Mode, l.Profile, l.Arrival = result.Open, "500/s", "poisson"
		l.OfferedPerS, l.AchievedPerS = ptr(500+float64(7*pair)), 500+float64(7*pair)
		l.Seed = ptr(compare.Seed("20261122-120000-compare", pair))
	}
	var want []uint64
	for i := range a.Runs {
		poisson(&a, i, i+1)
		poisson(&b, i, i+1)
		want = append(want, *a.Runs[i].Load.Seed)
	}
	c, v := compared(t, a, b)
	require.True(t, v.Valid)
	require.Empty(t, c.NotRanked)
	require.Empty(t, c.Differences)
	require.Equal(t, want, c.Seeds)

	b.Runs[2].Load.Seed = ptr(uint64(1))
	c, _ = compared(t, a, b)
	require.Empty(t, c.NotRanked)
	require.Empty(t, c.Seeds)

	b.Runs[2].Load.Profile = "600/s"
	c, v = compared(t, a, b)
	require.False(t, v.Valid)
	require.Contains(t, c.NotRanked[0], "the runs of B differ: load profile was 500/s in the first and 600/s in run 3")
}

func TestMake_LeavesOutRunsWithoutACounterpart(t *testing.T) {
	t.Parallel()
	a, b := sides(6, quiet())
	b.Runs = b.Runs[:5]
	c, v := compared(t, a, b)
	require.Equal(t, 5, c.Pairs)
	require.Len(t, c.A.Runs, 5)
	require.Equal(t, []string{"unpaired: the last 1 of the runs of A have no counterpart and are left out"}, v.Warnings)

	b.Runs = nil
	_, _, err := compare.Make(a, b)
	require.ErrorIs(t, err, compare.ErrNothing)
	require.ErrorContains(t, err, "there is no run of B")
}

func TestComparison_KeysAreStable(t *testing.T) {
	t.Parallel()
	c, _ := compared(t, compare.Side{Name: "A", Runs: []result.Summary{run(0, one)}}, compare.Side{Name: "B", Runs: []result.Summary{run(1, one)}})
	c.Metrics = c.Metrics[:1]
	c.A.Store, c.B.Store = result.Store{}, result.Store{}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"a": {"name": "A", "command": "", "store": {"driver": "", "version": "", "settings": null, "durability": "", "retention_s": null}, "runs": ["run-0"]},
		"b": {"name": "B", "command": "", "store": {"driver": "", "version": "", "settings": null, "durability": "", "retention_s": null}, "runs": ["run-1"]},
		"pairs": 1,
		"seeds": [],
		"not_ranked": ["too few runs: 1 of each, 5 are needed"],
		"metrics": [{
			"metric": "achieved_per_s", "a": 11240, "b": 11240, "a_runs": [11240], "b_runs": [11240],
			"ratio": {"value": 1, "low": null, "high": null, "confidence": null},
			"effect_percent": 0, "verdict": "too few pairs for an interval", "better": null
		}],
		"differences": []
	}`, string(text))
}

func one() float64 { return 1 }

func TestDocument_OpensWithTheAnswer(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	c, v := compared(t, a, b)
	require.Equal(t, "No difference shown between A and B in 14 metrics", shown(c, v, nil, "").Headline)

	for i := range b.Runs {
		*b.Runs[i].CostPerSaga.AppCPUUS *= 1.5
	}
	c, v = compared(t, a, b)
	d := shown(c, v, []compare.GateResult{{Gate: "app_cpu_us<=+5%", Outcome: compare.Broken}}, "bench compare a b")
	require.NoError(t, d.Check())
	require.Regexp(t, `^B against A: app CPU per saga higher by (49|50)\.[0-9]%; app CPU divided by load CPU higher by (49|50)\.[0-9]%$`, d.Headline)
	require.Empty(t, d.Verdict)
	require.Equal(t, "Gates", d.Parts[0].Title)
	require.Equal(t, "bench compare a b", d.Command)
	pairs := d.Parts[4]
	require.Equal(t, "Pair by pair", pairs.Title)
	require.Len(t, pairs.Chart.Series, 2)
	require.Len(t, d.Parts[1].Table.Rows, 14)
	for _, r := range d.Parts[1].Table.Rows {
		require.Len(t, r.Cells, len(d.Parts[1].Table.Columns))
	}
}

// A host that is faster in one run than in the next changes the load generator's CPU as
// it does the app's: a tenth more shows in their ratio.
func TestCompare_FindsATenthOnAHostOfUnevenSpeed(t *testing.T) {
	t.Parallel()
	a, b := sides(8, quiet())
	uneven := []float64{1, 1.4, 0.8, 1.2, 0.9, 1.5, 1.1, 0.7, 1.3, 0.8, 1.2, 1, 1.4, 0.9, 0.7, 1.5}
	for i := range a.Runs {
		for k, runs := range [][]result.Summary{a.Runs, b.Runs} {
			speed := uneven[2*i+k]
			*runs[i].CostPerSaga.AppCPUUS *= speed * (1 + 0.1*float64(k))
			*runs[i].CostPerSaga.LoadCPUUS *= speed
		}
	}
	c, _ := compared(t, a, b)
	require.Equal(t, compare.NoDifference, metric(t, c, "app_cpu_us").Verdict)
	m := metric(t, c, "app_cpu_to_load")
	require.InDelta(t, 1.1, m.Ratio.Value, 0.03)
	require.Equal(t, c.A.Name, *m.Better)
}

func TestMake_ComparesOneServerWithTheBusiestMasterOfACluster(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	for i := range b.Runs {
		b.Runs[i].Run.Store.Settings = map[string]string{"appendfsync": "always", "masters": "3"}
		b.Runs[i].CostPerSaga.StoreBusiestCPUUS = ptr(*b.Runs[i].CostPerSaga.StoreCPUUS / 3)
	}
	c, _ := compared(t, a, b)
	m := metric(t, c, compare.KeyBusiest)
	require.InDelta(t, 9.9, *m.A, 0.5, "one server is its own busiest")
	require.InDelta(t, 1.0/3, m.Ratio.Value, 0.02)

	for i := range a.Runs {
		a.Runs[i].Run.Store.Settings = map[string]string{"appendfsync": "always", result.KeyReplica: "started with the server"}
	}
	c, _ = compared(t, a, b)
	require.Nil(t, metric(t, c, compare.KeyBusiest).A, "its CPU is that of two servers")

	a, b = sides(5, quiet())
	c, _ = compared(t, a, b)
	require.Nil(t, metric(t, c, compare.KeyBusiest).A, "there is no cluster")
}
