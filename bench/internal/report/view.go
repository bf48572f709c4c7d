package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
	"sagabench/store"
)

// runDocument is the result of one run as it is shown. rec may be empty, and the curve of its
// percentiles is left out.
func runDocument(s result.Summary, rec result.Recording, dir string) document.Document {
	d := document.Document{
		Title:    s.Run.ID,
		Verdict:  s.Validity.Verdict(),
		Headline: headline(s),
		Lead:     []string{outcome(s.Check)},
		Command:  s.Run.Command,
	}
	latency := latencyTable(s)
	d.Parts = append(d.Parts, document.Part{Title: "Latency, ms", Table: &latency})
	add := func(p *document.Part) {
		if p != nil {
			d.Parts = append(d.Parts, *p)
		}
	}
	add(percentilePart(rec))
	d.Parts = append(d.Parts, document.Part{Title: "Cost per saga", Facts: costFacts(s.CostPerSaga), Chart: runSplitChart(s)})
	d.Parts = append(d.Parts, document.Part{Title: "Check", Facts: checkFacts(s.Check)})
	add(warningsPart(s.Validity))
	add(timelinePart(s, rec))
	d.Parts = append(d.Parts,
		document.Part{Title: "Load", Facts: loadFacts(s)},
		document.Part{Title: "Environment", Facts: environmentFacts(s.Run, s.Environment)},
		document.Part{Title: "Run", Facts: runFacts(s.Run, dir)})
	return d
}

func warningsPart(v result.Validity) *document.Part {
	if len(v.Warnings) == 0 {
		return nil
	}
	return &document.Part{Title: "Warnings", List: v.Warnings}
}

// headline is the result in one line.
func headline(s result.Summary) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s sagas/s on %s", format.Number(s.Load.AchievedPerS), cmp.Or(s.Run.Store.Driver, "an unknown store"))
	if d := durability(s.Run.Store); d != "" {
		fmt.Fprintf(&line, " (%s)", d)
	}
	switch p99 := s.LatencyMS.P99; {
	case s.Load.Overloaded():
		line.WriteString(", overloaded: no latency holds at this rate")
	case p99 != nil:
		fmt.Fprintf(&line, ", p99 %s ms", format.Number(*p99))
	case s.LatencyMS.Max != nil:
		fmt.Fprintf(&line, ", slowest %s ms", format.Number(*s.LatencyMS.Max))
	}
	if s.Load.OfferedPerS != nil {
		fmt.Fprintf(&line, ", %s/s offered", format.Number(*s.Load.OfferedPerS))
	} else {
		fmt.Fprintf(&line, ", %d in flight", s.Load.InFlight)
	}
	return line.String()
}

func durability(s result.Store) string {
	for d := store.D0; d <= store.D4; d++ {
		if d.String() == s.Durability {
			return s.Durability + ": " + store.Settings{Durability: d, Values: s.Settings}.Meaning()
		}
	}
	return s.Durability
}

func outcome(c result.Check) string {
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
	case c.Expired > 0:
		return fmt.Sprintf("%s; none lost of the %s that the store still had to hold", acknowledged, format.Count(c.Acknowledged-c.Expired))
	default:
		return acknowledged + "; none lost"
	}
	return acknowledged + "; " + strings.ToUpper(strings.Join(bad, ", "))
}

func latencyTable(s result.Summary) document.Table {
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
	if s.Load.Mode == result.Open {
		add("from the due time", s.LatencyMS)
	}
	add("from the send", s.ServiceMS)
	return t
}

// Document lays out the result of a run or of a search for the capacity.
func Document(r result.Result) document.Document {
	if r.Capacity != nil {
		return capacityDocument(*r.Capacity, r.Dir)
	}
	return runDocument(*r.Run, r.Recording, r.Dir)
}

// Write puts summary.json, latency.hgrm, report.html and report.md of a run into the
// directory. Without latency.hlog there is no latency.hgrm and no percentile curve.
func WriteRun(dir string, s result.Summary) error {
	rec, err := result.Write(dir, s)
	if err != nil {
		return err
	}
	return WritePages(dir, runDocument(s, rec, ""))
}

// WritePages puts report.html and report.md into the directory.
func WritePages(dir string, d document.Document) error {
	return errors.Join(
		result.WriteFile(dir, result.FilePage, func(w io.Writer) error { return document.HTML(w, d) }),
		result.WriteFile(dir, result.FileMarkdown, func(w io.Writer) error { return document.Markdown(w, d) }))
}
