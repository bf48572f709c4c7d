package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
	"sagabench/store"
)

// Document lays out the result of a run, or of a search for the capacity.
func Document(r result.Result) document.Document {
	if r.Capacity != nil {
		return capacityDocument(*r.Capacity, r.Dir)
	}
	return runDocument(*r.Run, r.Recording, r.Dir)
}

// WriteRun writes summary.json, latency.hgrm, report.html and report.md of a run into the
// directory. Without latency.hlog it leaves out latency.hgrm and the percentile curve.
func WriteRun(dir string, s result.Summary) error {
	rec, err := result.Write(dir, s)
	if err != nil {
		return err
	}
	return WritePages(dir, runDocument(s, rec, ""))
}

// WritePages writes report.html and report.md into the directory.
func WritePages(dir string, d document.Document) error {
	return errors.Join(
		result.WriteFile(dir, result.FilePage, func(w io.Writer) error { return document.HTML(w, d) }),
		result.WriteFile(dir, result.FileMarkdown, func(w io.Writer) error { return document.Markdown(w, d) }))
}

// again is the command that shows a result again, in the first screen of one that it reads.
const again = "bench report"

// runDocument lays out a run. Without rec it has no percentile curve.
func runDocument(s result.Summary, rec result.Recording, dir string) document.Document {
	cost := factsPart("Cost per saga"+s.Run.Store.CostNote(), costFacts(s.Measurement))
	cost.Chart = cpuChart([]string{cmp.Or(s.Run.Store.Driver, "this run")}, []result.Cost{s.CostPerSaga})
	if cost.Chart != nil {
		cost.Chart.Summary = "CPU per saga in µs, by process."
	}
	return document.Document{
		Title:    s.Run.ID,
		Verdict:  s.Validity.Verdict(),
		Headline: headline(s),
		Lead:     []string{auditResult(s.Check)},
		Command:  s.Run.Command,
		Again:    again,
		Parts: present(
			latencyPart("Latency, ms", s.Measurement),
			detail(percentilePart(rec)),
			cost,
			factsPart("Check", checkFacts(s.Check)),
			because(s.Validity), warnings(s.Validity), notes(s.Validity),
			detail(timelinePart(s, rec)),
			detail(factsPart("Load", loadFacts(s))),
			detail(factsPart("Environment", environmentFacts(s.Run, s.Environment))),
			detail(factsPart("Run", runFacts(s.Run, dir)))),
	}
}

// present returns the parts that are not nil.
func present(parts ...*document.Part) (list []document.Part) {
	for _, p := range parts {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

// detail marks a part, which may be nil, as one that the terminal shows with --verbose
// only.
func detail(p *document.Part) *document.Part {
	if p != nil {
		p.Detail = true
	}
	return p
}

// because lists what makes a result invalid, unless the verdict has all of it.
func because(v result.Validity) *document.Part {
	if len(v.Because) < 2 {
		return nil
	}
	return listPart("Not valid because", v.Because)
}

func warnings(v result.Validity) *document.Part { return listPart("Warnings", v.Warnings) }

func notes(v result.Validity) *document.Part { return detail(listPart("Notes", v.Notes)) }

func listPart(title string, list []string) *document.Part {
	if len(list) == 0 {
		return nil
	}
	return &document.Part{Title: title, List: list}
}

// headline is the result in one line.
func headline(s result.Summary) string {
	var line strings.Builder
	if s.Load.Mode == result.Closed {
		fmt.Fprintf(&line, "%d in flight: ", s.Load.InFlight)
	}
	fmt.Fprintf(&line, "%s sagas/s %s", format.Number(s.Load.AchievedPerS), onStore(s.Run.Store))
	switch p99 := s.LatencyMS.P99; {
	case s.Load.Overloaded():
		line.WriteString(", overloaded")
	case p99 != nil:
		fmt.Fprintf(&line, ", p99 %s ms", format.Number(*p99))
	case s.LatencyMS.Max != nil:
		fmt.Fprintf(&line, ", slowest %s ms", format.Number(*s.LatencyMS.Max))
	}
	if s.Load.OfferedPerS != nil {
		fmt.Fprintf(&line, ", %s/s offered", format.Number(*s.Load.OfferedPerS))
	}
	if s.Load.Mode == result.Closed {
		line.WriteString(" (closed loop)")
	}
	return line.String()
}

// onStore names the store and what its durability class means: "on redis (D2: …)".
func onStore(s result.Store) string {
	name := "on " + cmp.Or(s.Driver, "an unknown store") + s.Nodes()
	if d, ok := store.ParseDurability(s.Durability); ok {
		return fmt.Sprintf("%s (%s: %s)", name, d, store.Settings{Durability: d, Values: s.Settings}.Meaning())
	}
	if s.Durability != "" {
		name += " (" + s.Durability + ")"
	}
	return name
}

// auditResult is what the audit found, in one sentence.
func auditResult(c result.Check) string {
	acknowledged := format.Plural(c.Acknowledged, "saga") + " acknowledged, warm-up included"
	if c.Lost == nil {
		return acknowledged + "; the store was not audited"
	}
	var bad []string
	for _, finding := range c.Violations() {
		bad = append(bad, fmt.Sprintf("%s %s", format.Count(*finding.N), finding.Name))
	}
	switch {
	case len(bad) > 0:
		return acknowledged + "; " + strings.ToUpper(strings.Join(bad, ", "))
	case c.Expired > 0:
		return fmt.Sprintf("%s; none lost of the %s within the store's retention", acknowledged, format.Count(c.Acknowledged-c.Expired))
	}
	return acknowledged + "; none lost"
}

// latencyPart has the latency from the due time, if the load was at a fixed rate, and from
// the send.
func latencyPart(title string, m result.Measurement) *document.Part {
	var t document.Table
	for _, p := range result.LatencyFields {
		t.Columns = append(t.Columns, p.Label)
	}
	add := func(name string, l result.Latency) {
		r := document.Row{Name: name}
		for _, p := range result.LatencyFields {
			r.Cells = append(r.Cells, format.Optional(p.Of(l), format.Number))
		}
		t.Rows = append(t.Rows, r)
	}
	if m.Load.Mode == result.Open && !reflect.DeepEqual(m.LatencyMS, m.ServiceMS) { // vegeta's results have only the send
		add("from the due time", m.LatencyMS)
	}
	if m.ServiceMS != (result.Latency{}) { // unknown of several holds together
		add("from the send", m.ServiceMS)
	}
	return &document.Part{Title: title, Table: &t}
}
