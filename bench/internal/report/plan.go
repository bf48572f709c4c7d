package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/plan"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// Plan lays out a plan.
func Plan(s plan.Result) document.Document {
	p := s.Plan
	table := document.Table{Columns: []string{"value", "from", "to", "unit", ""}}
	var basis facts
	var spans []string
	for _, l := range p.Lines {
		flag := ""
		if l.Extrapolated && l.Value != nil {
			flag = "extrapolated"
		}
		if l.Spans != "" && !slices.Contains(spans, l.Spans) {
			spans = append(spans, l.Spans)
		}
		table.Rows = append(table.Rows, document.Row{Name: l.What, Cells: append(planCells(l), flag)})
		basis.add(l.What, l.Basis)
		if l.Caveat != "" {
			basis.add("", l.Caveat)
		}
	}
	requirements := &document.Part{Title: "Requirements", Table: &table}
	if len(spans) > 0 {
		requirements.Text = []string{"From and to are the lowest and the highest measured, " + strings.Join(spans, " or ") + "."}
	}
	lead := slices.Clone(p.Because)
	if len(lead) > 0 {
		lead = lead[1:] // the first is in the headline
	}
	return document.Document{
		Title:    "Plan",
		Verdict:  s.Validity.Verdict(),
		Headline: planHeadline(p),
		Lead:     append(lead, "When one machine is lost, the first to break is "+p.Breaks+"."),
		Command:  s.Run.Command,
		Parts: present(
			requirements,
			because(s.Validity), warnings(s.Validity), notes(s.Validity),
			detail(factsPart("Based on", basis)),
			detail(&document.Part{Title: "Results", List: p.From})),
	}
}

// planCells returns the value, its interval and the unit. Bytes are in kB to PB.
func planCells(l plan.Line) []string {
	factor, unit := 1.0, l.Unit
	if rest, bytes := strings.CutPrefix(l.Unit, "bytes"); bytes && l.Value != nil {
		for _, prefix := range []string{"k", "M", "G", "T", "P"} {
			if *l.Value < 1000*factor {
				break
			}
			factor, unit = 1000*factor, prefix+"B"+rest
		}
	}
	cells := []string{}
	for _, x := range []*float64{l.Value, l.Low, l.High} {
		if x != nil {
			scaled := *x / factor
			x = &scaled
		}
		cells = append(cells, planNumber(x))
	}
	return append(cells, unit)
}

// planHeadline states the number of machines, the rate and the service level, or why there
// is no such number, and whether that was measured.
func planHeadline(p plan.Plan) string {
	count := func(noun string) string {
		n := p.Lines[slices.IndexFunc(p.Lines, func(l plan.Line) bool { return l.What == noun+"s" })].Value
		if n != nil && *n == 1 {
			return "1 " + noun
		}
		return planNumber(n) + " " + noun + "s"
	}
	machines := count("app host")
	switch {
	case p.Store.Driver == "":
		machines += " on an unknown store"
	case p.Store.Embedded():
		machines += ", each with its own store (" + p.Store.Driver + ")"
	default:
		machines += " and " + count("store node") + " (" + p.Store.Driver + ")"
	}
	if p.Store.Replicated() {
		machines += " with a replica"
	}
	rate := format.Number(p.RatePerS) + " sagas/s"
	if p.PeakPerS > p.RatePerS {
		rate += ", at the peak " + format.Number(p.PeakPerS) + "/s"
	}
	headline := cmp.Or(p.Impossible, fmt.Sprintf("%s for %s, with %s", machines, rate, p.SLO.LatencyLimits()))
	if len(p.Because) > 0 {
		headline += "; " + p.Because[0]
	}
	return headline
}

func planNumber(x *float64) string {
	if x == nil {
		return format.Unknown
	}
	if *x == math.Trunc(*x) && math.Abs(*x) < 1e15 {
		return format.Count(int64(*x)) // 3 hosts, not 3.00
	}
	return format.Number(*x)
}
