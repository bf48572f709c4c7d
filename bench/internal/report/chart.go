package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The drawing area of a chart, in units of its viewBox.
const (
	chartWidth, chartHeight  = 640, 240
	left, right, top, bottom = 56, 24, 16, 24
)

type chart struct {
	Title         string
	Width, Height int
	Grid          []gridLine
	Curves        []curve
}

type gridLine struct {
	X1, Y1, X2, Y2, TextX, TextY int
	Anchor, Label                string
}

type curve struct {
	Points       string
	Colour       template.CSS
	Label        string
	TextX, TextY int
}

// point is a place in the drawing area, both coordinates from 0 to 1, y up.
type point struct{ x, y float64 }

func (p point) px() (x, y int) {
	return left + int(math.Round(p.x*(chartWidth-left-right))),
		chartHeight - bottom - int(math.Round(p.y*(chartHeight-top-bottom)))
}

func newChart(title string) *chart {
	return &chart{Title: title, Width: chartWidth, Height: chartHeight}
}

func (c *chart) horizontal(y float64, label string) {
	_, py := point{0, y}.px()
	c.Grid = append(c.Grid, gridLine{
		X1: left, Y1: py, X2: chartWidth - right, Y2: py,
		TextX: left - 6, TextY: py + 4, Anchor: "end", Label: label,
	})
}

func (c *chart) vertical(x float64, label string) {
	px, _ := point{x, 0}.px()
	c.Grid = append(c.Grid, gridLine{
		X1: px, Y1: top, X2: px, Y2: chartHeight - bottom,
		TextX: px, TextY: chartHeight - 8, Anchor: "middle", Label: label,
	})
}

func (c *chart) curve(points []point, colour template.CSS, label string) {
	var path strings.Builder
	for _, p := range points {
		x, y := p.px()
		fmt.Fprintf(&path, "%d,%d ", x, y)
	}
	c.Curves = append(c.Curves, curve{
		Points: strings.TrimSpace(path.String()), Colour: colour, Label: label,
		TextX: left + 8, TextY: top + 16 + 16*len(c.Curves), // where a curve of latencies is low
	})
}

// percentileChart draws latency over percentile. The percentiles are spread by
// their number of nines, and it ends where the samples do.
func percentileChart(rec Recording) *chart {
	if rec.Latency == nil || rec.Latency.TotalCount() < samplesFor(10) {
		return nil
	}
	c := newChart("Latency in ms by percentile")
	n := rec.Latency.TotalCount()
	nines := math.Log10(float64(n) / samplesBeyond)
	highest := atNines(rec.Latency, nines)
	differ := rec.Service.TotalCount() > 0 && !rec.Service.Equals(rec.Latency)
	if differ {
		highest = max(highest, atNines(rec.Service, nines))
	}
	axis := niceAbove(highest)
	c.horizontals(axis)
	for whole, label := range []string{"p0", "p90", "p99", "p99.9", "p99.99", "p99.999"} {
		if float64(whole) <= nines {
			c.vertical(float64(whole)/nines, label)
		}
	}
	draw := func(h *hdrhistogram.Histogram, colour template.CSS, label string) {
		const steps = 100
		var points []point
		for i := range steps + 1 {
			x := float64(i) / steps
			points = append(points, point{x, atNines(h, x*nines) / axis})
		}
		c.curve(points, colour, label)
	}
	if !differ {
		draw(rec.Latency, "var(--a)", "")
		return c
	}
	draw(rec.Service, "var(--b)", "from the send")
	draw(rec.Latency, "var(--a)", "from the due time")
	return c
}

// atNines is the latency in ms at the percentile 1-10^-nines.
func atNines(h *hdrhistogram.Histogram, nines float64) float64 {
	return float64(h.ValueAtQuantile(100*(1-math.Pow(10, -nines)))) / 1000
}

// throughputChart draws the acknowledged sagas per second over the run.
func throughputChart(rec Recording) *chart {
	intervals := slices.DeleteFunc(slices.Clone(rec.Intervals), func(i Interval) bool { return i.Length < wholeInterval })
	if len(intervals) < 2 {
		return nil
	}
	began, end, highest := intervals[0].Start, time.Duration(0), 0.0
	for _, i := range intervals {
		end = max(end, i.Start.Add(i.Length).Sub(began))
		highest = max(highest, i.PerS())
	}
	c := newChart("Acknowledged sagas per second")
	axis := niceAbove(highest)
	c.horizontals(axis)
	length := end.Seconds()
	for i := range 5 {
		c.vertical(float64(i)/4, number(length*float64(i)/4)+" s")
	}
	var points []point
	for _, i := range intervals {
		middle := i.Start.Add(i.Length / 2).Sub(began).Seconds()
		points = append(points, point{middle / length, i.PerS() / axis})
	}
	c.curve(points, "var(--a)", "")
	return c
}

func (c *chart) horizontals(axis float64) {
	const lines = 4
	for i := range lines + 1 {
		share := float64(i) / lines
		c.horizontal(share, number(axis*share))
	}
}

// niceAbove is the end of an axis that reaches x: a number whose quarters are
// short.
func niceAbove(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8} {
		if x <= m*power {
			return m * power
		}
	}
	return 10 * power
}
