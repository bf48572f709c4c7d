package document

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"
)

//go:embed page.gohtml
var pageSource string

// unfoldedRows is the highest number of rows of a chart's table that is shown unfolded.
const unfoldedRows = 8

// narrowColumns is the highest number of columns of a table beside which another has room.
const narrowColumns = 4

// HTML writes the document as one self-contained page.
func HTML(w io.Writer, d Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	content := struct {
		Document
		Parts []pagePart
	}{Document: d}
	for _, p := range d.Parts {
		content.Parts = append(content.Parts, newPagePart(p))
	}
	if err := page.Execute(w, content); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

type pagePart struct {
	Part
	Drawn    []drawn
	Numbers  *Table // of the charts, or of a part without charts; nil: none
	Unfolded bool   // the numbers of charts
	One      bool   // one chart with nothing but its numbers, or one narrow table
}

type drawn struct {
	SVG     template.HTML
	Caption string
	Key     []keyEntry
}

// Long reports whether the name of the row is broken into lines where room is scarce.
func (r Row) Long() bool { return utf8.RuneCountInString(r.Name) > 14 }

// cellPart is a cell, and what follows it in brackets: where room is scarce, on a line below.
type cellPart struct{ Value, Aside string }

// Parts returns the cells of the row.
func (r Row) Parts() (parts []cellPart) {
	for _, cell := range r.Cells {
		p := cellPart{Value: cell}
		if value, aside, ok := strings.Cut(cell, " ("); ok {
			p = cellPart{value, "(" + aside}
		}
		parts = append(parts, p)
	}
	return parts
}

// keyEntry explains a series. The key is beside the drawing, not in it, where it could
// cover a curve.
type keyEntry struct {
	Name, Kind, Glyph string
	Style             template.CSS
}

func newPagePart(p Part) pagePart {
	shown := pagePart{Part: p}
	for _, c := range p.charts() {
		shown.Drawn = append(shown.Drawn, drawn{SVG: c.svg(), Caption: c.Summary, Key: c.key()})
	}
	if t := p.table(); t != nil && len(t.Rows) > 0 {
		shown.Numbers, shown.Unfolded = t, len(t.Rows) <= unfoldedRows
	}
	narrow := shown.Numbers != nil && len(shown.Numbers.Columns) <= narrowColumns
	shown.One = (len(shown.Drawn) == 1 || len(shown.Drawn) == 0 && narrow) && len(p.Text)+len(p.Facts)+len(p.List) == 0
	return shown
}

func (c Chart) key() (entries []keyEntry) {
	for i, s := range c.Series {
		if s.Name == "" || len(s.Points) == 0 {
			continue
		}
		e, look := keyEntry{Name: s.Name}, styles[i%len(styles)]
		switch {
		case c.Bars != nil:
			e.Kind, e.Style = "bar", template.CSS("background: "+colour(i))
		case s.asDots():
			e.Glyph, e.Style = look.sign, template.CSS("color: "+colour(i))
		default:
			e.Kind, e.Style = "curve", template.CSS("border-top-color: "+colour(i)+"; border-top-style: "+look.border)
		}
		entries = append(entries, e)
	}
	return entries
}
