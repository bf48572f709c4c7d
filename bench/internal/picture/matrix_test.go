package picture

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

// tableOf has all combinations of the axes. figures returns those of a variant.
func tableOf(measure, compare string, metrics []string, figures func(names []string) map[string]float64, axes ...result.MatrixAxis) result.MatrixTable {
	t := result.MatrixTable{Title: "Table", Measure: measure, Compare: compare, Axes: axes}
	for _, key := range metrics {
		t.Metrics = append(t.Metrics, result.MatrixMetric{Key: key, Label: key, Unit: "u"})
	}
	names := [][]string{nil}
	for _, a := range axes {
		var next [][]string
		for _, n := range names {
			for _, value := range a.Values {
				next = append(next, append(slices.Clone(n), value))
			}
		}
		names = next
	}
	for _, n := range names {
		v := result.MatrixVariant{Names: n, Store: result.Store{Durability: "D3"}, Figures: map[string]result.MatrixFigure{}}
		for key, x := range figures(n) {
			v.Figures[key] = result.MatrixFigure{Median: x, Low: x - 1, High: x + 2}
		}
		t.Variants = append(t.Variants, v)
	}
	return t
}

// charts returns the charts of the only part with this title.
func charts(t *testing.T, parts []document.Part, title string) []document.Chart {
	t.Helper()
	for _, p := range parts {
		if p.Title == title {
			require.Empty(t, p.Table.Rows, "the tables have the numbers")
			return append([]document.Chart{*p.Chart}, p.More...)
		}
	}
	require.Fail(t, "no part", title)
	return nil
}

func TestMatrix_OfAFewVariants(t *testing.T) {
	t.Parallel()
	stores := result.MatrixAxis{Name: "store", Values: []string{"pebble", "redis"}}
	table := tableOf("saga", "store", []string{"achieved_per_s", "p99_ms", "store_cpu_us", "app_cpu_us"}, func(names []string) map[string]float64 {
		if names[0] == "pebble" {
			return map[string]float64{"achieved_per_s": 100, "p99_ms": 5, "app_cpu_us": 40}
		}
		return map[string]float64{"achieved_per_s": 90, "store_cpu_us": 10, "app_cpu_us": 30}
	}, stores, result.MatrixAxis{Name: "steps", Values: []string{"2"}})
	parts := Matrix(table)
	rate := charts(t, parts, "Table: achieved_per_s")[0]
	require.Equal(t, []string{"pebble", "redis"}, rate.Bars, "what all have in common is left out")
	require.Equal(t, []document.Point{{Y: 100, Low: 99, High: 102}, {Y: 90, Low: 89, High: 92}}, rate.Series[0].Points)
	require.True(t, charts(t, parts, "Table: p99_ms")[0].Series[0].Points[1].Missing)
	cpu := charts(t, parts, "Table: CPU")[0]
	require.Len(t, cpu.Series, 2)
	require.Equal(t, "CPU in µs; sum of the medians: pebble 40.0, redis 40.0.", cpu.Summary)

	table.Set = map[string]string{"rate": "100/s"}
	require.Len(t, Matrix(table), 2, "all have the rate that was asked for")
}

func TestMatrix_OfSearches(t *testing.T) {
	t.Parallel()
	table := tableOf("capacity", "store", []string{"held_per_s"}, func([]string) map[string]float64 { return map[string]float64{"held_per_s": 900} },
		result.MatrixAxis{Name: "store", Values: []string{"redis", "mysql"}})
	table.Set = map[string]string{"slo": "p99=20ms,p50=5ms"}
	table.Variants[0].Curve = []result.RatePoint{{RatePerS: 100, P99MS: 3}, {RatePerS: 101, P99MS: 9}, {RatePerS: 102, P99MS: 4}, {RatePerS: 900, P99MS: 19}}
	curves := charts(t, Matrix(table), "Table: latency over the rate")[0]
	require.Len(t, curves.Series, 1, "the other one has no latency")
	require.Equal(t, []document.Point{{X: 102, Y: 4}, {X: 900, Y: 19}}, curves.Series[0].Points, "the median of what is nearly one rate")
	require.Len(t, curves.Marks, 1)
	require.InDelta(t, 20, *curves.Marks[0].Y, 0)
}

func TestMatrix_OfManyVariants(t *testing.T) {
	t.Parallel()
	figures := func([]string) map[string]float64 { return map[string]float64{"window_ms": 3, "ops_per_s": 7} }
	kinds := result.MatrixAxis{Name: "crash", Values: []string{"process", "machine"}}
	modes := result.MatrixAxis{Name: "mode", Values: []string{"a", "b", "c", "d", "e"}}
	loss := charts(t, Matrix(tableOf("crash", "", []string{"window_ms"}, figures, kinds, modes)), "Table: window_ms")
	require.Len(t, loss, 2, "one for each crash")
	require.Equal(t, []string{"a (D3)", "b (D3)", "c (D3)", "d (D3)", "e (D3)"}, loss[1].Bars)
	require.Equal(t, "machine: window_ms, u: a (D3) 3.00 (2.00 to 5.00), b (D3) 3.00 (2.00 to 5.00), c (D3) 3.00 (2.00 to 5.00), d (D3) 3.00 (2.00 to 5.00), e (D3) 3.00 (2.00 to 5.00).", loss[1].Summary)

	clients := result.MatrixAxis{Name: "clients", Values: []string{"100", "1", "10"}}
	ops := charts(t, Matrix(tableOf("operation", "mode", []string{"ops_per_s"}, figures, clients, modes, kinds)), "Table: ops_per_s")
	require.Len(t, ops, 2)
	require.Equal(t, "process: ops_per_s, u over clients, by mode.", ops[0].Summary)
	require.Equal(t, document.Log, ops[0].X.Scale)
	require.Len(t, ops[0].Series, 5)
	require.Equal(t, document.Point{X: 1, Y: 7, Low: 6, High: 9}, ops[0].Series[0].Points[0], "by rising number")

	many := result.MatrixAxis{Name: "scenario"}
	for range mostPanels + 1 {
		many.Values = append(many.Values, string(rune('a'+len(many.Values))))
	}
	parts := Matrix(tableOf("operation", "mode", []string{"ops_per_s"}, figures, many, modes))
	require.Len(t, parts[0].More, mostPanels-1)
	require.Equal(t, []string{"The first 12 of 13; the tables have all."}, parts[0].Text)
}

func TestMatrix_OfNothing(t *testing.T) {
	t.Parallel()
	require.Empty(t, Matrix(result.MatrixTable{Measure: "saga"}))
	require.Empty(t, Matrix(tableOf("operation", "a", nil, func([]string) map[string]float64 { return nil }, result.MatrixAxis{Name: "a", Values: []string{"x"}})))
}
