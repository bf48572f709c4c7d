package microbench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
)

//go:embed page.gohtml
var pageSource string

// Page writes the report as one page that needs nothing else: no script, no
// network.
func Page(w io.Writer, r Report) error {
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	content := struct {
		Report
		Verdict, Headline string
		Legend            []segment
		Charts            []barChart
		Tables            []table
		Facts             []tableRow
	}{Report: r, Headline: r.headline(), Tables: r.tables()}
	if !r.Valid {
		content.Verdict = invalid
	}
	for i, cause := range causes {
		content.Legend = append(content.Legend, segment{Title: cause, Colour: colours[i]})
	}
	for _, one := range r.Results {
		content.Charts = append(content.Charts, one.charts()...)
	}
	for i := 0; i+1 < len(r.Notes); i += 2 {
		content.Facts = append(content.Facts, tableRow{Name: r.Notes[i], Cells: r.Notes[i+1 : i+2]})
	}
	if err := page.Execute(w, content); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// barChart has a bar per script, split by cause.
type barChart struct {
	Title         string
	Width, Height int
	Bars          []bar
}

type bar struct {
	Name, Value      string
	NameX, ValueX    int
	TextY, Y, Height int
	Segments         []segment
}

type segment struct {
	X, Width int
	Colour   template.CSS
	Title    string
}

// colours are those of the causes, in their order.
var colours = []template.CSS{"var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"}

const (
	chartWidth = 640
	barLeft    = 84
	barRight   = 60
	barHeight  = 22
	barGap     = 8
)

// charts draw the splits, those of one saga a call and those of many apart: their
// bars differ too much in length.
func (r Result) charts() []barChart {
	var all []barChart
	for _, sagas := range splitBatches {
		var splits []Split
		longest := 0.0
		for _, s := range r.Splits {
			if s.Sagas == sagas {
				splits = append(splits, s)
				longest = max(longest, s.length())
			}
		}
		if len(splits) == 0 {
			continue
		}
		c := barChart{
			Title: fmt.Sprintf("%s: µs of Redis per saga, by cause, %s a call", r.Label(), plural(int(sagas), "saga")),
			Width: chartWidth, Height: len(splits) * (barHeight + barGap),
		}
		for _, s := range splits {
			c.add(s, (chartWidth-barLeft-barRight)/longest)
		}
		all = append(all, c)
	}
	return all
}

// length is that of a split's bar, in µs: a cause that noise made negative has
// none.
func (s Split) length() (us float64) {
	for _, part := range s.causes() {
		us += max(0, part)
	}
	return us
}

// add draws a split, so many units to a µs.
func (c *barChart) add(s Split, scale float64) {
	y := len(c.Bars) * (barHeight + barGap)
	b := bar{Name: s.Probe, Value: number(s.TotalUS), NameX: barLeft - 8, Y: y, Height: barHeight, TextY: y + 15}
	from := float64(barLeft)
	sums := s.causes()
	for i, cause := range causes {
		to := from + max(0, sums[cause])*scale
		x, end := int(math.Round(from)), int(math.Round(to))
		if end > x {
			b.Segments = append(b.Segments, segment{
				X: x, Width: end - x, Colour: colours[i], Title: fmt.Sprintf("%s %s µs", cause, number(sums[cause])),
			})
		}
		from = to
	}
	b.ValueX = int(from) + 6
	c.Bars = append(c.Bars, b)
}
