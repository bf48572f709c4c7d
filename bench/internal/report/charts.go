package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// curve is a named histogram of latencies.
type curve struct {
	name string
	h    *hdrhistogram.Histogram
}

// percentilePart is latency over percentile, from the due time and from the send. It
// returns nil if there are too few samples.
func percentilePart(rec result.Recording) *document.Part {
	if !enough(rec.Latency) {
		return nil
	}
	if !enough(rec.Service) || rec.Service.Equals(rec.Latency) {
		return percentileCurves([]curve{{"from the send", rec.Latency}})
	}
	return percentileCurves([]curve{{"from the due time", rec.Latency}, {"from the send", rec.Service}})
}

// enough reports whether there are enough samples for a curve.
func enough(h *hdrhistogram.Histogram) bool {
	return h != nil && h.TotalCount() >= result.SamplesFor(90)
}

// percentileCurves draws each curve as far as its samples reach.
func percentileCurves(curves []curve) *document.Part {
	chart := document.Chart{
		X: document.Axis{Label: "percentile", Scale: document.Nines},
		Y: document.Axis{Label: "ms"},
	}
	table := document.Table{Corner: "percentile"}
	var p99s []string
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
			p99s = append(p99s, fmt.Sprintf("%s %s ms", c.name, format.Number(atNines(c.h, 2))))
		}
	}
	logarithmic(&chart, typical)
	chart.Summary = "Latency by percentile, on a scale of nines."
	if len(p99s) > 0 {
		chart.Summary += " The p99: " + strings.Join(p99s, ", ") + "."
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

// nines returns the highest percentile with enough samples, as the n of 1-10^-n.
func (c curve) nines() float64 { return math.Log10(float64(c.h.TotalCount()) / result.SamplesBeyond) }

// atNines returns the latency in ms at the percentile 1-10^-nines.
func atNines(h *hdrhistogram.Histogram, nines float64) float64 {
	return float64(h.ValueAtQuantile(100*(1-math.Pow(10, -nines)))) / 1000
}

// column is a value over time.
type column struct {
	name string
	of   func(result.Sample) *float64
}

// timelinePart is the run second by second, from the histogram log if the summary has no
// timeline. It returns nil if neither has two seconds.
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
		{"Failed requests per second", "errors/s", []column{{"errors/s", func(m result.Sample) *float64 { return m.ErrorsPerS }}}},
		{"Latency", "ms", []column{
			{"p99", func(m result.Sample) *float64 { return m.P99MS }},
			{"p50", func(m result.Sample) *float64 { return m.P50MS }},
		}},
		{"Busy cores", "cores", []column{
			{"load", func(m result.Sample) *float64 { return m.LoadCores }},
			{"app", func(m result.Sample) *float64 { return m.AppCores }},
			{"store", func(m result.Sample) *float64 { return m.StoreCores }},
		}},
		{"Changes per call to the store", "changes", []column{{"batch", func(m result.Sample) *float64 { return m.Batch }}}},
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

// ranges writes the lowest and the highest value of each series.
func ranges(series []document.Series) string {
	var texts []string
	for _, s := range series {
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
		texts = append(texts, strings.TrimSpace(s.Name+" "+format.Number(low)+" to "+format.Number(high)))
	}
	return strings.Join(texts, ", ")
}

// cpuChart has a bar of CPU per saga for each cost, with a layer for each process. It
// returns nil if no figure is known. An unknown figure is missing in its bar.
func cpuChart(names []string, costs []result.Cost) *document.Chart {
	chart := &document.Chart{X: document.Axis{Label: "CPU per saga, µs"}, Bars: names}
	for _, f := range result.CPUFields {
		layer, known := document.Series{Name: f.Short}, false
		for _, c := range costs {
			p := document.Point{Missing: true}
			if us := f.Of(c); us != nil {
				p, known = document.Point{Y: *us}, true
			}
			layer.Points = append(layer.Points, p)
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

// cpuPart is the same with a table.
func cpuPart(names []string, costs []result.Cost) *document.Part {
	chart := cpuChart(names, costs)
	if chart == nil {
		return nil
	}
	var table document.Table
	for _, f := range result.CPUFields {
		table.Columns = append(table.Columns, f.Short)
	}
	table.Columns = append(table.Columns, "total")
	var totals []string
	for i, c := range costs {
		r, total := document.Row{Name: names[i]}, 0.0
		for _, f := range result.CPUFields {
			us := f.Of(c)
			r.Cells = append(r.Cells, format.Optional(us, format.Number))
			if us != nil {
				total += *us
			}
		}
		r.Cells = append(r.Cells, format.Number(total))
		table.Rows = append(table.Rows, r)
		totals = append(totals, names[i]+" "+format.Number(total))
	}
	chart.Summary = "In µs, by process; total: " + strings.Join(totals, ", ") + "."
	return &document.Part{Title: "CPU per saga", Chart: chart, Table: &table}
}
