package document

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// A drawing's units are CSS pixels at its width of 400: about half a desktop page or a
// whole phone, so that its text is readable on both.
const (
	chartWidth   = 400
	curvesHeight = 240
	fontSize     = 13
	charWidth    = 8 // on average, in the widest of the usual fonts
)

// style tells the series of a chart apart beside their colour.
type style struct {
	dash, border string // of a curve: in the drawing, and in the key
	glyph, sign  string // of a dot: path from its centre, and character in the key
}

var styles = []style{
	{"none", "solid", "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", "●"},
	{"6 3", "dashed", "m-3-3h6v6h-6z", "■"},
	{"2 2", "dotted", "m0-4.4l3.8 6.6h-7.6z", "▲"},
}

// colour returns the page's variable for series i.
func colour(i int) string { return fmt.Sprintf("var(--c%d)", i%6) }

// svg draws the chart as an element that is as wide as the page has room. The page's
// style sheet gives it colours and a font.
func (c Chart) svg() template.HTML {
	d := &drawing{height: curvesHeight}
	if c.Bars != nil {
		d.bars(c)
	} else {
		d.curves(c)
	}
	summary := html.EscapeString(c.Summary)
	return template.HTML(fmt.Sprintf("<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\"><title>%s</title>\n%s</svg>\n",
		chartWidth, d.height, summary, summary, d.out.String()))
}

// drawing is an SVG under construction.
type drawing struct {
	out    strings.Builder
	height int

	left, right, top, bottom float64 // edges of the plotting area
	x, y                     span    // what the area shows
}

// at returns the drawing's coordinates of a position on both scales.
func (d *drawing) at(x, y float64) (atX, atY float64) {
	return d.left + (x-d.x.from)/(d.x.to-d.x.from)*(d.right-d.left),
		d.bottom - (y-d.y.from)/(d.y.to-d.y.from)*(d.bottom-d.top)
}

// path draws a path of the class, with CSS of its own.
func (d *drawing) path(class, css, path string) {
	fmt.Fprintf(&d.out, "<path class=\"%s\" style=\"%s\" d=\"%s\"/>\n", class, css, path)
}

// line draws a line of the class between two points.
func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, x1, y1, x2, y2)
}

// text writes text whose anchor (start, middle or end) is at a point.
func (d *drawing) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&d.out, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, html.EscapeString(text))
}

// xAxis draws the line below the plotting area, its ticks and its label. Where labels have
// no room beside each other, it leaves out every other one.
func (d *drawing) xAxis(label string) {
	d.line("axis", d.left, d.bottom, d.right, d.bottom)
	every := d.labelEvery()
	for i, t := range d.x.ticks {
		x, _ := d.at(t.at, d.y.from)
		d.line("axis", x, d.bottom, x, d.bottom+t.length())
		if i%every == 0 {
			d.text("label", "middle", x, d.bottom+18, t.label)
		}
	}
	d.text("label", "middle", (d.left+d.right)/2, float64(d.height)-5, label)
}

// labelEvery returns 1 if all labels of the x axis have room, 2 for every other one, and so on.
func (d *drawing) labelEvery() int {
	for every := 1; ; every *= 2 {
		end, crowded := math.Inf(-1), false
		for i := 0; i < len(d.x.ticks); i += every {
			if label := d.x.ticks[i].label; label != "" {
				x, _ := d.at(d.x.ticks[i].at, d.y.from)
				half := width([]string{label}) / 2
				crowded, end = crowded || x-half < end, x+half+charWidth
			}
		}
		if !crowded {
			return every
		}
	}
}

// yAxis draws the line left of the plotting area, its ticks and its label.
func (d *drawing) yAxis(label string) {
	d.line("axis", d.left, d.top, d.left, d.bottom)
	for _, t := range d.y.ticks {
		_, y := d.at(d.x.from, t.at)
		d.line("axis", d.left-t.length(), y, d.left, y)
		d.text("label", "end", d.left-8, y+4.5, t.label)
	}
	middle := (d.top + d.bottom) / 2
	fmt.Fprintf(&d.out, "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(%d %.1f) rotate(-90)\">%s</text>\n",
		fontSize, middle, html.EscapeString(label))
}

// width estimates how wide the widest of the texts is.
func width(texts []string) (widest float64) {
	for _, t := range texts {
		widest = max(widest, charWidth*float64(utf8.RuneCountInString(t)))
	}
	return widest
}
