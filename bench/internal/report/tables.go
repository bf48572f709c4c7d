package report

import (
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// row is a row of a table with a column for each of several results. It writes
// format.Unknown for what a result lacks.
type row struct {
	name string
	cell func(i int) string
}

// newTable leaves out the rows that no result has.
func newTable(columns []string, rows []row) *document.Table {
	t := &document.Table{Columns: columns}
	for _, r := range rows {
		one, known := document.Row{Name: r.name}, false
		for i := range columns {
			cell := r.cell(i)
			if cell == "" {
				cell = format.Unknown
			}
			known = known || cell != format.Unknown
			one.Cells = append(one.Cells, cell)
		}
		if known {
			t.Rows = append(t.Rows, one)
		}
	}
	return t
}

// figureTable has a row for each figure with a label. figures has an element for each
// column.
func figureTable[T any](columns []string, figures []T, fields []result.Field[T]) *document.Table {
	var rows []row
	for _, f := range fields {
		if f.Label != "" {
			rows = append(rows, row{f.Label, func(i int) string { return f.Text(figures[i]) }})
		}
	}
	return newTable(columns, rows)
}

// tablePart returns nil if the table has no rows.
func tablePart(title string, t *document.Table) *document.Part {
	if len(t.Rows) == 0 {
		return nil
	}
	return &document.Part{Title: title, Table: t}
}
