package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// The pictures of several variants, which all pages that show variants share: a bar for
// each figure with its interval, CPU per saga as stacked bars (cpuChart), and latency over
// rate with a curve for each variant.

// figureChart has a bar for each variant, from its lowest to its highest run a line across
// the end. It returns nil if no figure is known. figures has an element for each name; nil:
// unknown.
func figureChart(label string, names []string, figures []*result.Spread) *document.Chart {
	bar := document.Series{}
	var texts []string
	for i, f := range figures {
		if f == nil {
			bar.Points = append(bar.Points, document.Point{Missing: true})
			continue
		}
		p, text := document.Point{Y: f.Median}, names[i]+" "+format.Number(f.Median)
		if f.Low < f.High {
			p.Low, p.High = f.Low, f.High
			text += fmt.Sprintf(" (%s to %s)", format.Number(f.Low), format.Number(f.High))
		}
		bar.Points = append(bar.Points, p)
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil
	}
	return &document.Chart{
		Summary: capital(label) + ": " + strings.Join(texts, ", ") + ".",
		X:       document.Axis{Label: label}, Bars: names, Series: []document.Series{bar},
	}
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// spread returns the median that is given, and the lowest and highest run. It returns nil
// without a median.
func spread(median *float64, runs []float64) *result.Spread {
	if median == nil {
		return nil
	}
	return &result.Spread{Low: slices.Min(runs), Median: *median, High: slices.Max(runs)}
}

// chartsPart returns the charts that are not nil as one part, or nil if there are none.
func chartsPart(title string, charts ...*document.Chart) *document.Part {
	p := &document.Part{Title: title}
	for _, c := range charts {
		switch {
		case c == nil:
		case p.Chart == nil:
			p.Chart = c
		default:
			p.More = append(p.More, *c)
		}
	}
	if p.Chart == nil {
		return nil
	}
	return p
}

// heldChart is the highest rate held by each of the searches, 0 if none was held. It returns
// nil if none of them can tell.
func heldChart(names []string, searches []result.Capacity) *document.Chart {
	var held []*result.Spread
	for _, c := range searches {
		switch {
		case c.Spread != nil:
			held = append(held, c.Spread)
		case c.Held != nil:
			held = append(held, &result.Spread{Low: c.Held.RatePerS, Median: c.Held.RatePerS, High: c.Held.RatePerS})
		case c.CannotTell != "" || len(c.Searches) == 0:
			held = append(held, nil)
		default:
			held = append(held, &result.Spread{})
		}
	}
	return figureChart("highest rate held, sagas/s", names, held)
}

// sameRate is the relative distance up to which steps count as of one rate: near the
// capacity a search tries many rates that are nearly the same.
const sameRate = 0.05

// latencyOverRate is the p99 over the offered rate, with a curve for each of the searches
// that ends at the highest rate that the system followed. It returns nil if no p99 is known.
func latencyOverRate(names []string, searches []result.Capacity) *document.Chart {
	chart := &document.Chart{X: document.Axis{Label: "offered, sagas/s"}, Y: document.Axis{Label: "p99, ms", Scale: document.Log}}
	limits := map[float64]bool{}
	for i, c := range searches {
		curve := document.Series{Name: names[i]}
		for _, steps := range nearRates(c) {
			m := steps[len(steps)/2]
			curve.Points = append(curve.Points, document.Point{X: m.RatePerS, Y: *m.LatencyMS.P99})
		}
		if len(curve.Points) > 0 {
			chart.Series = append(chart.Series, curve)
		}
		for _, g := range c.SLO.Latencies {
			if g.Percentile == 99 && !limits[g.MS] {
				limits[g.MS] = true
				chart.Marks = append(chart.Marks, document.Mark{Label: format.Short(g.MS) + " ms", Y: &g.MS})
			}
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	chart.Summary = "p99 over the offered rate. A curve ends at the highest rate that the system followed."
	return chart
}

// nearRates groups the steps with a p99 by rate, those of a group by rising p99. Holds
// replace the short steps near their rate.
func nearRates(c result.Capacity) (groups [][]result.Step) {
	for _, m := range c.ByRate() {
		if m.LatencyMS.P99 == nil || *m.LatencyMS.P99 <= 0 || !m.Validity.Valid || m.Load.Overloaded() {
			continue
		}
		if n := len(groups); n > 0 && m.RatePerS < groups[n-1][0].RatePerS*(1+sameRate) {
			groups[n-1] = append(groups[n-1], m)
			continue
		}
		groups = append(groups, []result.Step{m})
	}
	for i, g := range groups {
		if holds := slices.DeleteFunc(slices.Clone(g), func(m result.Step) bool { return !m.Hold }); len(holds) > 0 {
			g = holds
		}
		slices.SortFunc(g, func(a, b result.Step) int { return cmp.Compare(*a.LatencyMS.P99, *b.LatencyMS.P99) })
		groups[i] = g
	}
	return groups
}
