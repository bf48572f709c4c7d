package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/internal/document"
)

// A run fits a terminal of 24 lines.
func TestBrief_FitsOneScreen(t *testing.T) {
	t.Parallel()
	searches := capacityRun(t)
	severalSearches(&searches.Capacity)
	for name, d := range map[string]document.Document{
		"run-brief.txt":      runDocument(resulttest.Timed(resulttest.OpenRun()), result.Recording{}, ""),
		"capacity-brief.txt": capacityDocument(searches, ""),
	} {
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, d.Brief("sagabench-results/20261003-120000-redis")))
		resulttest.Golden(t, name, out.Bytes())
		require.LessOrEqual(t, strings.Count(out.String(), "\n"), 24, name)
	}
}

func TestText_Golden(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]result.Summary{"closed": resulttest.ClosedRun(), "open": resulttest.OpenRun(), "unaudited": resulttest.Unaudited()} {
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, runDocument(s, result.Recording{}, "results/"+s.Run.ID)))
		resulttest.Golden(t, name+".txt", out.Bytes())
	}
}

func TestDocument_Golden(t *testing.T) {
	t.Parallel()
	rec, err := result.ReadHistogramLog(strings.NewReader(resulttest.SampleLog(t)))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, document.Markdown(&out, runDocument(resulttest.Timed(resulttest.OpenRun()), rec, "")))
	resulttest.Golden(t, "open.md", out.Bytes())
}

func TestDocument_HasTheChartsOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	rec, err := result.ReadHistogramLog(strings.NewReader(resulttest.SampleLog(t)))
	require.NoError(t, err)
	page := func(s result.Summary, rec result.Recording) string {
		var out bytes.Buffer
		require.NoError(t, document.HTML(&out, runDocument(s, rec, "")))
		return out.String()
	}
	all := page(resulttest.Timed(resulttest.OpenRun()), rec)
	require.Equal(t, 7, strings.Count(all, "<svg"), "percentiles, rate, errors, latency, cores, batch, cost")
	require.True(t, strings.Contains(all, "p99: from the due time 5.88 ms, from the send 2.94 ms"))
	require.Equal(t, 4, strings.Count(page(resulttest.OpenRun(), rec), "<svg"), "without a timeline there is that of the histogram log")
	require.Equal(t, 1, strings.Count(page(resulttest.ClosedRun(), result.Recording{}), "<svg"), "the cost")
	nothing := resulttest.OpenRun()
	nothing.CostPerSaga = result.Cost{}
	require.Zero(t, strings.Count(page(nothing, result.Recording{}), "<svg"))
}

func TestWrite_ReadGivesItBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "result")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.FileHistogramLog), []byte(resulttest.SampleLog(t)), 0o644))
	require.NoError(t, WriteRun(dir, resulttest.OpenRun()))

	s, rec, err := result.Read(dir)
	require.NoError(t, err)
	want := resulttest.OpenRun()
	want.Timeline = []result.Sample{}
	require.Equal(t, want, s)
	require.EqualValues(t, 6000, rec.Latency.TotalCount())

	percentiles, err := os.ReadFile(filepath.Join(dir, result.FilePercentiles))
	require.NoError(t, err)
	require.Contains(t, string(percentiles), "#[Max     =        5.9", "milliseconds")
	page, err := os.ReadFile(filepath.Join(dir, result.FilePage))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(page), "<svg"))
	require.FileExists(t, filepath.Join(dir, result.FileMarkdown))
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestText_OfAnUnknownStore_SaysSo(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	require.NoError(t, document.Text(&text, runDocument(result.Summary{}, result.Recording{}, "dir")))
	require.Contains(t, text.String(), "sagas/s on an unknown store")
	require.Regexp(t, `(?m)^  store +unknown$`, text.String())
}

func TestAuditResult_CountsOnlyWhatWasAudited(t *testing.T) {
	t.Parallel()
	none := resulttest.Ptr(int64(0))
	for want, c := range map[string]result.Check{
		"9 sagas acknowledged, warm-up included; none lost":                                       {Acknowledged: 9, Lost: none},
		"9 sagas acknowledged, warm-up included; none lost of the 2 within the store's retention": {Acknowledged: 9, Lost: none, Expired: 7},
		"9 sagas acknowledged, warm-up included; 1 LOST":                                          {Acknowledged: 9, Lost: resulttest.Ptr(int64(1)), Expired: 7},
	} {
		require.Equal(t, want, auditResult(c))
	}
}

// unwrapped is the text without line breaks.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }
