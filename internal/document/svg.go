package document

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The drawing area: about as wide as half a desktop page or a whole phone, so that
// its words are neither tiny on the one nor huge on the other.
const (
	chartWidth   = 400
	curvesHeight = 240
	thin         = vg.Length(1)
	thick        = vg.Length(2)
	wordSize     = vg.Length(13)
)

// The page's colours, drawn as stand-ins that themed replaces. Nothing else draws
// with a green and a blue of 1 to 4.
var (
	ink   = standIn(0)
	soft  = standIn(1)
	faint = standIn(2)
	paper = standIn(3)
)

func standIn(i uint8) color.Color { return color.NRGBA{R: 0xF0 + i, G: 1, B: 4, A: 0xFF} }

const layers = 6

// layer is the colour of a series.
func layer(i int) color.Color { return standIn(4 + uint8(i%layers)) }

var variables = []string{"--ink", "--soft", "--line", "--paper", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5"}

// What tells series apart beside their colour. The page's key has the same.
var (
	dashes = [][]vg.Length{nil, {6, 3}, {2, 2}}
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}
)

// svg draws the chart as an element of the page: as wide as there is room, in the
// page's colours and letters.
func (c Chart) svg() (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Width, axis.Padding = soft, thin, 0
		axis.Tick.Color, axis.Tick.Width, axis.Tick.Length = soft, thin, 6
		for _, style := range []*text.Style{&axis.Label.TextStyle, &axis.Tick.Label} {
			style.Color, style.Font = soft, letters
		}
		axis.Label.Padding = 2
	}
	drawn := c.drawCurves
	if c.Bars != nil {
		drawn = c.drawBars
	}
	if err := drawn(p); err != nil {
		return "", fmt.Errorf("draw the chart: %w", err)
	}
	canvas := vgsvg.New(chartWidth, c.height())
	p.Draw(draw.Crop(draw.New(canvas), 2, -4, 2, -8))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", fmt.Errorf("draw the chart: %w", err)
	}
	summary := html.EscapeString(c.Summary)
	return template.HTML(fmt.Sprintf("<svg viewBox=\"0 0 %d %v\" role=\"img\" aria-label=\"%s\"><title>%s</title>\n%s",
		chartWidth, c.height().Points(), summary, summary, themed(out.String()))), nil
}

var letters = font.Font{Typeface: "Liberation", Variant: "Sans", Size: wordSize}

var (
	colours = regexp.MustCompile(`#F[0-9]0104`)
	// opening is everything up to the root element's end.
	opening = regexp.MustCompile(`(?s)^.*?<svg[^>]*>\n`)
	family  = regexp.MustCompile(`font-family:[^"]*?;font-size:`)
)

// themed takes a drawing's own root, letters and colours off.
func themed(svg string) string {
	svg = opening.ReplaceAllString(svg, "")
	svg = family.ReplaceAllString(svg, "font-size:")
	svg = strings.ReplaceAll(svg, "\n\tstyle=", " style=")
	return colours.ReplaceAllStringFunc(svg, func(stand string) string {
		return "var(" + variables[stand[2]-'0'] + ")"
	})
}

// grid are the lines behind the curves.
func grid(vertical bool) *plotter.Grid {
	g := plotter.NewGrid()
	line := draw.LineStyle{Color: faint, Width: thin}
	g.Horizontal, g.Vertical = line, draw.LineStyle{}
	if vertical {
		g.Vertical = line
	}
	return g
}

// words are drawn at a place, and never outside of the drawing.
type words struct {
	At     plotter.XY
	Offset vg.Point
	XAlign draw.XAlignment
	YAlign draw.YAlignment
	Color  color.Color
	Text   string
}

func (w words) style() text.Style {
	return text.Style{Color: w.Color, Font: letters, XAlign: w.XAlign, YAlign: w.YAlign, Handler: plot.DefaultTextHandler}
}

// Plot implements plot.Plotter.
func (w words) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	c.FillText(w.style(), vg.Point{X: x(w.At.X) + w.Offset.X, Y: y(w.At.Y) + w.Offset.Y}, w.Text)
}

// GlyphBoxes implements plot.GlyphBoxer: the plot leaves room for them.
func (w words) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{
		X: p.X.Norm(w.At.X), Y: p.Y.Norm(w.At.Y),
		Rectangle: w.style().Rectangle(w.Text).Add(w.Offset),
	}}
}
