package microbench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text writes the report for a terminal.
func Text(w io.Writer, r Report) error {
	var out strings.Builder
	if !r.Valid {
		fmt.Fprintln(&out, invalid)
	}
	fmt.Fprintln(&out, r.headline())
	for _, t := range r.tables() {
		t.write(&out)
	}
	writeList(&out, "Warnings", r.Warnings)
	for _, one := range r.Results {
		writeList(&out, "Not measured on "+one.Label(), one.NotMeasured)
	}
	fmt.Fprintln(&out)
	for i := 0; i+1 < len(r.Notes); i += 2 {
		fmt.Fprintf(&out, "%-12s%s\n", r.Notes[i], r.Notes[i+1])
	}
	if r.Command != "" {
		fmt.Fprintf(&out, "\nThe same again:\n  %s\n", r.Command)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

const invalid = "NOT VALID: the warnings below say why; do not quote these numbers"

func (t table) write(out *strings.Builder) {
	fmt.Fprintf(out, "\n%s\n", t.Title)
	first := 0
	widths := make([]int, len(t.Columns))
	for i, name := range t.Columns {
		widths[i] = utf8.RuneCountInString(name)
	}
	for _, r := range t.Rows {
		first = max(first, utf8.RuneCountInString(r.Name))
		for i, cell := range r.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(name string, cells []string) {
		out.WriteString("  " + name + strings.Repeat(" ", first-utf8.RuneCountInString(name)))
		for i, cell := range cells {
			out.WriteString("  " + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + cell)
		}
		out.WriteByte('\n')
	}
	line("", t.Columns)
	for _, r := range t.Rows {
		line(r.Name, r.Cells)
	}
	if t.Note != "" {
		fmt.Fprintf(out, "  %s\n", t.Note)
	}
}

func writeList(out *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(out, "  - %s\n", line)
	}
}

const unknown = "–"

// number writes x with three significant digits, from 1,000 on as a whole number
// with separators.
func number(x float64) string {
	switch magnitude := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return unknown
	case magnitude < 0.005:
		return "0"
	case magnitude < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case magnitude < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// precise writes a ratio near 1.
func precise(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// short writes a number of sagas or calls.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func optional(x *float64) string {
	if x == nil {
		return unknown
	}
	return number(*x)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
