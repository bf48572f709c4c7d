package document

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawCurves adds the axes, the curves and the marks.
func (c Chart) drawCurves(p *plot.Plot) error {
	x, y := c.spans()
	p.X.Min, p.X.Max, p.X.Tick.Marker = x.from, x.to, plot.ConstantTicks(x.ticks)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = y.from, y.to, plot.ConstantTicks(y.ticks)
	p.X.Label.Text, p.Y.Label.Text = c.X.Label, c.Y.Label
	p.Add(grid(c.X.Scale != Linear))
	for i, s := range c.Series {
		if len(s.Points) == 0 {
			continue
		}
		if err := c.drawSeries(p, i, s); err != nil {
			return err
		}
	}
	for _, m := range c.Marks {
		if err := c.drawMark(p, m, x, y); err != nil {
			return err
		}
	}
	return nil
}

// spans of both axes reach over all points, intervals and marks.
func (c Chart) spans() (x, y span) {
	low, high := Point{X: math.Inf(1), Y: math.Inf(1)}, Point{X: math.Inf(-1), Y: math.Inf(-1)}
	atX := func(v float64) { low.X, high.X = min(low.X, v), max(high.X, v) }
	atY := func(v float64) { low.Y, high.Y = min(low.Y, v), max(high.Y, v) }
	for _, s := range c.Series {
		for _, p := range s.Points {
			atX(p.X)
			atY(p.Y)
			if p.interval() {
				atY(p.Low)
				atY(p.High)
			}
		}
	}
	for _, m := range c.Marks {
		if m.X != nil {
			atX(*m.X)
		}
		if m.Y != nil {
			atY(*m.Y)
		}
	}
	return c.X.Scale.span(low.X, high.X, false), c.Y.Scale.span(low.Y, high.Y, true)
}

func (c Chart) drawSeries(p *plot.Plot, i int, s Series) error {
	var points plotter.XYs
	var ends plotter.YErrors
	var measured plotter.XYs // those with an interval
	for _, one := range s.Points {
		at := plotter.XY{X: c.X.Scale.place(one.X), Y: c.Y.Scale.place(one.Y)}
		points = append(points, at)
		if one.interval() {
			measured = append(measured, at)
			ends = append(ends, struct{ Low, High float64 }{
				at.Y - c.Y.Scale.place(one.Low), c.Y.Scale.place(one.High) - at.Y,
			})
		}
	}
	if len(measured) > 0 {
		whiskers, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{measured, ends})
		if err != nil {
			return err
		}
		whiskers.LineStyle = draw.LineStyle{Color: layer(i), Width: thin}
		p.Add(whiskers)
	}
	if !s.Dots && len(points) > 1 {
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = draw.LineStyle{Color: layer(i), Width: thick, Dashes: dashes[i%len(dashes)]}
		p.Add(line)
		return nil
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: layer(i), Radius: vg.Points(3.5), Shape: glyphs[i%len(glyphs)]}
	p.Add(dots)
	return nil
}

func (c Chart) drawMark(p *plot.Plot, m Mark, x, y span) error {
	const aside = 4
	ends := plotter.XYs{{X: x.from, Y: y.to}, {X: x.to, Y: y.to}}
	text := words{Color: ink, Text: m.Label}
	switch {
	case m.Y != nil:
		at := c.Y.Scale.place(*m.Y)
		ends[0].Y, ends[1].Y = at, at
		text.At, text.Offset = ends[0], vg.Point{X: aside, Y: aside}
		if at > (y.from+9*y.to)/10 { // there is no room above
			text.YAlign, text.Offset.Y = draw.YTop, -aside
		}
	case m.X != nil:
		at := c.X.Scale.place(*m.X)
		ends = plotter.XYs{{X: at, Y: y.from}, {X: at, Y: y.to}}
		text.At, text.Offset, text.YAlign = ends[1], vg.Point{X: aside}, draw.YTop
		if at > (x.from+x.to)/2 {
			text.XAlign, text.Offset.X = draw.XRight, -aside
		}
	default:
		return nil
	}
	line, err := plotter.NewLine(ends)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: ink, Width: thin, Dashes: []vg.Length{1, 3}}
	p.Add(line, text)
	return nil
}
