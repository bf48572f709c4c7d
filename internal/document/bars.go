package document

import (
	"fmt"
	"slices"

	"sagabench/internal/format"
)

// Lengths of a chart of bars.
const (
	barWidth   = 16
	barPitch   = barWidth + 10
	belowBars  = 40 // the axis with its labels
	besideBars = 8  // between a bar and its name or its length
)

// bars draws a stacked bar for each name, the first on top, with its whole length beside
// it.
func (d *drawing) bars(c Chart) {
	lengths, labels := make([]float64, len(c.Bars)), make([]string, len(c.Bars))
	for i := range c.Bars {
		for _, s := range c.Series {
			lengths[i] += s.Points[i].Y
		}
		labels[i] = format.Number(lengths[i])
	}
	d.height = len(c.Bars)*barPitch + belowBars
	d.left, d.right = min(width(c.Bars)+besideBars, chartWidth/2), chartWidth-width(labels)-besideBars
	d.top, d.bottom = 0, float64(len(c.Bars)*barPitch)
	d.x, d.y = c.X.Scale.span(0, slices.Max(lengths), true), span{from: float64(len(c.Bars)), to: 0}
	d.xAxis(c.X.Label)
	for i, name := range c.Bars {
		_, middle := d.at(0, float64(i)+0.5)
		d.text("label", "end", d.left-besideBars, middle+4.5, name)
		end := 0.0
		for layer, s := range c.Series {
			from, _ := d.at(end, 0)
			end += s.Points[i].Y
			to, _ := d.at(end, 0)
			d.path("bar", "fill: "+colour(layer), fmt.Sprintf("M%.1f %.1fH%.1fv%dH%.1fz", from, middle-barWidth/2, to, barWidth, from))
		}
		x, _ := d.at(end, 0)
		d.text("", "start", x+besideBars/2, middle+4.5, labels[i])
	}
}
