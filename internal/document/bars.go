package document

import (
	"fmt"

	"sagabench/internal/format"
)

// Lengths of a chart of bars.
const (
	barWidth   = 16
	barPitch   = barWidth + 10
	nameHeight = fontSize + 5 // of a name above its bar
	mostBeside = 20           // the longest names that have room beside their bars, in characters
	mostBehind = 17           // the longest labels with intervals that have room behind them
	mostAbove  = 58           // and above
	belowBars  = 40           // the axis with its labels
	besideBars = 8            // between a bar and its name or its length
)

// bars draws a stacked bar for each name, the first on top, with its whole length beside
// it. Long names are above their bars. A bar that is unknown as a whole has no length
// beside it.
func (d *drawing) bars(c Chart) {
	longest, labels := 0.0, make([]string, len(c.Bars))
	whole := make([]string, len(c.Bars)) // the labels with their intervals
	for i := range c.Bars {
		length, known := c.length(i)
		longest, labels[i] = max(longest, length), format.Unknown
		if known {
			labels[i] = format.Number(length)
		}
		whole[i] = labels[i]
		for _, s := range c.Series {
			longest = max(longest, s.Points[i].High)
			if p := s.Points[i]; p.interval() {
				whole[i] += " (" + format.Number(p.Low) + "–" + format.Number(p.High) + ")"
			}
		}
	}
	if width(whole) <= mostBehind*charWidth {
		labels = whole
	}
	pitch, above := barPitch, 0.0
	d.left = width(c.Bars) + besideBars
	if d.left > mostBeside*charWidth {
		pitch, above, d.left = barPitch+nameHeight, nameHeight, charWidth
	}
	d.height = len(c.Bars)*pitch + belowBars
	d.right = chartWidth - width(labels) - besideBars
	d.top, d.bottom = 0, float64(len(c.Bars)*pitch)
	d.x, d.y = c.X.Scale.span(0, longest, true), span{from: float64(len(c.Bars)), to: 0}
	d.xAxis(c.X.Label)
	for i, name := range c.Bars {
		_, middle := d.at(0, float64(i)+0.5)
		middle += above / 2
		if above > 0 {
			d.text("label", "start", 0, middle-barWidth/2-5, shortened(name, mostAbove))
		} else {
			d.text("label", "end", d.left-besideBars, middle+4.5, name)
		}
		end := 0.0
		for layer, s := range c.Series {
			from, _ := d.at(end, 0)
			end += s.Points[i].Y
			to, _ := d.at(end, 0)
			d.path("bar", "fill: "+colour(layer), fmt.Sprintf("M%.1f %.1fH%.1fv%dH%.1fz", from, middle-barWidth/2, to, barWidth, from))
		}
		for _, s := range c.Series {
			if p := s.Points[i]; p.interval() {
				low, _ := d.at(p.Low, 0)
				high, _ := d.at(p.High, 0)
				d.path("whisker", "", fmt.Sprintf("M%.1f %.1fv8m0-4H%.1fm0-4v8", low, middle-4, high))
				end = max(end, p.High)
			}
		}
		x, _ := d.at(end, 0)
		d.text("", "start", x+besideBars/2, middle+4.5, labels[i])
	}
}

// length returns the whole length of bar i. known is false if all its layers are missing.
func (c Chart) length(i int) (length float64, known bool) {
	for _, s := range c.Series {
		length += s.Points[i].Y
		known = known || !s.Points[i].Missing
	}
	return length, known
}

// shortened returns the text with at most n characters.
func shortened(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
