package report

import (
	"cmp"
	"fmt"
	"strings"

	"sagabench/internal/document"
	"sagabench/store"
)

// Document is the result as it is shown. rec may be empty, and the curve of its
// percentiles is left out.
func (s Summary) Document(rec Recording, dir string) document.Document {
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
	d.Parts = append(d.Parts, document.Part{Title: "Cost per saga", Facts: costFacts(s.CostPerSaga), Chart: s.splitChart()})
	d.Parts = append(d.Parts, document.Part{Title: "Check", Facts: checkFacts(s.Check)})
	add(warningsPart(s.Validity))
	add(timelinePart(s, rec))
	d.Parts = append(d.Parts,
		document.Part{Title: "Load", Facts: loadFacts(s)},
		document.Part{Title: "Environment", Facts: environmentFacts(s.Run, s.Environment)},
		document.Part{Title: "Run", Facts: runFacts(s.Run, dir)})
	return d
}

// Verdict is what stands above a result that must not be relied on; empty above others.
func (v Validity) Verdict() string {
	if v.Valid {
		return ""
	}
	return "NOT VALID: the warnings below say why; do not quote these numbers"
}

func warningsPart(v Validity) *document.Part {
	if len(v.Warnings) == 0 {
		return nil
	}
	return &document.Part{Title: "Warnings", List: v.Warnings}
}

// headline is the result in one line.
func headline(s Summary) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s sagas/s on %s", number(s.Load.AchievedPerS), cmp.Or(s.Run.Store.Driver, "an unknown store"))
	if d := durability(s.Run.Store); d != "" {
		fmt.Fprintf(&line, " (%s)", d)
	}
	switch p99 := s.LatencyMS.P99; {
	case s.Load.Overloaded():
		line.WriteString(", overloaded: no latency holds at this rate")
	case p99 != nil:
		fmt.Fprintf(&line, ", p99 %s ms", number(*p99))
	case s.LatencyMS.Max != nil:
		fmt.Fprintf(&line, ", slowest %s ms", number(*s.LatencyMS.Max))
	}
	if s.Load.OfferedPerS != nil {
		fmt.Fprintf(&line, ", %s/s offered", number(*s.Load.OfferedPerS))
	} else {
		fmt.Fprintf(&line, ", %d in flight", s.Load.InFlight)
	}
	return line.String()
}

func durability(s Store) string {
	for d := store.D0; d <= store.D4; d++ {
		if d.String() == s.Durability {
			return s.Durability + ": " + store.Settings{Durability: d, Values: s.Settings}.Meaning()
		}
	}
	return s.Durability
}

func outcome(c Check) string {
	acknowledged := plural(c.Acknowledged, "saga") + " acknowledged, warm-up included"
	if c.Lost == nil {
		return acknowledged + "; the store was not audited"
	}
	var bad []string
	for _, finding := range c.violations() {
		bad = append(bad, fmt.Sprintf("%s %s", count(finding.n), finding.name))
	}
	switch {
	case len(bad) > 0:
	case c.Expired > 0:
		return fmt.Sprintf("%s; none lost of the %s that the store still had to hold", acknowledged, count(c.Acknowledged-c.Expired))
	default:
		return acknowledged + "; none lost"
	}
	return acknowledged + "; " + strings.ToUpper(strings.Join(bad, ", "))
}

type violation struct {
	name string
	n    int64
}

// violations are the counts that must be zero and are not.
func (c Check) violations() []violation {
	var found []violation
	for _, v := range []struct {
		name string
		n    *int64
	}{{"lost", c.Lost}, {"with both outcomes", c.BothOutcomes}, {"uncompensated", c.Uncompensated}} {
		if v.n != nil && *v.n > 0 {
			found = append(found, violation{v.name, *v.n})
		}
	}
	return found
}

func latencyTable(s Summary) document.Table {
	var t document.Table
	for _, p := range latencyItems() {
		t.Columns = append(t.Columns, p.name)
	}
	add := func(name string, l Latency) {
		r := document.Row{Name: name}
		for _, p := range latencyItems() {
			r.Cells = append(r.Cells, optional(p.of(l)))
		}
		t.Rows = append(t.Rows, r)
	}
	if s.Load.Mode == Open {
		add("from the due time", s.LatencyMS)
	}
	add("from the send", s.ServiceMS)
	return t
}
