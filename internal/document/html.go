package document

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.gohtml
var pageSource string

// openRows is how many rows a table behind a chart has at most to be shown without
// being asked for.
const openRows = 8

// HTML writes the document as one page that needs nothing else.
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
		shown, err := newPagePart(p)
		if err != nil {
			return err
		}
		content.Parts = append(content.Parts, shown)
	}
	if err := page.Execute(w, content); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

type pagePart struct {
	Part
	Drawn  []drawn
	Behind *behind // the table of what was drawn
	Plain  *Table  // that of a part without charts
}

type behind struct {
	Table *Table
	Open  bool
}

type drawn struct {
	SVG     template.HTML
	Caption string
	Key     []keyEntry
}

// keyEntry says which series is which. It stands beside the drawing, not in it,
// where it would cover something.
type keyEntry struct {
	Name, Kind, Glyph string
	Style             template.CSS
}

func newPagePart(p Part) (pagePart, error) {
	shown := pagePart{Part: p}
	for _, c := range p.charts() {
		svg, err := c.svg()
		if err != nil {
			return shown, fmt.Errorf("%s: %w", p.Title, err)
		}
		shown.Drawn = append(shown.Drawn, drawn{SVG: svg, Caption: c.Summary, Key: c.key()})
	}
	switch t := p.table(); {
	case t == nil || len(t.Rows) == 0:
	case shown.Drawn == nil:
		shown.Plain = t
	default:
		shown.Behind = &behind{Table: t, Open: len(t.Rows) <= openRows}
	}
	return shown, nil
}

func (c Chart) key() (entries []keyEntry) {
	for i, s := range c.Series {
		if s.Name == "" || len(s.Points) == 0 {
			continue
		}
		colour := "var(" + variables[4+i%layers] + ")"
		e := keyEntry{Name: s.Name}
		switch {
		case c.Bars != nil:
			e.Kind, e.Style = "bar", template.CSS("background: "+colour)
		case s.Dots || len(s.Points) == 1:
			e.Glyph, e.Style = []string{"●", "■", "▲"}[i%len(glyphs)], template.CSS("color: "+colour)
		default:
			e.Kind = "curve"
			e.Style = template.CSS("border-top-color: " + colour + "; border-top-style: " + []string{"solid", "dashed", "dotted"}[i%len(dashes)])
		}
		entries = append(entries, e)
	}
	return entries
}
