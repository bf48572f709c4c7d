package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/document"
	"sagabench/internal/format"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ptr[T any](x T) *T { return &x }

var began = time.Date(2026, 11, 21, 8, 35, 42, 0, time.UTC)

// closedRun is a good run over the embedded store.
func closedRun() Summary {
	latency := Latency{
		P50: ptr(5.43), P90: ptr(7.61), P95: ptr(8.4), P99: ptr(9.83),
		P999: ptr(14.2), P9999: ptr(31.0), Max: ptr(40.7), Mean: ptr(5.69),
	}
	return Summary{
		Schema: Schema,
		Run: Run{
			ID: RunID(began, "pebble"), Started: began, DurationS: 10.0057,
			Command: "bench run pebble --in-flight 64 --duration 10s",
			Store: Store{
				Driver: "pebble", Version: "2.1.7", Durability: "D3",
				Settings: map[string]string{"sync": "true", "cache": "64 MiB"},
			},
			Scenario: Scenario{Steps: 2, Branches: "empty"},
			Topology: "load, app and embedded store on one machine", SharedHost: true,
			Commit: ptr("0f3a9c2"),
		},
		Load: Load{
			Mode: Closed, InFlight: 64, AchievedPerS: 11240.3, Requests: 112467,
			ErrorsByKind: map[string]int64{},
		},
		LatencyMS: latency,
		ServiceMS: latency,
		CostPerSaga: Cost{
			AppCPUUS: ptr(41.27), LoadCPUUS: ptr(15.9),
			StoreRoundTrips: ptr(0.0412), StoreFsyncs: ptr(0.0412),
		},
		Check: Check{
			Acknowledged: 134_900, Terminal: ptr[int64](134_900), Lost: ptr[int64](0),
			BothOutcomes: ptr[int64](0), Uncompensated: ptr[int64](0), Unfinished: ptr[int64](0),
		},
		Validity: Validity{Valid: true, Warnings: []string{"shared host: relative only"}},
		Environment: Environment{
			CPU: "Example CPU @ 2.80GHz", Cores: 2, Memory: 8 << 30, Kernel: "linux 6.1.0", Go: "go1.26.8",
			Governor: ptr("performance"), Versions: map[string]string{"vegeta": "v12.13.0", "pebble": "v2.1.7"},
		},
	}
}

// openRun is an overloaded run over Redis with errors and lost sagas.
func openRun() Summary {
	s := closedRun()
	s.Run.ID = RunID(began, "redis")
	s.Run.Command = "bench run redis --rate 9000/s --duration 10s --fail 0.05"
	s.Run.Store = Store{Driver: "redis", Version: "7.0.15", Durability: "D2", Settings: map[string]string{"appendfsync": "everysec"}}
	s.Run.Scenario = Scenario{Steps: 2, Branches: "http", Payload: 1500, Fail: 0.05}
	s.Run.Commit = nil
	s.Load = Load{
		Mode: Open, InFlight: 1000, OfferedPerS: ptr(9000.0), AchievedPerS: 7012.44, Requests: 71_003, Errors: 412,
		ErrorsByKind: map[string]int64{"timeout": 12, "http 500": 400}, Late: ptr[int64](60_211), Dropped: ptr[int64](18_997),
	}
	s.LatencyMS = Latency{P50: ptr(812.0), P99: ptr(2011.0), Max: ptr(2120.7), Mean: ptr(801.25)}
	s.CostPerSaga.StoreCPUUS = ptr(9.87)
	s.CostPerSaga.StoreBytesIn = ptr(441.2)
	s.CostPerSaga.StoreBytesOut = ptr(33.04)
	s.CostPerSaga.StoreMemoryBytes = ptr(246.9)
	s.CostPerSaga.StoreCalls = ptr(3.0)
	s.CostPerSaga.StoreFsyncs = nil
	s.Check.Lost = ptr[int64](3)
	s.Validity = Validity{Warnings: []string{"broken promise: 3 of 134,900 acknowledged sagas lost", "errors: 412 of 71,003 requests"}}
	s.Environment.Governor = nil
	return s
}

// unaudited is a short run against a server whose store is out of reach.
func unaudited() Summary {
	s := closedRun()
	s.Load = Load{Mode: Closed, InFlight: 1, AchievedPerS: 31.5, Requests: 63}
	s.LatencyMS = Latency{P50: ptr(31.0), Max: ptr(40.7), Mean: ptr(31.7)}
	s.ServiceMS = s.LatencyMS
	s.Check = Check{Acknowledged: 1}
	s.CostPerSaga = Cost{LoadCPUUS: ptr(0.00012)}
	s.Run.Store = Store{Driver: "unknown"}
	s.Validity = Validity{Valid: true}
	return s
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	wanted, lines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(wanted), len(lines)) {
		require.Equal(t, wanted[i], lines[i], "%s:%d; run with -update if this is meant", path, i+1)
	}
	require.Len(t, lines, len(wanted), path)
}

func TestText_Golden(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Summary{"closed": closedRun(), "open": openRun(), "unaudited": unaudited()} {
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, runDocument(s, Recording{}, "results/"+s.Run.ID)))
		golden(t, name+".txt", out.Bytes())
	}
}

func TestSummary_JSONGolden(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Summary{"closed": closedRun(), "open": openRun(), "unaudited": unaudited()} {
		var out bytes.Buffer
		require.NoError(t, Encode(&out, s))
		golden(t, name+".json", out.Bytes())
	}
}

func TestSummary_JSONUnknownIsNullAndKeyIsThere(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, Encode(&out, Summary{}))
	var got map[string]map[string]any
	text := strings.Replace(strings.Replace(out.String(), `"schema": 0,`, "", 1), `"timeline": [],`, "", 1)
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	keys := map[string]string{
		"latency_ms":    "p50 p90 p95 p99 p999 p9999 max mean",
		"service_ms":    "p50 p90 p95 p99 p999 p9999 max mean",
		"cost_per_saga": "store_cpu_us app_cpu_us load_cpu_us store_bytes_in store_bytes_out store_memory_bytes store_calls store_round_trips store_fsyncs",
		"check":         "terminal lost both_outcomes uncompensated unfinished",
		"load":          "offered_per_s late dropped",
		"run":           "commit",
		"environment":   "governor",
		"resources":     "load_cores app_cores store_cores store_fsyncs_per_s host_busy network_share",
	}
	for part, names := range keys {
		for name := range strings.FieldsSeq(names) {
			value, there := got[part][name]
			require.True(t, there, "%s.%s", part, name)
			require.Nil(t, value, "%s.%s", part, name)
		}
	}
}

func TestDocument_Golden(t *testing.T) {
	t.Parallel()
	rec, err := ReadHistogramLog(strings.NewReader(sampleLog(t)))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, document.Markdown(&out, runDocument(timed(openRun()), rec, "")))
	golden(t, "open.md", out.Bytes())
}

func TestDocument_HasTheChartsOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	rec, err := ReadHistogramLog(strings.NewReader(sampleLog(t)))
	require.NoError(t, err)
	page := func(s Summary, rec Recording) string {
		var out bytes.Buffer
		require.NoError(t, document.HTML(&out, runDocument(s, rec, "")))
		return out.String()
	}
	all := page(timed(openRun()), rec)
	require.Equal(t, 6, strings.Count(all, "<svg"), "percentiles, rate, latency, cores, batch, cost")
	require.True(t, strings.Contains(all, "p99: from the due time 5.88 ms, from the send 2.94 ms"))
	require.Equal(t, 4, strings.Count(page(openRun(), rec), "<svg"), "without a timeline there is that of the histogram log")
	require.Equal(t, 1, strings.Count(page(closedRun(), Recording{}), "<svg"), "the cost")
	nothing := openRun()
	nothing.CostPerSaga = Cost{}
	require.Zero(t, strings.Count(page(nothing, Recording{}), "<svg"))
}

// timed adds a timeline.
func timed(s Summary) Summary {
	for i := range 15 {
		at := float64(i + 1)
		s.Timeline = append(s.Timeline, Moment{
			AtS: at, SagasPerS: ptr(7000 + 10*at), P50MS: ptr(80 * at), P99MS: ptr(200 * at),
			LoadCores: ptr(0.2), AppCores: ptr(0.5), StoreCores: ptr(0.1), AppMemoryBytes: ptr(int64(40 << 20)),
		})
	}
	s.Timeline[4].Batch, s.Timeline[9].Batch = ptr(12.5), ptr(13.0)
	return s
}

func TestTimelineOf_PutsTheNearestTogether(t *testing.T) {
	t.Parallel()
	list := intervals(2000, 999, 0)
	list[0].P50, list[0].P99 = 5*time.Millisecond, 9*time.Millisecond
	list = append(list, Interval{Start: began.Add(3 * time.Second), Length: 20 * time.Millisecond, Acknowledged: 1})
	took := []Moment{{AtS: 1.1, AppCores: ptr(0.5)}, {AtS: 2.6, AppCores: ptr(0.7)}, {AtS: 2.9, AppCores: ptr(0.6)}}
	got := TimelineOf(list, took)
	require.Equal(t, []Moment{
		{AtS: 1, SagasPerS: ptr(2000.0), P50MS: ptr(5.0), P99MS: ptr(9.0), AppCores: ptr(0.5)},
		{AtS: 2, SagasPerS: ptr(999.0), P50MS: ptr(0.0)},
		{AtS: 3, SagasPerS: ptr(0.0), AppCores: ptr(0.6)},
	}, got)
	require.Equal(t, took, TimelineOf(nil, took))
	require.Empty(t, TimelineOf(nil, nil))
}

// sampleLog is the log of three seconds, with service times.
func sampleLog(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	log, err := NewHistogramLog(&text, began)
	require.NoError(t, err)
	service := NewHistogram()
	for second := range 3 {
		h := NewHistogram()
		for i := range int64(1000 * (second + 1)) {
			require.NoError(t, h.RecordValue(2*i+1))
			require.NoError(t, service.RecordValue(i+1))
		}
		start := began.Add(time.Duration(second) * time.Second)
		require.NoError(t, log.Interval(h, start, start.Add(time.Second)))
	}
	require.NoError(t, log.Service(service, began, began.Add(3*time.Second)))
	return text.String()
}

func TestHistogramLog_ReadsBackAndMerges(t *testing.T) {
	t.Parallel()
	one := sampleLog(t)
	rec, err := ReadHistogramLog(strings.NewReader(one + one))
	require.NoError(t, err)
	require.EqualValues(t, 12_000, rec.Latency.TotalCount())
	require.EqualValues(t, 12_000, rec.Service.TotalCount())
	require.InDelta(t, 2*3000, rec.Latency.Max(), 8)
	require.InDelta(t, 3000, rec.Service.Max(), 4)
	require.Len(t, rec.Intervals, 6)
	second := rec.Intervals[1]
	require.Equal(t, began.Add(time.Second), second.Start.UTC())
	require.EqualValues(t, 2000, second.PerS())
	require.InDelta(t, 3960, float64(second.P99.Microseconds()), 4)
}

func TestWrite_ReadGivesItBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "result")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileHistogramLog), []byte(sampleLog(t)), 0o644))
	require.NoError(t, Write(dir, openRun()))

	s, rec, err := Read(dir)
	require.NoError(t, err)
	want := openRun()
	want.Timeline = []Moment{}
	require.Equal(t, want, s)
	require.EqualValues(t, 6000, rec.Latency.TotalCount())

	percentiles, err := os.ReadFile(filepath.Join(dir, FilePercentiles))
	require.NoError(t, err)
	require.Contains(t, string(percentiles), "#[Max     =        5.9", "milliseconds")
	page, err := os.ReadFile(filepath.Join(dir, FilePage))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(page), "<svg"))
	require.FileExists(t, filepath.Join(dir, FileMarkdown))
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRead_RefusesAnotherSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := closedRun()
	s.Schema = 2
	require.NoError(t, Write(dir, s))
	_, _, err := Read(dir)
	require.ErrorContains(t, err, "schema 2")
}

func TestLatencyOf_NoPercentileWithoutTenSamplesBeyond(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	require.Equal(t, Latency{}, LatencyOf(h))
	record := func(upTo int64) Latency {
		for h.TotalCount() < upTo {
			require.NoError(t, h.RecordValue(1000))
		}
		return LatencyOf(h)
	}
	require.Nil(t, record(19).P50)
	require.NotNil(t, record(20).P50)
	require.Nil(t, record(999).P99)
	require.NotNil(t, record(1000).P99)
	require.Nil(t, record(1000).P999)
	require.NotNil(t, record(10_000).P999)
	require.Nil(t, record(99_999).P9999)
	require.NotNil(t, record(100_000).P9999)
	require.InDelta(t, 1, *LatencyOf(h).P99, 0.001)
	require.InDelta(t, 1, *LatencyOf(h).Max, 0.001)
}

func TestNumber_IsShort(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 0.00012: "0.00012", 0.0412: "0.041", 0.9994: "0.999", 0.9996: "1.00", 9.83: "9.83",
		9.996: "10.0", 41.27: "41.3", 99.96: "100", 999.6: "1,000", 11240.3: "11,240", 1234567: "1,234,567", -1234: "-1,234",
	} {
		require.Equal(t, want, format.Number(x))
	}
	require.Equal(t, "8.00 GiB", format.Bytes(8<<30))
	require.Equal(t, "512 B", format.Bytes(512))
}

func TestText_OfAnUnknownStore_SaysSo(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	require.NoError(t, document.Text(&text, runDocument(Summary{}, Recording{}, "dir")))
	require.Contains(t, text.String(), "sagas/s on an unknown store")
	require.Regexp(t, `(?m)^  store +unknown$`, text.String())
}
