// Package picture draws several variants in one chart: a bar for each figure with its
// interval, stacked bars of CPU time, and latency over the rate. Package report puts the
// charts on its pages.
package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// Figures has a bar for each variant, from its lowest to its highest run a line across
// the end. It returns nil if no figure is known. figures has an element for each name; nil:
// unknown.
func Figures(label string, names []string, figures []*result.Spread) *document.Chart {
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
	summary := label
	if len(texts) <= mostInWords {
		summary += ": " + strings.Join(texts, ", ")
	}
	return &document.Chart{
		Summary: summary + ".",
		X:       document.Axis{Label: label}, Bars: names, Series: []document.Series{bar},
	}
}

// mostInWords is how many figures the description of a chart repeats.
const mostInWords = 5

// Part returns the charts that are not nil as one part, or nil if there are none.
func Part(title string, charts ...*document.Chart) *document.Part {
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

// Held is the highest rate held by each of the searches, 0 if none was held. It returns
// nil if none of them can tell.
func Held(names []string, searches []result.Capacity) *document.Chart {
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
	return Figures("highest rate held, sagas/s", names, held)
}

// Latencies is the p99 over the offered rate of each of the searches.
func Latencies(names []string, searches []result.Capacity) *document.Chart {
	var curves [][]result.RatePoint
	var limits []float64
	for _, c := range searches {
		curves = append(curves, c.LatencyByRate())
		limits = append(limits, p99Limits(c.SLO)...)
	}
	return latencyOverRate(names, curves, limits)
}

func p99Limits(o result.SLO) (ms []float64) {
	for _, g := range o.Latencies {
		if g.Percentile == 99 {
			ms = append(ms, g.MS)
		}
	}
	return ms
}

// latencyOverRate has a curve for each of the names, through the median of the points that
// are nearly at one rate, and a line for each limit. It returns nil without points.
func latencyOverRate(names []string, curves [][]result.RatePoint, limits []float64) *document.Chart {
	chart := &document.Chart{
		Summary: "p99 over the offered rate. A curve ends at the highest rate that the system followed.",
		X:       document.Axis{Label: "offered, sagas/s"}, Y: document.Axis{Label: "p99, ms", Scale: document.Log},
	}
	for i, points := range curves {
		curve := document.Series{Name: names[i]}
		for len(points) > 0 {
			n := 1
			for n < len(points) && points[n].RatePerS < points[0].RatePerS*(1+result.SameRate) {
				n++
			}
			near := slices.SortedFunc(slices.Values(points[:n]), func(a, b result.RatePoint) int { return cmp.Compare(a.P99MS, b.P99MS) })
			curve.Points = append(curve.Points, document.Point{X: near[n/2].RatePerS, Y: near[n/2].P99MS})
			points = points[n:]
		}
		if len(curve.Points) > 0 {
			chart.Series = append(chart.Series, curve)
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	slices.Sort(limits)
	for _, ms := range slices.Compact(limits) {
		chart.Marks = append(chart.Marks, document.Mark{Label: format.Short(ms) + " ms", Y: &ms})
	}
	return chart
}
