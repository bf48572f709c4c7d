package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// SideBySide shows results, one at least, a column each. It ranks nothing: whether a
// difference is one takes repeats.
func SideBySide(results ...result.Result) document.Document {
	b := beside{results: results, names: columnNames(results)}
	d := document.Document{
		Title:    strings.Join(b.names, ", "),
		Headline: format.Plural(int64(len(results)), "result") + " side by side",
		Lead:     b.unlike(),
	}
	var invalid []string
	for i, r := range results {
		if !r.Envelope().Validity.Valid {
			invalid = append(invalid, b.names[i])
		}
	}
	if len(invalid) > 0 {
		d.Verdict = fmt.Sprintf("NOT VALID: %s; the warnings below say why", strings.Join(invalid, ", "))
	}
	for _, p := range []*document.Part{
		b.figures(), b.latency(), b.percentiles(), b.scaling(), b.costs(), b.split(), b.resources(), b.settings(), b.check(), b.warnings(), b.commands(),
	} {
		if p != nil {
			d.Parts = append(d.Parts, *p)
		}
	}
	return d
}

type beside struct {
	results []result.Result
	names   []string
}

// columnNames are those of the directories, or of the runs where there are none; as
// long as it takes to tell them apart.
func columnNames(results []result.Result) []string {
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.Envelope().Run.ID
		if r.Dir != "" {
			names[i] = filepath.Base(filepath.Clean(r.Dir))
		}
	}
	for i, name := range names {
		if slices.Index(names, name) != i || slices.Contains(names[i+1:], name) {
			for k, r := range results {
				names[k] = fmt.Sprintf("%d: %s", k+1, cmp.Or(r.Dir, r.Envelope().Run.ID))
			}
			break
		}
	}
	return names
}

// unlike says what keeps the results from being compared.
func (b beside) unlike() (lines []string) {
	for _, what := range []struct {
		text string
		of   func(result.Run) string
	}{
		{"Not ranked: the durability is not the same, and what costs less may keep less", func(r result.Run) string { return cmp.Or(r.Store.Durability, "unknown") }},
		{"Not the same saga", func(r result.Run) string { return r.Scenario.String() }},
		{"Not in the same places", func(r result.Run) string { return r.Topology }},
	} {
		var values []string
		same := true
		for i, r := range b.results {
			value := what.of(r.Envelope().Run)
			values = append(values, b.names[i]+": "+value)
			same = same && value == what.of(b.results[0].Envelope().Run)
		}
		if !same {
			lines = append(lines, what.text+" ("+strings.Join(values, "; ")+").")
		}
	}
	return append(lines, "One of each shows no difference: that takes repeats, made in turns.")
}

// table has a row for each item that at least one result knows.
func (b beside) table(items []besideItem) *document.Table {
	t := &document.Table{Columns: b.names}
	for _, item := range items {
		r, known := document.Row{Name: item.Name}, false
		for _, one := range b.results {
			cell := cmp.Or(item.Of(one), format.Unknown)
			known = known || cell != format.Unknown
			r.Cells = append(r.Cells, cell)
		}
		if known {
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

type besideItem struct {
	Name string
	Of   func(result.Result) string
}

// atEdge makes an item of what a measurement knows.
func atEdge(name string, of func(result.Step) string) besideItem {
	return besideItem{name, func(r result.Result) string {
		if m := r.Edge(); m != nil {
			return of(*m)
		}
		return format.Unknown
	}}
}

func (b beside) figures() *document.Part {
	return &document.Part{Title: "Results", Table: b.table([]besideItem{
		{"store", func(r result.Result) string {
			return strings.TrimSpace(r.Envelope().Run.Store.Driver + " " + r.Envelope().Run.Store.Version)
		}},
		{"durability", func(r result.Result) string { return r.Envelope().Run.Store.Durability }},
		{"found", func(r result.Result) string {
			if r.Capacity != nil {
				return "highest at " + r.Capacity.Capacity.SLO.LatencyLimits()
			}
			if r.Run.Load.OfferedPerS != nil {
				return format.Optional(r.Run.Load.OfferedPerS, format.Number) + "/s offered"
			}
			return format.Count(int64(r.Run.Load.InFlight)) + " in flight"
		}},
		{"sagas/s", func(r result.Result) string {
			if r.Capacity != nil {
				return format.Optional(r.Capacity.Capacity.RatePerS, format.Number)
			}
			return format.Number(r.Run.Load.AchievedPerS)
		}},
		{"limited by", func(r result.Result) string {
			if r.Capacity != nil {
				return r.Capacity.Capacity.Limit.Resource
			}
			return ""
		}},
		atEdge("errors", func(m result.Step) string { return format.Count(m.Load.Errors) }),
		{"valid", func(r result.Result) string {
			if r.Envelope().Validity.Valid {
				return "yes"
			}
			return "no"
		}},
	})}
}

func (b beside) latency() *document.Part {
	var items []besideItem
	for _, p := range result.LatencyFields {
		items = append(items, atEdge(p.Label, func(m result.Step) string {
			if m.Load.Overloaded() {
				return format.Unknown // no latency holds at that rate
			}
			return format.Optional(p.Of(m.LatencyMS), format.Number)
		}))
	}
	return filled("Latency from the due time, ms", b.table(items))
}

func filled(title string, t *document.Table) *document.Part {
	if len(t.Rows) == 0 {
		return nil
	}
	return &document.Part{Title: title, Table: t}
}

// percentiles are the curves of the runs in one chart.
func (b beside) percentiles() *document.Part {
	var curves []curve
	for i, r := range b.results {
		if enough(r.Recording.Latency) {
			curves = append(curves, curve{b.names[i], r.Recording.Latency})
		}
	}
	if len(curves) == 0 {
		return nil
	}
	return percentilesOf(curves)
}

func (b beside) costs() *document.Part {
	var items []besideItem
	for _, f := range result.CostFields {
		items = append(items, atEdge(f.Label, func(m result.Step) string { return f.Text(m.CostPerSaga) }))
	}
	return filled("Cost per saga", b.table(items))
}

func (b beside) split() *document.Part {
	var names []string
	var costs []result.Cost
	for i, r := range b.results {
		if m := r.Edge(); m != nil {
			names, costs = append(names, b.names[i]), append(costs, m.CostPerSaga)
		}
	}
	return splitPart(names, costs)
}

func (b beside) resources() *document.Part {
	var items []besideItem
	for _, f := range result.ResourceFields {
		if f.Label != "" {
			items = append(items, atEdge(f.Label, func(m result.Step) string { return f.Text(m.Resources) }))
		}
	}
	return filled("Resources used", b.table(items))
}

// settings are those that are not the same everywhere.
func (b beside) settings() *document.Part {
	all := map[string]bool{}
	for _, r := range b.results {
		for name := range r.Envelope().Run.Store.Settings {
			all[name] = true
		}
	}
	items := []besideItem{
		{"machine", func(r result.Result) string { return r.Envelope().Environment.Machine() }},
		{"software", func(r result.Result) string {
			return r.Envelope().Environment.Kernel + ", " + r.Envelope().Environment.Go
		}},
		{"commit", func(r result.Result) string {
			if c := r.Envelope().Run.Commit; c != nil {
				return *c
			}
			return ""
		}},
		{"versions", func(r result.Result) string { return result.Pairs(r.Envelope().Environment.Versions, " ") }},
		{"saga", func(r result.Result) string { return r.Envelope().Run.Scenario.String() }},
		{"topology", func(r result.Result) string { return r.Envelope().Run.Topology }},
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		items = append(items, besideItem{name, func(r result.Result) string { return r.Envelope().Run.Store.Settings[name] }})
	}
	var f facts
	for _, item := range items {
		first := item.Of(b.results[0])
		if !slices.ContainsFunc(b.results, func(r result.Result) bool { return item.Of(r) != first }) {
			continue
		}
		name := item.Name
		for i, r := range b.results {
			f.add(name, b.names[i]+": "+cmp.Or(item.Of(r), format.Unknown))
			name = ""
		}
	}
	if f == nil {
		return nil
	}
	return &document.Part{Title: "What is not the same", Facts: f}
}

func (b beside) check() *document.Part {
	var items []besideItem
	for i, count := range (result.Check{}).Counts() {
		items = append(items, besideItem{count.Name, func(r result.Result) string {
			return format.Optional(r.Envelope().Check.Counts()[i].N, format.Count)
		}})
	}
	return filled("Check", b.table(items))
}

func (b beside) warnings() *document.Part {
	var list []string
	for i, r := range b.results {
		for _, warning := range r.Envelope().Validity.Warnings {
			list = append(list, b.names[i]+": "+warning)
		}
	}
	return warningsPart(result.Validity{Warnings: list})
}

func (b beside) commands() *document.Part {
	var f facts
	for i, r := range b.results {
		f.add(b.names[i], r.Envelope().Run.Command)
	}
	return &document.Part{Title: "Reproduce with", Facts: f}
}
