package document

import (
	"fmt"
	"io"
	"strings"

	"sagabench/internal/format"
)

// Markdown writes the document in GitHub's dialect, which has tables.
func Markdown(w io.Writer, d Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	var out strings.Builder
	block := func(layout string, args ...any) { fmt.Fprintf(&out, layout+"\n\n", args...) }
	if d.Verdict != "" {
		block("> **%s**", escape(d.Verdict))
	}
	block("# %s", escape(d.Headline))
	for _, text := range d.Lead {
		block("%s", paragraph(text))
	}
	for _, p := range d.Parts {
		if p.Title != "" {
			block("## %s", escape(p.Title))
		}
		table, rows := p.thinned()
		for _, text := range p.texts(rows) {
			block("%s", paragraph(text))
		}
		if len(p.Facts) > 0 {
			out.WriteString("| | |\n| --- | --- |\n")
			for _, f := range p.Facts {
				markdownRow(&out, f.Name, []string{f.Value})
			}
			out.WriteByte('\n')
		}
		for _, item := range p.List {
			fmt.Fprintf(&out, "- %s\n", paragraph(item))
		}
		if len(p.List) > 0 {
			out.WriteByte('\n')
		}
		if table != nil {
			markdownRow(&out, table.Corner, table.Columns)
			out.WriteString("| --- |" + strings.Repeat(" ---: |", len(table.Columns)) + "\n")
			for _, r := range table.Rows {
				markdownRow(&out, r.Name, r.Cells)
			}
			out.WriteByte('\n')
		}
	}
	if d.Command != "" {
		fence := "```"
		for strings.Contains(d.Command, fence) {
			fence += "`"
		}
		block("## Reproduce with")
		block("%s\n%s\n%s", fence, format.Printable(d.Command), fence)
	}
	_, err := io.WriteString(w, strings.TrimRight(out.String(), "\n")+"\n")
	return err
}

func markdownRow(out *strings.Builder, name string, cells []string) {
	out.WriteString("| " + escape(strings.TrimSpace(name)) + " |")
	for _, cell := range cells {
		out.WriteString(" " + escape(cell) + " |")
	}
	out.WriteByte('\n')
}

// paragraph escapes text at the beginning of a line, so that it starts no heading or
// list.
func paragraph(text string) string {
	if text != "" && strings.ContainsRune("#+-=", rune(text[0])) {
		return `\` + escape(text)
	}
	return escape(text)
}

// escape makes text literal, and one line.
func escape(text string) string {
	var out strings.Builder
	for _, r := range format.Printable(text) {
		if strings.ContainsRune("\\`*_[]<>|~&", r) {
			out.WriteRune('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
