package microbench

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/document"
)

var update = flag.Bool("update", false, "write the golden files")

// sampled is a result with a little of everything.
func sampled() Result {
	one := func(x float64) Figure { return Figure{Median: x, Low: x, High: x, N: 9} }
	r := Result{
		Server: Server{Version: "7.0.15", Settings: map[string]string{"io-threads": "1"}},
		Method: Method{Rounds: 9, WindowMS: 12, Due: []int{10_000}},
		Agreements: []Agreement{{
			SagasPerCall: 12, CallsAtOnce: 2.1, EveryUS: 640, RunUS: 11.5, PacedUS: 11, BackToBackUS: 8, Ratio: 0.957,
			AchievedPerS: 20_000, CeilingPerS: 125_000, Share: 0.16,
		}},
		NotMeasured: []string{"FCALL: Redis 6.2 has no functions"},
	}
	kept := 5.0
	r.Records = []Record{{Pattern: patternOurs, Steps: 2, UnfinishedBytes: 231, FinishedBytes: 209, Kept: &kept}, {Pattern: patternClassic, Steps: 2, FinishedBytes: 1872}}
	for i, o := range operations(ours()) {
		for _, sagas := range splitBatches {
			for _, pipeline := range pipelines {
				s := base.of(sagas)
				s.Pipeline = pipeline
				us := float64(10*(i+1)) * sagas / pipeline
				r.Prices = append(r.Prices, Price{Key: o.key(whole, s), CPUUS: one(us), PerSagaUS: us / sagas, CallsPerS: one(1e6 / us), BytesIn: 200, BytesOut: 4})
			}
			own := 1.0
			r.Splits = append(r.Splits, Split{
				Key: o.key(whole, base.of(sagas)), TotalUS: 10 * float64(i+1), Dearest: "save.lua:33 SETNX",
				Parts: []Part{
					{Cause: CauseNetwork, US: 2},
					{Cause: CauseDispatch, US: 1},
					{Cause: CauseArguments, US: 1},
					{Cause: CauseLua, US: 2},
					{Cause: CauseCommand, Command: "SETNX", US: 5, Calls: 1, OwnUS: &own, Place: "save.lua:33"},
					{Cause: CauseRest, US: -1},
				},
			})
		}
	}
	r.Ceilings = []Ceiling{{Steps: 2, Sagas: 1, Pipeline: 1, CPUUS: 50, PerS: 20_000, Calls: 3, BytesIn: 531, BytesOut: 12}, {Steps: 2, Sagas: 16, Pipeline: 16, CPUUS: 8, PerS: 125_000, Calls: 0.1875}}
	r.Classic = []Classic{{Pipeline: 1, CPUUS: 80, PerS: 12_500, BytesIn: 5036, BytesOut: 32, Calls: 4, Ratios: map[string]float64{"1": 1.6}}}
	return r
}

func TestText_OfTwoServersAndAComparison(t *testing.T) {
	t.Parallel()
	threads := Result{
		Server: Server{Version: "7.0.15", Settings: map[string]string{"io-threads": "4"}}, Method: Method{Brief: true},
		Ceilings: []Ceiling{{Steps: 2, Sagas: 1, Pipeline: 1, CPUUS: 40, PerS: 25_000}},
	}
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, Report{
		Results: []Result{sampled(), threads}, Valid: true, Warnings: []string{"noise: much"},
		Notes: []document.Fact{{Name: "machine", Value: "a computer"}}, Command: "go run bench/main.go lua --start",
	}.Document()))
	other := Result{Server: Server{Version: "7.0.15"}, Method: Method{Rounds: 9}, Comparisons: []Comparison{
		{Key: Key{Probe: "save", Shape: base.of(16)}, OursUS: Figure{Median: 50}, OtherUS: Figure{Median: 45}, Ratio: Figure{Median: 0.9, Low: 0.88, High: 0.93, N: 9}, Verdict: Cheaper},
	}}
	require.NoError(t, document.Text(&out, Report{Results: []Result{other}}.Document()))
	const golden = "testdata/report.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func TestDocument_HasABarPerScriptSplitByCause(t *testing.T) {
	t.Parallel()
	d := Report{Results: []Result{sampled()}, Valid: true}.Document()
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
		require.InDelta(t, 2, c.Series[3].Points[0].Y, 1e-9, CauseLua)
		require.Zero(t, c.Series[5].Points[0].Y, "a cause of less than nothing has no length")
	}
	require.NoError(t, d.Check())
	require.Contains(t, Report{}.Document().Verdict, "NOT VALID")
}
