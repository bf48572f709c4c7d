package microbench

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/lua"
)

var update = flag.Bool("update", false, "write the golden files")

// sampled is a result with a little of everything.
func sampled() Result {
	one := func(x float64) Estimate { return Estimate{Median: x, Low: x, High: x, N: 9} }
	r := Result{
		Server:      Server{Version: "7.0.15", Settings: map[string]string{"io-threads": "1"}},
		Method:      Method{Rounds: 9, WindowMS: 12, DueIndexes: []int{10_000}},
		NotMeasured: []string{"settings: CONFIG: NOPERM"},
	}
	for i, script := range lua.All() {
		for _, sagas := range detailedBatches {
			for _, pipeline := range pipelines {
				s := base.with(sagas, pipeline)
				us := float64(10*(i+1)*sagas) / float64(pipeline)
				r.Prices = append(r.Prices, Price{
					Key: Key{Case: script.Name, Shape: s}, CPUUS: one(us), PerSagaUS: us / float64(sagas), CallsPerS: one(1e6 / us), BytesIn: 200, BytesOut: 4,
				})
			}
			own := one(1)
			r.Breakdowns = append(r.Breakdowns, Breakdown{
				Key: Key{Case: script.Name, Shape: base.batch(sagas)}, TotalUS: one(10 * float64(i+1)), CommandsUS: one(5), Costliest: "save.lua:33 SETNX",
				Parts: []Part{
					{Cause: CauseNetwork, US: one(2)},
					{Cause: CauseDispatch, US: one(1)},
					{Cause: CauseArguments, US: one(1)},
					{Cause: CauseLua, US: Estimate{Median: 2, Low: -0.5, High: 3, N: 9}},
					{Cause: CauseCommand, Command: "SETNX", US: one(5), Calls: 1, OwnUS: &own, Line: "save.lua:33"},
					{Cause: CauseRest, US: one(-1)},
				},
			})
		}
	}
	r.Ceilings = []Ceiling{
		{Steps: 2, Sagas: 1, SagaPrice: SagaPrice{Pipeline: 1, CPUUS: one(50), PerS: one(20_000), Calls: 3, BytesIn: 531, BytesOut: 12}},
		{Steps: 2, Sagas: 16, SagaPrice: SagaPrice{Pipeline: 16, CPUUS: one(8), PerS: one(125_000), Calls: 0.1875}},
	}
	r.Baselines = []Baseline{{SagaPrice: SagaPrice{Pipeline: 1, CPUUS: one(80), PerS: one(12_500), BytesIn: 5036, BytesOut: 32, Calls: 4}, Ratios: map[string]Estimate{"1": one(1.6)}}}
	return r
}

func TestText_OfTwoServersAndAComparison(t *testing.T) {
	t.Parallel()
	threads := sampled()
	threads.Server.Settings = map[string]string{"io-threads": "4"}
	threads.Breakdowns, threads.Baselines = nil, nil
	summary := func(servers ...Result) Summary {
		return Summary{Lua: Servers{servers}, Envelope: result.Envelope{
			Run:         result.Run{Command: "go run bench/main.go lua --start", Topology: "caller and Redis on one machine"},
			Validity:    result.Validity{Valid: true, Warnings: []string{"noise: much"}},
			Environment: result.Environment{CPU: "a computer", Cores: 2, Kernel: "linux", Go: "go"},
		}}
	}
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, summary(sampled(), threads).Document("here")))
	other := Result{Server: Server{Version: "7.0.15"}, Method: Method{Rounds: 9}, Comparisons: []Comparison{
		{Key: Key{Case: "save", Shape: base.batch(16)}, OursUS: Estimate{Median: 50}, OtherUS: Estimate{Median: 45}, Ratio: Estimate{Median: 0.9, Low: 0.88, High: 0.93, N: 9}, Verdict: Cheaper},
	}}
	compared := summary(other)
	compared.Validity.Valid, compared.Validity.Because = false, []string{"it is incomplete: interrupted"}
	require.NoError(t, document.Text(&out, compared.Document("here")))
	const golden = "testdata/report.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// Without an interval, a difference of two cases may be noise: no cause is named.
func TestDocument_OfFewRoundsNamesNoCause(t *testing.T) {
	t.Parallel()
	few := sampled()
	for i := range few.Breakdowns {
		few.Breakdowns[i].TotalUS.N = minRounds - 1
	}
	few.Ceilings[1].PerS.N = 5
	d := Summary{Envelope: result.Envelope{Validity: result.Validity{Valid: true}}, Lua: Servers{[]Result{few}}}.Document("here")
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, d))
	require.NotContains(t, out.String(), "by cause")
	require.NotContains(t, out.String(), "SETNX")
	require.Contains(t, d.Headline, "125,000 (5 rounds: too few for an interval) sagas/s")
}

func TestDocument_HasABarPerScript(t *testing.T) {
	t.Parallel()
	d := Summary{Envelope: result.Envelope{Validity: result.Validity{Valid: true}}, Lua: Servers{[]Result{sampled()}}}.Document("here")
	require.Empty(t, d.Verdict)
	var charts []document.Chart
	for _, p := range d.Parts {
		if p.Chart != nil {
			charts = append(append(charts, *p.Chart), p.More...)
		}
	}
	require.Len(t, charts, 2, "one saga a call, and many")
	for _, c := range charts {
		require.Equal(t, []string{"save", "update", "complete", "reschedule", "claim"}, c.Bars)
		require.Len(t, c.Series, len(causes))
		require.InDelta(t, 2, c.Series[0].Points[0].Y, 1e-9, CauseNetwork)
		require.Zero(t, c.Series[3].Points[0].Y, "it may cost nothing")
		require.Zero(t, c.Series[5].Points[0].Y, "a cause of less than nothing has no length")
	}
	require.NoError(t, d.Check())
}
