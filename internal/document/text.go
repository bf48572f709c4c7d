package document

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sagabench/internal/format"
)

// lineWidth is where Text breaks lines of words. Tables and commands are not broken.
const lineWidth = 80

// Text writes the document for a terminal.
func Text(w io.Writer, d Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	var out strings.Builder
	line := func(format string, args ...any) {
		out.WriteString(strings.TrimRight(strings.Map(printable, fmt.Sprintf(format, args...)), " ") + "\n")
	}
	words := func(first, text string) {
		for _, wrapped := range wrap(first, text) {
			line("%s", wrapped)
		}
	}
	if d.Verdict != "" {
		line("%s", d.Verdict)
	}
	line("%s", d.Headline)
	for _, text := range d.Lead {
		words("", text)
	}
	for _, p := range d.Parts {
		line("")
		writePart(line, words, p)
	}
	if d.Command != "" {
		line("")
		line("Reproduce with:")
		line("  %s", d.Command)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// printable replaces control characters, with which a server's setting, for example,
// could control the terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// Minimum widths of columns, the space before them included.
const (
	nameWidth = 21
	cellWidth = 7
)

// wrap breaks text at spaces. The first line begins with first, and further lines with
// as many spaces.
func wrap(first, text string) (lines []string) {
	line := first
	for i, word := range strings.Split(text, " ") {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
			lines = append(lines, line)
			line = pad("", utf8.RuneCountInString(first)) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func writePart(line func(string, ...any), words func(first, text string), p Part) {
	table, rows := p.thinned()
	texts := p.texts(rows)
	// A short title directly above a table goes into its corner.
	corner := ""
	if table != nil && table.Corner == "" && len(texts)+len(p.Facts)+len(p.List) == 0 && utf8.RuneCountInString(p.Title) <= nameWidth {
		corner = p.Title
	} else if p.Title != "" {
		line("%s", p.Title)
	}
	for _, text := range texts {
		words("  ", text)
	}
	for _, f := range p.Facts {
		words("  "+pad(f.Name, nameWidth)+"  ", f.Value)
	}
	for _, item := range p.List {
		words("  - ", item)
	}
	if table != nil {
		writeTable(line, corner, *table)
	}
}

// texts returns the paragraphs of a part, and the summaries of its charts, which are
// not drawn. rows is from thinned.
func (p Part) texts(rows int) []string {
	texts := append([]string{}, p.Text...)
	for _, c := range p.charts() {
		if p.Table == nil && len(p.Facts) > 0 {
			break // the facts say it
		}
		if c.Summary != "" {
			texts = append(texts, c.Summary)
		}
	}
	if rows > 0 {
		texts = append(texts, fmt.Sprintf("%d of %s rows:", shownRows, format.Count(rows)))
	}
	return texts
}

// writeTable aligns numbers on the right and words on the left.
func writeTable(line func(string, ...any), corner string, t Table) {
	if corner == "" && t.Corner != "" {
		corner = "  " + t.Corner
	}
	first := max(nameWidth, utf8.RuneCountInString(corner)) + 2
	widths, words := make([]int, len(t.Columns)), make([]bool, len(t.Columns))
	for i, name := range t.Columns {
		widths[i] = max(cellWidth, utf8.RuneCountInString(name)+2)
	}
	for _, r := range t.Rows {
		first = max(first, 2+utf8.RuneCountInString(r.Name))
		for i, cell := range r.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell)+2)
			first, _ := utf8.DecodeRuneInString(cell)
			words[i] = words[i] || unicode.IsLetter(first)
		}
	}
	row := func(name string, cells []string) {
		var out strings.Builder
		out.WriteString(pad(name, first))
		for i, cell := range cells {
			space := strings.Repeat(" ", widths[i]-2-utf8.RuneCountInString(cell))
			if words[i] {
				out.WriteString("  " + cell + space)
			} else {
				out.WriteString("  " + space + cell)
			}
		}
		line("%s", strings.TrimRight(out.String(), " "))
	}
	row(corner, t.Columns)
	for _, r := range t.Rows {
		row("  "+r.Name, r.Cells)
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
