package report

import (
	"fmt"
	"slices"
	"strings"

	"sagabench/internal/document"
)

// shownRates is how many rates the costs and the resources are shown for.
const shownRates = 8

// samples are a measurement each for some rates that the system could follow, the
// highest included. Of a rate that was measured more than once it is the last.
func (c Capacity) samples() (names []string, chosen []Measured) {
	var followed []Measured
	for _, m := range c.byRate() {
		if m.Load.Overloaded() || !m.Validity.Valid {
			continue
		}
		if n := len(followed); n > 0 && *followed[n-1].Load.OfferedPerS == *m.Load.OfferedPerS {
			followed[n-1] = m
		} else {
			followed = append(followed, m)
		}
	}
	shown := min(len(followed), shownRates)
	for i := range shown {
		m := followed[len(followed)-1]
		if i < shown-1 {
			m = followed[i*(len(followed)-1)/(shown-1)]
		}
		chosen = append(chosen, m)
		names = append(names, number(*m.Load.OfferedPerS)+"/s")
	}
	return names, chosen
}

// costPart is what a saga costs at some rates: batches fill as the rate rises.
func (c Capacity) costPart() *document.Part {
	names, chosen := c.samples()
	var costs []Cost
	for _, m := range chosen {
		costs = append(costs, m.CostPerSaga)
	}
	chart := splitChart(names, costs)
	if chart == nil {
		return nil
	}
	last := costs[len(costs)-1]
	var said []string
	for _, who := range spenders() {
		if us := who.of(last); us != nil {
			said = append(said, who.name+" "+number(*us))
		}
	}
	chart.Summary = fmt.Sprintf("CPU per saga in µs, by who spends it, at some rates; at %s: %s.", names[len(names)-1], strings.Join(said, ", "))
	table := document.Table{Corner: "offered"}
	for _, item := range costItems() {
		if !slices.ContainsFunc(costs, func(c Cost) bool { return item.of(c) != nil }) {
			continue
		}
		table.Columns = append(table.Columns, strings.TrimSpace(item.name+","+item.unit))
		if item.unit == "" {
			table.Columns[len(table.Columns)-1] = item.name
		}
	}
	for i, c := range costs {
		r := document.Row{Name: names[i]}
		for _, item := range costItems() {
			if slices.ContainsFunc(costs, func(c Cost) bool { return item.of(c) != nil }) {
				r.Cells = append(r.Cells, optional(item.of(c)))
			}
		}
		table.Rows = append(table.Rows, r)
	}
	return &document.Part{Title: "Cost per saga over the rate", Chart: chart, Table: &table}
}

// resourcesPart is what was used of each resource at some rates.
func (c Capacity) resourcesPart() *document.Part {
	names, chosen := c.samples()
	table := document.Table{Corner: "offered"}
	for _, name := range names {
		table.Rows = append(table.Rows, document.Row{Name: name})
	}
	for _, item := range resourceItems() {
		cells, known := make([]string, len(chosen)), false
		for i, m := range chosen {
			cells[i] = item.text(m.Resources)
			known = known || cells[i] != unknown
		}
		if !known {
			continue
		}
		table.Columns = append(table.Columns, item.name)
		for i, cell := range cells {
			table.Rows[i].Cells = append(table.Rows[i].Cells, cell)
		}
	}
	if len(table.Columns) == 0 {
		return nil
	}
	return &document.Part{Title: "Resources over the rate", Text: []string{"CPU in cores kept busy."}, Table: &table}
}

// resourceItem is one of the resources, by its name.
type resourceItem struct {
	name  string
	of    func(Resources) *float64
	share bool
}

func (i resourceItem) text(r Resources) string {
	x := i.of(r)
	if x != nil && i.share {
		return percent(*x)
	}
	return optional(x)
}

func resourceItems() []resourceItem {
	return []resourceItem{
		{"load", func(r Resources) *float64 { return r.LoadCores }, false},
		{"app", func(r Resources) *float64 { return r.AppCores }, false},
		{"store", func(r Resources) *float64 { return r.StoreCores }, false},
		{"machine", func(r Resources) *float64 { return r.HostBusy }, true},
		{"busiest core", func(r Resources) *float64 { return r.BusiestCore }, true},
		{"fsyncs/s", func(r Resources) *float64 { return r.StoreFsyncsPerS }, false},
		{"calls under way", func(r Resources) *float64 { return r.StoreCallsBusy }, false},
		{"lock waits", func(r Resources) *float64 { return r.StoreLockWaits }, false},
		{"network, bytes/s", func(r Resources) *float64 { return r.NetworkBytesPerS }, false},
		{"network", func(r Resources) *float64 { return r.NetworkShare }, true},
	}
}
