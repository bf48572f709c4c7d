package document

import (
	"cmp"
	"maps"
	"slices"

	"sagabench/internal/format"
)

// shownRows is how many rows of a long table text and Markdown show.
const shownRows = 12

// charts returns the part's charts that have points.
func (p Part) charts() (all []Chart) {
	if p.Chart != nil {
		all = append(all, *p.Chart)
	}
	all = append(all, p.More...)
	return slices.DeleteFunc(all, func(c Chart) bool {
		return !slices.ContainsFunc(c.Series, func(s Series) bool { return len(s.Points) > 0 })
	})
}

// table returns the part's table, else one made from its charts, else nil.
func (p Part) table() *Table {
	charts := p.charts()
	switch {
	case p.Table != nil:
		return p.Table
	case len(charts) == 0:
		return nil
	case charts[0].Bars != nil:
		return barTable(charts)
	default:
		return curveTable(charts)
	}
}

// thinned returns the table that text and Markdown show: evenly spaced rows of a long
// one, and none where facts give a chart's numbers already. If rows are left out, it
// also returns how many there were.
func (p Part) thinned() (shown *Table, rows int) {
	if p.Table == nil && len(p.Facts) > 0 {
		return nil, 0
	}
	t := p.table()
	if t != nil && len(t.Rows) == 0 {
		return nil, 0
	}
	if t == nil || p.Table != nil && !p.Thin || len(t.Rows) <= shownRows {
		return t, 0
	}
	thin := &Table{Corner: t.Corner, Columns: t.Columns}
	for i := range shownRows {
		thin.Rows = append(thin.Rows, t.Rows[i*(len(t.Rows)-1)/(shownRows-1)])
	}
	return thin, len(t.Rows)
}

// barTable has a row for each bar, of which all charts have the same, and a column for each
// layer and the ends of its intervals.
func barTable(charts []Chart) *Table {
	t := &Table{}
	for _, name := range charts[0].Bars {
		t.Rows = append(t.Rows, Row{Name: name})
	}
	column := func(name string, cell func(i int) (x float64, known bool)) {
		t.Columns = append(t.Columns, name)
		for i := range t.Rows {
			text := format.Unknown
			if x, known := cell(i); known {
				text = format.Number(x)
			}
			t.Rows[i].Cells = append(t.Rows[i].Cells, text)
		}
	}
	for _, c := range charts {
		for _, s := range c.Series {
			column(cmp.Or(s.Name, c.X.Label), func(i int) (float64, bool) { return s.Points[i].Y, !s.Points[i].Missing })
			if slices.ContainsFunc(s.Points, Point.interval) {
				column("from", func(i int) (float64, bool) { return s.Points[i].Low, s.Points[i].interval() })
				column("to", func(i int) (float64, bool) { return s.Points[i].High, s.Points[i].interval() })
			}
		}
		if len(c.Series) > 1 {
			column("all", c.length)
		}
	}
	return t
}

// curveTable has a row for each x of the charts' common axis, and columns for each
// curve and the ends of its intervals.
func curveTable(charts []Chart) *Table {
	t := &Table{Corner: charts[0].X.Label}
	rows := map[float64][]map[int]string{} // by x; several where a curve has several points
	add := func(p Point, column int) {
		at := slices.IndexFunc(rows[p.X], func(cells map[int]string) bool { return cells[column] == "" })
		if at < 0 {
			at = len(rows[p.X])
			rows[p.X] = append(rows[p.X], map[int]string{})
		}
		cells := rows[p.X][at]
		cells[column] = format.Number(p.Y)
		if p.interval() {
			cells[column+1], cells[column+2] = format.Number(p.Low), format.Number(p.High)
		}
	}
	for _, c := range charts {
		for _, s := range c.Series {
			name, at := cmp.Or(s.Name, c.Y.Label), len(t.Columns)
			t.Columns = append(t.Columns, name)
			if slices.ContainsFunc(s.Points, Point.interval) {
				t.Columns = append(t.Columns, "from", "to")
			}
			for _, p := range s.Points {
				add(p, at)
			}
		}
	}
	for _, x := range slices.Sorted(maps.Keys(rows)) {
		for _, cells := range rows[x] {
			r := Row{Name: charts[0].X.name(x)}
			for i := range t.Columns {
				r.Cells = append(r.Cells, cmp.Or(cells[i], format.Unknown))
			}
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

// name writes x as the name of a row.
func (a Axis) name(x float64) string {
	if a.Scale == Nines {
		return "p" + format.Short(x)
	}
	return format.Short(x)
}
