package report

import (
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// apart is how far from each other the rates are, relatively, that the costs and the
// resources are shown for: around the edge there are many that are nearly the same.
const apart = 0.1

// samples are a measurement each for some rates that the system could follow, the
// highest included. Of a rate that was measured more than once it is the last.
func (c search) samples() (names []string, chosen []result.Step) {
	for _, m := range slices.Backward(c.ByRate()) {
		if m.Load.Overloaded() || !m.Validity.Valid {
			continue
		}
		if n := len(chosen); n == 0 || *m.Load.OfferedPerS < *chosen[n-1].Load.OfferedPerS*(1-apart) {
			chosen = append(chosen, m)
		}
	}
	slices.Reverse(chosen)
	for _, m := range chosen {
		names = append(names, format.Number(*m.Load.OfferedPerS)+"/s")
	}
	return names, chosen
}

// costPart is what a saga costs at some rates: batches fill as the rate rises.
func (c search) costPart() *document.Part {
	names, chosen := c.samples()
	var costs []result.Cost
	for _, m := range chosen {
		costs = append(costs, m.CostPerSaga)
	}
	chart := splitChart(names, costs)
	if chart == nil {
		return nil
	}
	last := costs[len(costs)-1]
	var said []string
	for _, f := range result.CPUFields() {
		if us := f.Of(last); us != nil {
			said = append(said, f.Spender+" "+format.Number(*us))
		}
	}
	chart.Summary = fmt.Sprintf("CPU per saga in µs, by who spends it, at some rates; at %s: %s.", names[len(names)-1], strings.Join(said, ", "))
	table := document.Table{Corner: "offered"}
	for _, name := range names {
		table.Rows = append(table.Rows, document.Row{Name: name})
	}
	for _, f := range result.CostFields {
		if !slices.ContainsFunc(costs, func(c result.Cost) bool { return f.Of(c) != nil }) {
			continue
		}
		table.Columns = append(table.Columns, f.Heading())
		for i, c := range costs {
			table.Rows[i].Cells = append(table.Rows[i].Cells, format.Optional(f.Of(c), format.Number))
		}
	}
	return &document.Part{Title: "Cost per saga over the rate", Chart: chart, Table: &table}
}

// resourcesPart is what was used of each resource at some rates.
func (c search) resourcesPart() *document.Part {
	names, chosen := c.samples()
	table := document.Table{Corner: "offered"}
	for _, name := range names {
		table.Rows = append(table.Rows, document.Row{Name: name})
	}
	for _, f := range result.ResourceFields {
		used := slices.ContainsFunc(chosen, func(m result.Step) bool { x := f.Of(m.Resources); return x != nil && *x > 0 })
		if f.Label == "" || !used {
			continue
		}
		table.Columns = append(table.Columns, f.Label)
		for i, m := range chosen {
			table.Rows[i].Cells = append(table.Rows[i].Cells, f.Text(m.Resources))
		}
	}
	if len(table.Columns) == 0 {
		return nil
	}
	return &document.Part{Title: "Resources over the rate", Text: []string{"CPU in cores kept busy."}, Table: &table}
}
