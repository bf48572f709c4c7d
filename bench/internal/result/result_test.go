package result_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
)

func TestSummary_JSONGolden(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]result.Summary{"closed": resulttest.ClosedRun(), "open": resulttest.OpenRun(), "unaudited": resulttest.Unaudited()} {
		var out bytes.Buffer
		require.NoError(t, result.Encode(&out, s))
		resulttest.Golden(t, name+".json", out.Bytes())
	}
}

func TestSummary_JSONUnknownIsNullAndKeyIsThere(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, result.Encode(&out, result.Summary{}))
	var got map[string]map[string]any
	text := strings.NewReplacer(`"schema": 0,`, "", `"kind": "",`, "", ",\n  \"timeline\": []", "").Replace(out.String())
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	keys := map[string]string{
		"latency_ms":    "p50 p90 p95 p99 p999 p9999 max mean",
		"service_ms":    "p50 p90 p95 p99 p999 p9999 max mean",
		"cost_per_saga": "store_cpu_us app_cpu_us load_cpu_us store_bytes_in store_bytes_out store_memory_bytes store_calls store_round_trips store_fsyncs",
		"check":         "terminal lost both_outcomes uncompensated unfinished",
		"load":          "offered_per_s lateness_ms delayed dropped unanswered_start unanswered_end",
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

func TestTimelineOf_PutsTheNearestTogether(t *testing.T) {
	t.Parallel()
	list := resulttest.Intervals(2000, 999, 0)
	list[0].P50, list[0].P99 = 5*time.Millisecond, 9*time.Millisecond
	list = append(list, result.Interval{Start: resulttest.Began.Add(3 * time.Second), Length: 20 * time.Millisecond, Acknowledged: 1})
	took := []result.Sample{{AtS: 1.1, AppCores: resulttest.Ptr(0.5)}, {AtS: 2.6, AppCores: resulttest.Ptr(0.7)}, {AtS: 2.9, AppCores: resulttest.Ptr(0.6)}}
	got := result.TimelineOf(list, took)
	require.Equal(t, []result.Sample{
		{AtS: 1, SagasPerS: resulttest.Ptr(2000.0), P50MS: resulttest.Ptr(5.0), P99MS: resulttest.Ptr(9.0), AppCores: resulttest.Ptr(0.5)},
		{AtS: 2, SagasPerS: resulttest.Ptr(999.0), P50MS: resulttest.Ptr(0.0)},
		{AtS: 3, SagasPerS: resulttest.Ptr(0.0), AppCores: resulttest.Ptr(0.6)},
	}, got)
	list[1].Errors = 3
	got = result.TimelineOf(list, took)
	require.Equal(t, []*float64{resulttest.Ptr(0.0), resulttest.Ptr(3.0), resulttest.Ptr(0.0)}, []*float64{got[0].ErrorsPerS, got[1].ErrorsPerS, got[2].ErrorsPerS})
	require.Equal(t, took, result.TimelineOf(nil, took))
	require.Empty(t, result.TimelineOf(nil, nil))
}

func TestHistogramLog_ReadsBackAndMerges(t *testing.T) {
	t.Parallel()
	one := resulttest.SampleLog(t)
	rec, err := result.ReadHistogramLog(strings.NewReader(one + one))
	require.NoError(t, err)
	require.EqualValues(t, 12_000, rec.Latency.TotalCount())
	require.EqualValues(t, 12_000, rec.Service.TotalCount())
	require.InDelta(t, 2*3000, rec.Latency.Max(), 8)
	require.InDelta(t, 3000, rec.Service.Max(), 4)
	require.Len(t, rec.Intervals, 6)
	second := rec.Intervals[1]
	require.Equal(t, resulttest.Began.Add(time.Second), second.Start.UTC())
	require.EqualValues(t, 2000, second.PerS())
	require.InDelta(t, 3960, float64(second.P99.Microseconds()), 4)
}

func TestRead_RefusesAnotherSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := resulttest.ClosedRun()
	s.Schema = 1
	_, err := result.Write(dir, s)
	require.NoError(t, err)
	_, _, err = result.Read(dir)
	require.ErrorContains(t, err, "it has schema 1 of an older version, and this program reads 2: measure again")
}

func TestLatencyOf_NoPercentileWithoutTenSamplesBeyond(t *testing.T) {
	t.Parallel()
	h := result.NewHistogram()
	require.Equal(t, result.Latency{}, result.LatencyOf(h))
	record := func(upTo int64) result.Latency {
		for h.TotalCount() < upTo {
			require.NoError(t, h.RecordValue(1000))
		}
		return result.LatencyOf(h)
	}
	require.Nil(t, record(19).P50)
	require.NotNil(t, record(20).P50)
	require.Nil(t, record(999).P99)
	require.NotNil(t, record(1000).P99)
	require.Nil(t, record(1000).P999)
	require.NotNil(t, record(10_000).P999)
	require.Nil(t, record(99_999).P9999)
	require.NotNil(t, record(100_000).P9999)
	require.InDelta(t, 1, *result.LatencyOf(h).P99, 0.001)
	require.InDelta(t, 1, *result.LatencyOf(h).Max, 0.001)
}

func TestReadResult_SaysWhatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := result.ReadResult(dir)
	require.ErrorIs(t, err, result.ErrNoResult)
	require.ErrorIs(t, err, os.ErrNotExist)
	for content, want := range map[string]string{
		`{"schema": 2, "lua": {}}`:  result.ErrNoResult.Error(),
		`{"schema": 1, "load": {}}`: "it has schema 1 of an older version, and this program reads 2: measure again",
		`{"schema": 3, "load": {}}`: "it has schema 3 of a newer version, and this program reads 2",
		`{`:                         "unexpected end",
		`{"schema": 2, "load": 7}`:  "cannot unmarshal",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, result.FileSummary), []byte(content), 0o644))
		_, err := result.ReadResult(dir)
		require.ErrorContains(t, err, want)
	}
}

// A result may come from another host.
func TestReadResult_RefusesWhatNeverEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, result.FileSummary)
	require.NoError(t, os.Symlink(os.DevNull, path))
	_, err := result.ReadResult(dir)
	require.ErrorContains(t, err, path+": not a regular file")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40)) // without blocks
	_, err = result.ReadResult(dir)
	require.ErrorContains(t, err, "must be at most")
}

func TestClaimDir_OneRunOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, result.ClaimDir(dir))
	require.ErrorContains(t, result.ClaimDir(dir), "not empty")
	require.NoError(t, result.WriteSummary(dir, result.Summary{}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "the claim became the summary")
}

// A hold replaces short steps at its rate. What was not valid, or not followed, has no
// latency.
func TestCapacity_LatencyByRate(t *testing.T) {
	t.Parallel()
	step := func(rate, p99 float64, hold bool) result.Step {
		return result.Step{RatePerS: rate, Hold: hold, Validity: result.Validity{Valid: true}, Measurement: result.Measurement{LatencyMS: result.Latency{P99: &p99}}}
	}
	invalid, overloaded := step(300, 7, false), step(2000, 900, false)
	invalid.Validity.Valid = false
	overloaded.Load = result.Load{OfferedPerS: &overloaded.RatePerS, AchievedPerS: 1000, Requests: 1000}
	c := result.Capacity{Steps: []result.Step{step(1000, 8, true), step(1020, 12, false), step(500, 5, false), step(990, 9, true), invalid, overloaded, {RatePerS: 100, Validity: result.Validity{Valid: true}}}}
	require.Equal(t, []result.RatePoint{{RatePerS: 500, P99MS: 5}, {RatePerS: 990, P99MS: 9}, {RatePerS: 1000, P99MS: 8}}, c.LatencyByRate())
}
