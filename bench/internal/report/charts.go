package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// curve is a latency by its name.
type curve struct {
	name string
	h    *hdrhistogram.Histogram
}

// percentilePart is latency over percentile, from the due time and from the send;
// nil: there are too few samples.
func percentilePart(rec result.Recording) *document.Part {
	if !enough(rec.Latency) {
		return nil
	}
	if !enough(rec.Service) || rec.Service.Equals(rec.Latency) {
		return percentilesOf([]curve{{"from the send", rec.Latency}})
	}
	return percentilesOf([]curve{{"from the due time", rec.Latency}, {"from the send", rec.Service}})
}

// enough samples for a curve.
func enough(h *hdrhistogram.Histogram) bool {
	return h != nil && h.TotalCount() >= result.SamplesFor(90)
}

// percentilesOf draws each curve as far as its samples reach.
func percentilesOf(curves []curve) *document.Part {
	chart := document.Chart{
		X: document.Axis{Label: "percentile", Scale: document.Nines},
		Y: document.Axis{Label: "ms"},
	}
	table := document.Table{Corner: "percentile"}
	var said []string
	furthest, typical := 0.0, math.Inf(1)
	for _, c := range curves {
		const steps = 100
		nines := c.nines()
		furthest, typical = max(furthest, nines), min(typical, atNines(c.h, math.Log10(2)))
		s := document.Series{Name: c.name}
		for i := range steps + 1 {
			n := nines * float64(i) / steps
			s.Points = append(s.Points, document.Point{X: 100 * (1 - math.Pow(10, -n)), Y: atNines(c.h, n)})
		}
		chart.Series = append(chart.Series, s)
		table.Columns = append(table.Columns, c.name)
		if nines >= 2 {
			said = append(said, fmt.Sprintf("%s %s ms", c.name, format.Number(atNines(c.h, 2))))
		}
	}
	logarithmic(&chart, typical)
	chart.Summary = "Latency by percentile, spread by the number of nines."
	if len(said) > 0 {
		chart.Summary += " The p99: " + strings.Join(said, ", ") + "."
	}
	for _, p := range []struct {
		name  string
		oneIn float64
	}{{"p50", 2}, {"p75", 4}, {"p90", 10}, {"p95", 20}, {"p99", 100}, {"p99.9", 1e3}, {"p99.99", 1e4}, {"p99.999", 1e5}, {"p99.9999", 1e6}} {
		nines := math.Log10(p.oneIn)
		if nines > furthest {
			break
		}
		r := document.Row{Name: p.name}
		for _, c := range curves {
			cell := format.Unknown
			if nines <= c.nines() {
				cell = format.Number(atNines(c.h, nines))
			}
			r.Cells = append(r.Cells, cell)
		}
		table.Rows = append(table.Rows, r)
	}
	return &document.Part{Title: "Latency by percentile", Chart: &chart, Table: &table}
}

// nines is how far the samples reach, as percentile 1-10^-nines.
func (c curve) nines() float64 { return math.Log10(float64(c.h.TotalCount()) / result.SamplesBeyond) }

// atNines is the latency in ms at the percentile 1-10^-nines.
func atNines(h *hdrhistogram.Histogram, nines float64) float64 {
	return float64(h.ValueAtQuantile(100*(1-math.Pow(10, -nines)))) / 1000
}

// column is a value over time.
type column struct {
	name string
	of   func(result.Sample) *float64
}

// timelinePart is the course of the run; nil: it is not known. A result that was
// written without it has at least what its histogram log tells.
func timelinePart(s result.Summary, rec result.Recording) *document.Part {
	line := s.Timeline
	if len(line) == 0 {
		line = result.TimelineOf(rec.Intervals, nil)
	}
	if len(line) < 2 {
		return nil
	}
	var charts []document.Chart
	table := document.Table{Corner: "time, s"}
	for _, m := range line {
		table.Rows = append(table.Rows, document.Row{Name: format.Number(m.AtS)})
	}
	for _, c := range []struct {
		what, unit string
		columns    []column
	}{
		{"Sagas acknowledged per second", "sagas/s", []column{{"sagas/s", func(m result.Sample) *float64 { return m.SagasPerS }}}},
		{"Latency", "ms", []column{
			{"p99", func(m result.Sample) *float64 { return m.P99MS }},
			{"p50", func(m result.Sample) *float64 { return m.P50MS }},
		}},
		{"Cores kept busy", "cores", []column{
			{"load", func(m result.Sample) *float64 { return m.LoadCores }},
			{"app", func(m result.Sample) *float64 { return m.AppCores }},
			{"store", func(m result.Sample) *float64 { return m.StoreCores }},
		}},
		{"Changes written by one call of the store", "changes", []column{{"batch", func(m result.Sample) *float64 { return m.Batch }}}},
	} {
		chart := document.Chart{X: document.Axis{Label: "time, s"}, Y: document.Axis{Label: c.unit}}
		for _, one := range c.columns {
			series := document.Series{Name: one.name}
			if len(c.columns) == 1 {
				series.Name = ""
			}
			cells := make([]string, len(line))
			for i, m := range line {
				cells[i] = format.Optional(one.of(m), format.Number)
				if y := one.of(m); y != nil {
					series.Points = append(series.Points, document.Point{X: m.AtS, Y: *y})
				}
			}
			if len(series.Points) == 0 {
				continue
			}
			chart.Series = append(chart.Series, series)
			table.Columns = append(table.Columns, one.name)
			for i, cell := range cells {
				table.Rows[i].Cells = append(table.Rows[i].Cells, cell)
			}
		}
		if len(chart.Series) > 0 {
			chart.Summary = c.what + " over time: " + ranges(chart.Series) + "."
			charts = append(charts, chart)
		}
	}
	if len(charts) == 0 {
		return nil
	}
	return &document.Part{Title: "Over time", Chart: &charts[0], More: charts[1:], Table: &table, Thin: true}
}

// ranges say between what the series lie.
func ranges(series []document.Series) string {
	var said []string
	for _, s := range series {
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
		said = append(said, strings.TrimSpace(s.Name+" "+format.Number(low)+" to "+format.Number(high)))
	}
	return strings.Join(said, ", ")
}

// splitChart has a bar of CPU per saga for each cost, split by who spends it; nil:
// nothing is known. What is not known of one of them is missing in its bar.
func splitChart(names []string, costs []result.Cost) *document.Chart {
	chart := &document.Chart{X: document.Axis{Label: "CPU per saga, µs"}, Bars: names}
	for _, who := range result.CPUFields() {
		layer, known := document.Series{Name: who.Spender}, false
		for _, c := range costs {
			us := who.Of(c)
			if us == nil {
				us = new(float64)
			} else {
				known = true
			}
			layer.Points = append(layer.Points, document.Point{Y: *us})
		}
		if known {
			chart.Series = append(chart.Series, layer)
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return chart
}

// splitChart is that of one run.
func runSplitChart(s result.Summary) *document.Chart {
	chart := splitChart([]string{cmp.Or(s.Run.Store.Driver, "this run")}, []result.Cost{s.CostPerSaga})
	if chart != nil {
		chart.Summary = "CPU per saga in µs, by who spends it."
	}
	return chart
}

func splitPart(names []string, costs []result.Cost) *document.Part {
	chart := splitChart(names, costs)
	if chart == nil {
		return nil
	}
	var said []string
	var table document.Table
	for i, c := range costs {
		r, sum := document.Row{Name: names[i]}, 0.0
		for _, who := range result.CPUFields() {
			r.Cells = append(r.Cells, format.Optional(who.Of(c), format.Number))
			if us := who.Of(c); us != nil {
				sum += *us
			}
		}
		table.Rows = append(table.Rows, document.Row{Name: r.Name, Cells: append(r.Cells, format.Number(sum))})
		said = append(said, names[i]+" "+format.Number(sum))
	}
	for _, who := range result.CPUFields() {
		table.Columns = append(table.Columns, who.Spender)
	}
	table.Columns = append(table.Columns, "all")
	chart.Summary = "In µs, by who spends it; in all: " + strings.Join(said, ", ") + "."
	return &document.Part{Title: "CPU per saga", Chart: chart, Table: &table}
}
