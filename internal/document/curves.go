package document

import (
	"fmt"
	"slices"
	"strings"
)

// curves draws the axes, the series and the marks of a chart.
func (d *drawing) curves(c Chart) {
	d.x, d.y = c.spans()
	d.left = fontSize + 14 + width(d.y.labels())
	d.right, d.top, d.bottom = chartWidth-max(10, width(d.x.labels())/2+2), 10, curvesHeight-40
	for _, t := range d.y.ticks {
		if _, y := d.at(0, t.at); t.label != "" {
			d.line("grid", d.left, y, d.right, y)
		}
	}
	for _, t := range d.x.ticks {
		if x, _ := d.at(t.at, 0); t.label != "" && c.X.Scale != Linear {
			d.line("grid", x, d.top, x, d.bottom)
		}
	}
	d.xAxis(c.X.Label)
	d.yAxis(c.Y.Label)
	for i, s := range c.Series {
		d.series(c, i, s)
	}
	for _, m := range c.Marks {
		d.mark(c, m)
	}
}

// spans returns what both axes have to show: all points, intervals and marks.
func (c Chart) spans() (x, y span) {
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if p.interval() {
				ys = append(ys, p.Low, p.High)
			}
		}
	}
	for _, m := range c.Marks {
		if m.X != nil {
			xs = append(xs, *m.X)
		}
		if m.Y != nil {
			ys = append(ys, *m.Y)
		}
	}
	return c.X.Scale.span(slices.Min(xs), slices.Max(xs), false), c.Y.Scale.span(slices.Min(ys), slices.Max(ys), true)
}

// series draws a curve, or dots, and the intervals.
func (d *drawing) series(c Chart, i int, s Series) {
	var curve, dots, intervals strings.Builder
	look := styles[i%len(styles)]
	at := func(x, y float64) (float64, float64) { return d.at(c.X.Scale.place(x), c.Y.Scale.place(y)) }
	for n, p := range s.Points {
		x, y := at(p.X, p.Y)
		fmt.Fprintf(&curve, "%c%.1f %.1f", "ML"[min(n, 1)], x, y)
		fmt.Fprintf(&dots, "M%.1f %.1f%s", x, y, look.glyph)
		if p.interval() {
			_, low := at(p.X, p.Low)
			_, high := at(p.X, p.High)
			fmt.Fprintf(&intervals, "M%.1f %.1fm-2.5 0h5m-2.5 0V%.1fm-2.5 0h5", x, low, high)
		}
	}
	if intervals.Len() > 0 {
		d.path("interval", "stroke: "+colour(i), intervals.String())
	}
	switch {
	case !s.asDots():
		d.path("curve", fmt.Sprintf("stroke: %s; stroke-dasharray: %s", colour(i), look.dash), curve.String())
	case dots.Len() > 0:
		d.path("dots", "fill: "+colour(i), dots.String())
	}
}

// asDots reports whether no line connects the points.
func (s Series) asDots() bool { return s.Dots || len(s.Points) <= 1 }

// mark draws a line across the plotting area, with its label where there is room.
func (d *drawing) mark(c Chart, m Mark) {
	const aside = 4
	switch {
	case m.Y != nil:
		_, y := d.at(0, c.Y.Scale.place(*m.Y))
		d.line("mark", d.left, y, d.right, y)
		below := 0.0
		if y < d.top+fontSize+aside { // no room above
			below = fontSize + aside
		}
		d.text("", "start", d.left+aside, y-aside+below, m.Label)
	case m.X != nil:
		x, _ := d.at(c.X.Scale.place(*m.X), 0)
		d.line("mark", x, d.top, x, d.bottom)
		if x < (d.left+d.right)/2 {
			d.text("", "start", x+aside, d.top+fontSize, m.Label)
		} else {
			d.text("", "end", x-aside, d.top+fontSize, m.Label)
		}
	}
}
