package document

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sagabench/internal/format"
)

// Text breaks lines of words at lineWidth, the headline and the headers of tables at
// fullWidth. It breaks neither commands nor the rows of tables.
const (
	lineWidth = 80
	fullWidth = 110
)

// Text writes the document for a terminal.
func Text(w io.Writer, d Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	var out strings.Builder
	line := func(layout string, args ...any) {
		out.WriteString(strings.TrimRight(format.Printable(fmt.Sprintf(layout, args...)), " ") + "\n")
	}
	words := func(first, text string) {
		for _, wrapped := range wrap(first, text, lineWidth) {
			line("%s", wrapped)
		}
	}
	if d.Verdict != "" {
		line("%s", d.Verdict)
	}
	for _, wrapped := range wrap("", d.Headline, fullWidth) {
		line("%s", wrapped)
	}
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

// Minimum widths of columns, the space before them included.
const (
	nameWidth = 21
	cellWidth = 7
)

// wrap breaks text at spaces. The first line begins with first, and further lines with
// as many spaces.
func wrap(first, text string, width int) (lines []string) {
	line := first
	for i, word := range strings.Split(text, " ") {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
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

// writeTable aligns columns of numbers on the right, and those with more words on the left.
func writeTable(line func(string, ...any), corner string, t Table) {
	first := max(nameWidth, utf8.RuneCountInString(corner)) + 2
	if corner == "" && t.Corner != "" {
		corner = "  " + t.Corner
		first = utf8.RuneCountInString(corner)
	}
	cells, words := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	for _, r := range t.Rows {
		first = max(first, 2+utf8.RuneCountInString(r.Name))
		for i, cell := range r.Cells {
			cells[i] = max(cells[i], utf8.RuneCountInString(cell))
			first, _ := utf8.DecodeRuneInString(cell)
			switch {
			case unicode.IsLetter(first):
				words[i]++
			case unicode.IsDigit(first):
				words[i]--
			}
		}
	}
	heads, widths := headers(t.Columns, cells, fullWidth-first)
	row := func(name string, cells []string) {
		var out strings.Builder
		out.WriteString(pad(name, first))
		for i, cell := range cells {
			space := strings.Repeat(" ", widths[i]-2-utf8.RuneCountInString(cell))
			if words[i] > 0 {
				out.WriteString("  " + cell + space)
			} else {
				out.WriteString("  " + space + cell)
			}
		}
		line("%s", strings.TrimRight(out.String(), " "))
	}
	for i, head := range heads {
		name := ""
		if i == len(heads)-1 {
			name = corner
		}
		row(name, head)
	}
	for _, r := range t.Rows {
		row("  "+r.Name, r.Cells)
	}
}

// headers breaks the headers of columns into as few lines as they need to fit beside each
// other. It returns the lines, and the widths of the columns with the space before them. cells
// are the widths of what is below.
func headers(columns []string, cells []int, room int) (lines [][]string, widths []int) {
	for n := 1; ; n++ {
		all, more := 0, false
		broken := make([][]string, len(columns))
		widths = make([]int, len(columns))
		for i, name := range columns {
			width := cells[i]
			for broken[i] = wrap("", name, width); len(broken[i]) > n; broken[i] = wrap("", name, width) {
				width++
			}
			for _, text := range broken[i] {
				width = max(width, utf8.RuneCountInString(text))
			}
			widths[i] = max(cellWidth, width+2)
			all += widths[i]
			more = more || strings.Count(name, " ") >= n
		}
		if all > room && more {
			continue
		}
		lines = make([][]string, n)
		for i := range lines {
			for _, head := range broken {
				text := ""
				if at := i - (n - len(head)); at >= 0 { // the last lines are beside each other
					text = head[at]
				}
				lines[i] = append(lines[i], text)
			}
		}
		return lines, widths
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
