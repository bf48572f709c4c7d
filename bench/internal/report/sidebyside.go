package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sagabench/bench/internal/picture"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// sideBySide renders the parts of several results. The figures of a result are those of
// its main step, which are all unknown if it has none.
type sideBySide struct {
	results []result.Result
	names   []string
	steps   []result.Step
}

// SideBySide lays out results with a column for each, and a single one by itself. It does not
// rank them: a difference is only shown by repeated runs.
func SideBySide(results ...result.Result) document.Document {
	if len(results) == 1 {
		return Document(results[0])
	}
	b := sideBySide{results: results, names: columnNames(results)}
	v := result.Validity{Valid: true}
	var commands facts
	for i, r := range results {
		var step result.Step
		if s := r.MainStep(); s != nil {
			step = *s
		}
		b.steps = append(b.steps, step)
		e := r.Envelope()
		v.Include(b.names[i], e.Validity)
		commands.add(b.names[i], e.Run.Command)
		if r.Dir != "" {
			commands.add("", "files: "+r.Dir)
		}
	}
	return document.Document{
		Title:    strings.Join(b.names, ", "),
		Verdict:  v.Verdict(),
		Headline: format.Plural(int64(len(results)), "result") + " side by side",
		Lead:     b.mismatches(),
		Parts: present(
			b.overview(),
			detail(b.ofSearches("Highest rate held", picture.Held)),
			detail(b.ofSearches("Latency over the rate", picture.Latencies)),
			detail(b.cpu()),
			b.growth(appHosts),
			b.growth(masters),
			detail(b.latency()),
			detail(b.percentiles()),
			detail(tablePart("Cost per saga", figureTable(b.names, mapped(b.steps, costOf), result.CostFields))),
			detail(tablePart("Resources used", figureTable(b.names, mapped(b.steps, resourcesOf), result.ResourceFields))),
			detail(factsPart("Differences", b.differences())),
			detail(b.check()),
			because(v), warnings(v), notes(v),
			detail(factsPart("Reproduce with", commands))),
	}
}

func costOf(s result.Step) result.Cost           { return s.CostPerSaga }
func resourcesOf(s result.Step) result.Resources { return s.Resources }

func mapped[T, U any](list []T, of func(T) U) (values []U) {
	for _, x := range list {
		values = append(values, of(x))
	}
	return values
}

// mismatches says why the results cannot be compared.
func (b sideBySide) mismatches() (lines []string) {
	for _, m := range []struct {
		text string
		of   func(result.Run) string
	}{
		{"Not ranked: durability differs, and weaker durability costs less.", func(r result.Run) string { return r.Store.Durability }},
		{"The saga differs: see Differences.", func(r result.Run) string { return r.Scenario.String() }},
		{"The topology differs: see Differences.", func(r result.Run) string { return r.Topology }},
	} {
		first := m.of(b.results[0].Envelope().Run)
		if slices.ContainsFunc(b.results, func(r result.Result) bool { return m.of(r.Envelope().Run) != first }) {
			lines = append(lines, m.text)
		}
	}
	return append(lines, "Single runs do not show a difference: bench compare repeats them.")
}

// overview has what identifies a result, and the figures that are quoted most.
func (b sideBySide) overview() *document.Part {
	envelope := func(of func(result.Envelope) string) func(int) string {
		return func(i int) string { return of(b.results[i].Envelope()) }
	}
	rows := []row{
		{"store", envelope(func(e result.Envelope) string {
			return strings.TrimSpace(e.Run.Store.Driver+" "+e.Run.Store.Version) + e.Run.Store.Nodes()
		})},
		{"durability", envelope(func(e result.Envelope) string { return e.Run.Store.Durability })},
		{"load", func(i int) string { return loadText(b.results[i]) }},
		{"sagas/s", func(i int) string {
			if c := b.results[i].Capacity; c != nil {
				if c.Capacity.Held == nil {
					return format.Unknown
				}
				return format.Number(c.Capacity.Held.RatePerS)
			}
			return format.Number(b.steps[i].Load.AchievedPerS)
		}},
		{"limited by", func(i int) string {
			if c := b.results[i].Capacity; c != nil {
				return c.Capacity.Limit.Resource
			}
			return ""
		}},
		{"p50, ms", func(i int) string { return b.percentile(i, b.steps[i].LatencyMS.P50) }},
		{"p99, ms", func(i int) string { return b.percentile(i, b.steps[i].LatencyMS.P99) }},
	}
	for _, f := range result.CPUFields {
		rows = append(rows, row{f.Heading(), func(i int) string { return format.Optional(f.Of(b.steps[i].CostPerSaga), format.Number) }})
	}
	return tablePart("Results", newTable(b.names, append(rows,
		row{"errors", func(i int) string {
			if b.steps[i].Load.Requests == 0 {
				return ""
			}
			return format.Count(b.steps[i].Load.Errors)
		}},
		row{"lost", envelope(func(e result.Envelope) string { return format.Optional(e.Check.Lost, format.Count) })},
		row{"valid", envelope(func(e result.Envelope) string {
			if e.Validity.Valid {
				return "yes"
			}
			return "no"
		})})))
}

// percentile is unknown if the system was overloaded: it depends on how long the run was.
func (b sideBySide) percentile(i int, ms *float64) string {
	if b.steps[i].Load.Overloaded() {
		return format.Unknown
	}
	return format.Optional(ms, format.Number)
}

func (b sideBySide) latency() *document.Part {
	var rows []row
	for _, p := range result.LatencyFields {
		rows = append(rows, row{p.Label, func(i int) string { return b.percentile(i, p.Of(b.steps[i].LatencyMS)) }})
	}
	return tablePart("Latency from the due time, ms", newTable(b.names, rows))
}

// percentiles has the curves of the runs in one chart.
func (b sideBySide) percentiles() *document.Part {
	var curves []curve
	for i, r := range b.results {
		if enough(r.Recording.Latency) {
			curves = append(curves, curve{b.names[i], r.Recording.Latency})
		}
	}
	if len(curves) == 0 {
		return nil
	}
	return percentileCurves(curves)
}

// ofSearches draws the results that are searches, if there are several.
func (b sideBySide) ofSearches(title string, draw func(names []string, searches []result.Capacity) *document.Chart) *document.Part {
	var names []string
	var searches []result.Capacity
	for i, r := range b.results {
		if r.Capacity != nil {
			names, searches = append(names, b.names[i]), append(searches, r.Capacity.Capacity)
		}
	}
	if len(searches) < 2 {
		return nil
	}
	return picture.Part(title, draw(names, searches))
}

// cpu is CPU per saga by process, of the results that have a main step.
func (b sideBySide) cpu() *document.Part {
	var names []string
	var costs []result.Cost
	for i, r := range b.results {
		if r.MainStep() != nil {
			names, costs = append(names, b.names[i]), append(costs, b.steps[i].CostPerSaga)
		}
	}
	return cpuPart(names, costs)
}

// differences lists the settings and circumstances that are not the same for all results.
func (b sideBySide) differences() (f facts) {
	values := func(name string, of func(result.Envelope) string) {
		first := of(b.results[0].Envelope())
		if !slices.ContainsFunc(b.results, func(r result.Result) bool { return of(r.Envelope()) != first }) {
			return
		}
		for i, r := range b.results {
			f.add(name, b.names[i]+": "+cmp.Or(of(r.Envelope()), format.Unknown))
			name = ""
		}
	}
	values("machine", func(e result.Envelope) string { return e.Environment.Machine() })
	values("software", func(e result.Envelope) string { return e.Environment.Kernel + ", " + e.Environment.Go })
	values("commit", func(e result.Envelope) string {
		return format.Optional(e.Run.Commit, func(c string) string { return c })
	})
	values("versions", func(e result.Envelope) string { return result.Pairs(e.Environment.Versions, " ") })
	values("saga", func(e result.Envelope) string { return e.Run.Scenario.String() })
	values("topology", func(e result.Envelope) string { return e.Run.Topology })
	settings := map[string]string{}
	for _, r := range b.results {
		maps.Copy(settings, r.Envelope().Run.Store.Settings)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		values(name, func(e result.Envelope) string { return e.Run.Store.Settings[name] })
	}
	return f
}

func (b sideBySide) check() *document.Part {
	var rows []row
	for k, count := range (result.Check{}).Counts() {
		rows = append(rows, row{count.Name, func(i int) string {
			return format.Optional(b.results[i].Envelope().Check.Counts()[k].N, format.Count)
		}})
	}
	return tablePart("Check", newTable(b.names, rows))
}
