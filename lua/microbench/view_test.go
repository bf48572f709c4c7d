package microbench

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
				r.Prices = append(r.Prices, Price{Key: keyOf(o, whole, s), CPUUS: one(us), PerSagaUS: us / sagas, CallsPerS: one(1e6 / us), BytesIn: 200, BytesOut: 4})
			}
			own := 1.0
			r.Splits = append(r.Splits, Split{
				Key: keyOf(o, whole, base.of(sagas)), TotalUS: 10 * float64(i+1), Dearest: "save.lua:33 SETNX",
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
	require.NoError(t, Text(&out, Report{
		Results: []Result{sampled(), threads}, Valid: true, Warnings: []string{"noise: much"},
		Notes: []string{"machine", "a computer"}, Command: "go run bench/main.go lua --start",
	}))
	other := Result{Server: Server{Version: "7.0.15"}, Method: Method{Rounds: 9}, Comparisons: []Comparison{
		{Key: Key{Probe: "save", Shape: base.of(16)}, OursUS: Figure{Median: 50}, OtherUS: Figure{Median: 45}, Ratio: Figure{Median: 0.9, Low: 0.88, High: 0.93, N: 9}, Verdict: Cheaper},
	}}
	require.NoError(t, Text(&out, Report{Results: []Result{other}}))
	const golden = "testdata/report.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func TestPage_HasABarPerScriptSplitByCause(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, Page(&out, Report{Results: []Result{sampled()}, Valid: true, Warnings: []string{"<script>"}, Notes: []string{"machine", "a computer"}}))
	page := out.String()
	require.Equal(t, 2, strings.Count(page, "<svg"), "one saga a call, and many")
	require.Equal(t, 10, strings.Count(page, `text-anchor="end"`))
	require.Equal(t, 10*5, strings.Count(page, "<rect"), "a cause of less than nothing has no length")
	require.Contains(t, page, "<title>lua 2.00 µs</title>")
	require.Contains(t, page, "&lt;script&gt;")
	require.NotContains(t, page, "http", "it needs no network")
	require.NotContains(t, page, "NOT VALID")
	out.Reset()
	require.NoError(t, Page(&out, Report{}))
	require.Contains(t, out.String(), "NOT VALID")
}

func TestNumber_HasThreeDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 0.001: "0", 0.123: "0.12", -1.5: "-1.50", 9.994: "9.99", 12.34: "12.3", 99.96: "100", 999.6: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123",
	} {
		require.Equal(t, want, number(x), x)
	}
}
