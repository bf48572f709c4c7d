package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// Document shows the plan, with its validity. command is the line to type for the same
// again.
func (p Plan) Document(v result.Validity, command string) document.Document {
	d := document.Document{
		Title:    "Plan",
		Verdict:  v.Verdict(),
		Headline: p.headline(),
		Lead:     append(p.extrapolated(), "What breaks first when one machine is lost: "+p.Breaks+"."),
		Command:  command,
	}
	table := document.Table{Columns: []string{"value", "from", "to", "unit", ""}}
	var basis []document.Fact
	for _, l := range p.Lines {
		flag := ""
		if l.Extrapolated && l.Value != nil {
			flag = "extrapolated"
		}
		table.Rows = append(table.Rows, document.Row{
			Name: l.What, Cells: append(l.cells(), flag),
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
	if l := p.Law; l != nil {
		d.Parts = append(d.Parts, *report.LawPart("app hosts", "of app hosts", l.Points, l.measured, &l.Fit, ""))
	}
	d.Parts = append(d.Parts,
		document.Part{Title: "What it rests on", Facts: basis},
		document.Part{Title: "Results", List: p.From})
	return d
}

// cells are the value, its interval and the unit, bytes in the multiple that suits.
func (l Line) cells() []string {
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
		cells = append(cells, number(x))
	}
	return append(cells, unit)
}

// headline is how many machines it takes, and for what.
func (p Plan) headline() string {
	what := func(one string) string {
		i := slices.IndexFunc(p.Lines, func(l Line) bool { return l.What == one+"s" })
		n := p.Lines[i].Value
		if n != nil && *n == 1 {
			return "1 " + one
		}
		return number(n) + " " + one + "s"
	}
	machines := what("app host")
	switch p.Store.Driver {
	case "":
		machines += " on an unknown store"
	case embedded:
		machines += ", each with its own store (" + embedded + ")"
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

// extrapolated says with the headline that its numbers of machines were not seen.
func (p Plan) extrapolated() []string {
	for _, l := range p.Lines {
		if l.Extrapolated && strings.HasPrefix(l.Unit, "hosts") {
			return []string{"Extrapolated: such a rate was not measured. It takes the costs of the nearest rate that was, and is a guess the further off that is."}
		}
	}
	return nil
}

func number(x *float64) string {
	if x == nil {
		return format.Unknown
	}
	if *x == math.Trunc(*x) && math.Abs(*x) < 1e15 {
		return format.Count(int64(*x)) // 3 hosts, not 3.00
	}
	return format.Number(*x)
}
