package document

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"sagabench/internal/format"
)

// The height of a chart of bars is that of its bars and of the axis below.
const (
	barWidth  = 16
	barGap    = 10
	barBottom = 56
)

func (c Chart) height() vg.Length {
	if c.Bars == nil {
		return curvesHeight
	}
	return vg.Length(len(c.Bars)*(barWidth+barGap) + barBottom)
}

// drawBars adds a bar for each name, the first on top, with its whole length beside
// it.
func (c Chart) drawBars(p *plot.Plot) error {
	n := len(c.Bars)
	lengths := make([]float64, n) // from below
	var below *plotter.BarChart
	for i, s := range c.Series {
		values := make(plotter.Values, n)
		for j, point := range s.Points {
			values[n-1-j] = point.Y
			lengths[n-1-j] += point.Y
		}
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return err
		}
		bars.Horizontal, bars.Color = true, layer(i)
		bars.LineStyle = draw.LineStyle{Color: paper, Width: thin}
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
	}
	x := c.X.Scale.span(0, slices.Max(lengths), true)
	p.X.Min, p.X.Max, p.X.Tick.Marker = x.from, x.to, plot.ConstantTicks(x.ticks)
	p.X.Label.Text = c.X.Label
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	names := make([]plot.Tick, n)
	for j, length := range lengths {
		names[j] = plot.Tick{Value: float64(j), Label: c.Bars[n-1-j]}
		p.Add(words{
			At: plotter.XY{X: length, Y: float64(j)}, Offset: vg.Point{X: 4},
			YAlign: draw.YCenter, Color: ink, Text: format.Number(length),
		})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	p.Y.Tick.Length, p.Y.Width, p.Y.Padding = 0, 0, 6
	return nil
}
