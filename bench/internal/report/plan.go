package report

import (
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
	p, v := s.Plan, s.Validity
	d := document.Document{
		Title:    "Plan",
		Verdict:  v.Verdict(),
		Headline: planHeadline(p),
		Lead:     append(planLead(p), "What breaks first when one machine is lost: "+p.Breaks+"."),
		Command:  s.Run.Command,
	}
	table := document.Table{Columns: []string{"value", "from", "to", "unit", ""}}
	var basis []document.Fact
	for _, l := range p.Lines {
		flag := ""
		if l.Extrapolated && l.Value != nil {
			flag = "extrapolated"
		}
		table.Rows = append(table.Rows, document.Row{
			Name: l.What, Cells: append(planCells(l), flag),
		})
		basis = append(basis, document.Fact{Name: l.What, Value: l.Basis})
		if l.Caveat != "" {
			basis = append(basis, document.Fact{Value: l.Caveat})
		}
	}
	d.Parts = []document.Part{{
		Title: "What it takes", Table: &table,
		Text: []string{"From and to are what the next such machine would have, with 95% confidence; " + format.Unknown + " is what was not measured, or not twice."},
	}}
	if len(v.Warnings) > 0 {
		d.Parts = append(d.Parts, document.Part{Title: "Warnings", List: v.Warnings})
	}
	d.Parts = append(d.Parts,
		document.Part{Title: "Based on", Facts: basis},
		document.Part{Title: "Results", List: p.From})
	return d
}

// planCells are the value, its interval and the unit, bytes in the multiple that suits.
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

// planHeadline is how many machines it takes, and for what.
func planHeadline(p plan.Plan) string {
	what := func(one string) string {
		i := slices.IndexFunc(p.Lines, func(l plan.Line) bool { return l.What == one+"s" })
		n := p.Lines[i].Value
		if n != nil && *n == 1 {
			return "1 " + one
		}
		return planNumber(n) + " " + one + "s"
	}
	machines := what("app host")
	switch p.Store.Driver {
	case "":
		machines += " on an unknown store"
	case plan.Embedded:
		machines += ", each with its own store (" + plan.Embedded + ")"
	default:
		machines += " and " + what("store node") + " (" + p.Store.Driver + ")"
	}
	rate := format.Number(p.RatePerS) + " sagas/s"
	if p.PeakPerS > p.RatePerS {
		rate += ", at the peak " + format.Number(p.PeakPerS) + "/s"
	}
	var promise []string
	for _, goal := range p.SLO.Latencies {
		promise = append(promise, goal.String())
	}
	return fmt.Sprintf("%s for %s, with %s", machines, rate, strings.Join(promise, ", "))
}

// planLead says with the headline that its numbers of machines were not seen.
func planLead(p plan.Plan) []string {
	for _, l := range p.Lines {
		if l.Extrapolated && strings.HasPrefix(l.Unit, "hosts") {
			return []string{"Extrapolated: such a rate was not measured. It takes the costs of the nearest rate that was, and is a guess the further off that is."}
		}
	}
	return nil
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
