package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Text writes the result for a terminal, what matters most first. dir is where
// the files of the result are; empty when there are none.
func Text(w io.Writer, s Summary, dir string) error {
	v := newView(s, dir)
	var out strings.Builder
	if v.Verdict != "" {
		fmt.Fprintln(&out, v.Verdict)
	}
	fmt.Fprintf(&out, "%s\n%s\n\n", v.Headline, v.Outcome)
	writeTable(&out, v.Latency)
	writeSections(&out, v.Findings)
	writeWarnings(&out, v.Warnings)
	writeSections(&out, v.Details)
	fmt.Fprintf(&out, "\nThe same again:\n  %s\n", v.Command)
	_, err := io.WriteString(w, out.String())
	return err
}

const (
	nameWidth = 21
	cellWidth = 8
)

func writeTable(out *strings.Builder, t table) {
	line := func(name string, cells []string) {
		out.WriteString(pad(name, nameWidth+2))
		for _, cell := range cells {
			fmt.Fprintf(out, "%s%s", strings.Repeat(" ", max(1, cellWidth-utf8.RuneCountInString(cell))), cell)
		}
		out.WriteByte('\n')
	}
	line(t.Title, t.Columns)
	for _, r := range t.Rows {
		line("  "+r.Name, r.Cells)
	}
}

func writeSections(out *strings.Builder, sections []section) {
	for _, part := range sections {
		fmt.Fprintf(out, "\n%s\n", part.Title)
		for _, r := range part.Rows {
			fmt.Fprintf(out, "  %s  %s\n", pad(r.Name, nameWidth), r.Value)
		}
	}
}

func writeWarnings(out *strings.Builder, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	out.WriteString("\nWarnings\n")
	for _, warning := range warnings {
		fmt.Fprintf(out, "  - %s\n", warning)
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
