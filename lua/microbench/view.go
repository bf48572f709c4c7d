package microbench

import (
	"fmt"
	"strconv"
	"strings"

	"sagabench/internal/document"
	"sagabench/internal/format"
	"sagabench/lua"
)

// Report is what Document shows.
type Report struct {
	Results  []Result
	Valid    bool
	Warnings []string
	Notes    []document.Fact // the machine, and what else is to be known
	Command  string          // to be typed for the same again
}

// Document is the report as it is shown.
func (r Report) Document() document.Document {
	d := document.Document{Title: "The price of each script", Headline: r.headline(), Command: r.Command}
	if !r.Valid {
		d.Verdict = "NOT VALID: the warnings below say why; do not quote these numbers"
	}
	for _, t := range r.tables() {
		d.Parts = append(d.Parts, t.part())
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			d.Parts = append(d.Parts, document.Part{Title: title, List: lines})
		}
	}
	list("Warnings", r.Warnings)
	for _, one := range r.Results {
		list("Not measured on "+one.Label(), one.NotMeasured)
	}
	if len(r.Notes) > 0 {
		d.Parts = append(d.Parts, document.Part{Title: "Environment", Facts: r.Notes})
	}
	return d
}

// table is one of a report.
type table struct {
	Title   string
	Note    string // how to read it; may be empty
	Columns []string
	Rows    []document.Row
	Charts  []document.Chart // of its rows
}

func (t *table) add(name string, cells ...string) {
	t.Rows = append(t.Rows, document.Row{Name: name, Cells: cells})
}

func (t table) part() document.Part {
	p := document.Part{Title: t.Title, Table: &document.Table{Columns: t.Columns, Rows: t.Rows}}
	if t.Note != "" {
		p.Text = []string{t.Note}
	}
	if len(t.Charts) > 0 {
		p.Chart, p.More = &t.Charts[0], t.Charts[1:]
	}
	return p
}

// Label tells servers apart.
func (r Result) Label() string {
	name := "Redis " + r.Server.Version
	if threads := r.Server.Settings["io-threads"]; threads != "" && threads != "1" {
		name += ", io-threads " + threads
	}
	return name
}

// headline is the result in one line.
func (r Report) headline() string {
	if len(r.Results) == 0 {
		return "nothing was measured"
	}
	first := r.Results[0]
	if len(first.Comparisons) > 0 {
		return fmt.Sprintf("The scripts of another directory beside ours on %s, %d rounds", first.Label(), first.Method.Rounds)
	}
	for _, c := range first.Ceilings {
		if c.Steps == base.Steps && c.Sagas == 16 && c.Pipeline == base.Pipeline {
			line := fmt.Sprintf("One core of %s carries %s sagas/s: %s µs for one of %d steps, 16 to a call", first.Label(), number(c.PerS), number(c.CPUUS), c.Steps)
			for _, old := range first.Classic {
				if old.Pipeline == 1 {
					line += fmt.Sprintf("; the classic pattern, a call to a round trip, takes %s", number(old.CPUUS))
				}
			}
			return line
		}
	}
	return "The scripts on " + first.Label()
}

// tables are those of all servers together, then of each.
func (r Report) tables() []table {
	var all []table
	if len(r.Results) > 1 {
		all = append(all, sideBySide(r.Results))
	}
	all = append(all, agreementTable(r.Results))
	for _, one := range r.Results {
		if !one.Method.Brief && len(one.Comparisons) == 0 {
			all = append(all, one.tables(len(r.Results) > 1)...)
		}
		all = append(all, comparisonTable(one))
	}
	var filled []table
	for _, t := range all {
		if len(t.Rows) > 0 {
			filled = append(filled, t)
		}
	}
	return filled
}

func (r Result) tables(several bool) []table {
	all := []table{
		r.priceTable(), r.classicTable(), r.splitTable(), r.commandTable(),
		r.sizeTable(1), r.sizeTable(16), r.callTable(), r.recordTable(),
	}
	if several {
		for i := range all {
			all[i].Title = r.Label() + ": " + all[i].Title
		}
	}
	return all
}

// scripts are the names of the operations, in order.
func scripts() (names []string) {
	for _, s := range lua.All() {
		names = append(names, s.Name)
	}
	return names
}

// price finds what an operation, or a reference, costs at a shape.
func (r Result) price(probe string, s Shape) *Price {
	key := Key{Probe: probe, Shape: s}
	for i, p := range r.Prices {
		if p.Key == key {
			return &r.Prices[i]
		}
	}
	return nil
}

func (r Result) perSaga(probe string, s Shape) string {
	if p := r.price(probe, s); p != nil {
		return number(p.PerSagaUS)
	}
	return unknown
}

func sideBySide(results []Result) table {
	t := table{Title: "Servers side by side, CPU µs per saga", Note: "Sagas a call / calls sent at once; of the thread that runs commands for the ceiling."}
	for _, r := range results {
		t.Columns = append(t.Columns, strings.TrimPrefix(r.Label(), "Redis "))
	}
	row := func(name string, of func(Result) string) {
		var cells []string
		for _, r := range results {
			cells = append(cells, of(r))
		}
		t.add(name, cells...)
	}
	for _, sagas := range splitBatches {
		for _, pipeline := range []float64{1, base.Pipeline} {
			s := base.of(sagas)
			s.Pipeline = pipeline
			at := " " + short(sagas) + "/" + short(pipeline)
			for _, name := range scripts()[:3] {
				row(name+at, func(r Result) string { return r.perSaga(name, s) })
			}
			row("sagas/s of a core"+at, func(r Result) string {
				if c := r.ceiling(s); c != nil {
					return number(c.PerS)
				}
				return unknown
			})
		}
	}
	row("classic, a saga", func(r Result) string {
		for _, c := range r.Classic {
			if c.Pipeline == 1 {
				return number(c.CPUUS)
			}
		}
		return unknown
	})
	return t
}

func agreementTable(results []Result) table {
	t := table{
		Title:   "A run of sagas, and the sum of its scripts at its batches",
		Note:    "CPU µs per saga. Paced: round trips as often as in the run; back to back: the server never waits, which is its ceiling.",
		Columns: []string{"sagas a call", "calls at once", "every µs", "run", "sum, paced", "to run", "back to back", "sagas/s", "ceiling", "reached"},
	}
	for _, r := range results {
		for _, a := range r.Agreements {
			t.add(r.Label(), number(a.SagasPerCall), number(a.CallsAtOnce), number(a.EveryUS), number(a.RunUS), number(a.PacedUS),
				number(a.Ratio), number(a.BackToBackUS), number(a.AchievedPerS), number(a.CeilingPerS), fmt.Sprintf("%.0f%%", 100*a.Share))
		}
	}
	return t
}

func comparisonTable(r Result) table {
	t := table{
		Title:   "The other directory's scripts against ours, CPU µs per call",
		Note:    "The interval holds the true median of the ratio with 99%; a difference is named when it leaves out 1, from 16 rounds on.",
		Columns: []string{"ours", "other", "other/ours", "from", "to", "the other is"},
	}
	for _, c := range r.Comparisons {
		t.add(c.Probe+", "+short(c.Sagas)+" a call", number(c.OursUS.Median), number(c.OtherUS.Median),
			precise(c.Ratio.Median), precise(c.Ratio.Low), precise(c.Ratio.High), c.Verdict)
	}
	return t
}

const unknown = format.Unknown

func number(x float64) string { return format.Number(x) }

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
