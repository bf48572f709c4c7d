package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/usl"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// search renders the parts of a search for the capacity.
type search struct{ result.Capacity }

// capacityDocument is the result as it is shown.
func capacityDocument(s result.CapacitySummary, dir string) document.Document {
	c := search{s.Capacity}
	d := document.Document{
		Title:    s.Run.ID,
		Verdict:  s.Validity.Verdict(),
		Headline: c.headline(s.Run.Store),
		Lead:     append(c.lead(), outcome(s.Check)),
		Command:  s.Run.Command,
	}
	add := func(p *document.Part) {
		if p != nil {
			d.Parts = append(d.Parts, *p)
		}
	}
	add(c.latencyPart())
	add(c.limitPart())
	add(c.scalingPart())
	add(c.costPart())
	add(c.resourcesPart())
	add(c.predictedPart())
	d.Parts = append(d.Parts, document.Part{Title: "Check", Facts: checkFacts(s.Check)})
	add(warningsPart(s.Validity))
	var how facts
	how.add("service level", c.SLO.String())
	how.add("measured", fmt.Sprintf("%s with a rate, %s with a number in flight, in %s s",
		format.Plural(int64(len(c.Steps)), "time"), format.Plural(int64(len(c.Scaling)), "time"), format.Number(s.Run.DurationS)))
	how.add("saga", s.Run.Scenario.String())
	d.Parts = append(d.Parts,
		document.Part{Title: "Search", Facts: how},
		document.Part{Title: "Environment", Facts: environmentFacts(s.Run, s.Environment)},
		document.Part{Title: "Run", Facts: runFacts(s.Run, dir)})
	return d
}

func (c search) headline(s result.Store) string {
	where := "on " + cmp.Or(s.Driver, "an unknown store")
	if d := durability(s); d != "" {
		where += " (" + d + ")"
	}
	if c.RatePerS == nil {
		return fmt.Sprintf("no rate that was tried %s keeps %s", where, c.SLO.LatencyLimits())
	}
	line := fmt.Sprintf("%s sagas/s %s at %s", format.Number(*c.RatePerS), where, c.SLO.LatencyLimits())
	if c.HighPerS == nil {
		line = "at least " + line
	}
	if c.Limit.Resource != "" {
		line += ", limited by " + c.Limit.Resource
	}
	return line
}

// lead says how well the rate is known.
func (c search) lead() []string {
	switch {
	case c.RatePerS == nil && c.HighPerS != nil:
		return []string{fmt.Sprintf("The service level was not kept at %s sagas/s, nor above.", format.Number(*c.HighPerS))}
	case c.RatePerS == nil:
		return nil
	case c.HighPerS != nil && c.LowPerS != nil:
		return []string{fmt.Sprintf("With 95%% confidence the highest rate that keeps it is from %s to %s sagas/s.", format.Number(*c.LowPerS), format.Number(*c.HighPerS))}
	case c.HighPerS == nil:
		return []string{"It was kept at the highest rate that was tried."}
	}
	return nil
}

// latencyPart is latency over the offered rate, all measurements of it.
func (c search) latencyPart() *document.Part {
	steps := c.ByRate()
	if len(steps) == 0 {
		return nil
	}
	chart := document.Chart{X: document.Axis{Label: "offered, sagas/s"}, Y: document.Axis{Label: "ms"}}
	series := func(name string, of func(result.Step) *float64) {
		s := document.Series{Name: name, Dots: true}
		for _, m := range steps {
			if ms := of(m); ms != nil {
				s.Points = append(s.Points, document.Point{X: *m.Load.OfferedPerS, Y: *ms})
			}
		}
		if len(s.Points) > 0 {
			chart.Series = append(chart.Series, s)
		}
	}
	series("p50", func(m result.Step) *float64 { return m.LatencyMS.P50 })
	table := document.Table{Corner: "offered, sagas/s", Columns: []string{"achieved", "p50"}}
	for _, g := range c.SLO.Latencies {
		for _, judged := range []struct {
			name string
			is   func(*bool) bool
		}{
			{"broken", func(k *bool) bool { return k != nil && !*k }},
			{"kept", func(k *bool) bool { return k != nil && *k }},
			{"not judged", func(k *bool) bool { return k == nil }},
		} {
			series(g.Name()+", "+judged.name, func(m result.Step) *float64 {
				if !judged.is(m.MeetsSLO) {
					return nil
				}
				return m.LatencyMS.At(g.Percentile)
			})
		}
		chart.Marks = append(chart.Marks, document.Mark{Label: format.Short(g.MS) + " ms", Y: &g.MS})
		table.Columns = append(table.Columns, g.Name())
	}
	if len(chart.Series) == 0 {
		return nil
	}
	logarithmic(&chart, chart.Series[0].Points[0].Y)
	if c.RatePerS != nil {
		chart.Marks = append(chart.Marks, document.Mark{Label: format.Number(*c.RatePerS) + "/s", X: c.RatePerS})
	}
	table.Columns = append(table.Columns, "errors", "")
	for _, m := range steps {
		r := document.Row{Name: format.Number(*m.Load.OfferedPerS), Cells: []string{format.Number(m.Load.AchievedPerS), format.Optional(m.LatencyMS.P50, format.Number)}}
		for _, g := range c.SLO.Latencies {
			r.Cells = append(r.Cells, format.Optional(m.LatencyMS.At(g.Percentile), format.Number))
		}
		r.Cells = append(r.Cells, format.Count(m.Load.Errors), stepOutcome(m))
		table.Rows = append(table.Rows, r)
	}
	chart.Summary = fmt.Sprintf("Latency from the due time over the offered rate, %s to %s sagas/s; the service level is %s.",
		format.Number(*steps[0].Load.OfferedPerS), format.Number(*steps[len(steps)-1].Load.OfferedPerS), c.SLO)
	return &document.Part{Title: "Latency over the rate", Chart: &chart, Table: &table}
}

// outcome says what became of the service level.
func stepOutcome(m result.Step) string {
	switch {
	case !m.Validity.Valid:
		kind, _, _ := strings.Cut(m.Why, ":") // its numbers would be most of the table
		return "not valid, " + cmp.Or(kind, "incomplete")
	case m.MeetsSLO == nil:
		return format.Unknown
	case *m.MeetsSLO:
		return "kept"
	default:
		return cmp.Or(m.Why, "broken")
	}
}

// logarithmic makes the scale of y such that the typical value is seen beside the
// highest.
func logarithmic(c *document.Chart, typical float64) {
	low, high := math.Inf(1), 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	if low > 0 && high > 20*typical {
		c.Y.Scale = document.Log
	}
}

func (c search) limitPart() *document.Part {
	if c.Limit.Resource == "" && c.Limit.Evidence == "" {
		return nil
	}
	var f facts
	f.add("resource", cmp.Or(c.Limit.Resource, "not known"))
	if c.Limit.Share != nil {
		f.add("used at the edge", format.Percent(*c.Limit.Share))
	}
	if c.Limit.Evidence != "" {
		f.add("evidence", c.Limit.Evidence)
	}
	return &document.Part{Title: "What limits it", Facts: f}
}

// scalingPart is throughput over in flight, with the law that was fitted to it. It is nil
// without a measurement.
func (c search) scalingPart() *document.Part {
	if len(c.Scaling) == 0 {
		return nil
	}
	dots := document.Series{Name: "measured", Dots: true}
	table := document.Table{Corner: "in flight", Columns: []string{"sagas/s", "fitted", "residual", "p50, ms", "p99, ms"}}
	best := c.Scaling[0].Load
	for _, m := range c.Scaling {
		n, rate := float64(m.Load.InFlight), m.Load.AchievedPerS
		dots.Points = append(dots.Points, document.Point{X: n, Y: rate})
		if rate > best.AchievedPerS {
			best = m.Load
		}
		fitted, residual := format.Unknown, format.Unknown
		if c.Fit != nil && rate > 0 {
			if at, known := c.Fit.At(n); known {
				fitted, residual = format.Number(at.Value), format.Percent((rate-at.Value)/rate)
			}
		}
		table.Rows = append(table.Rows, document.Row{
			Name:  format.Count(m.Load.InFlight),
			Cells: []string{format.Number(rate), fitted, residual, format.Optional(m.LatencyMS.P50, format.Number), format.Optional(m.LatencyMS.P99, format.Number)},
		})
	}
	chart := document.Chart{
		Summary: fmt.Sprintf("Throughput over the number in flight: at most %s sagas/s, with %s.", format.Number(best.AchievedPerS), format.Count(best.InFlight)),
		X:       document.Axis{Label: "in flight", Scale: document.Log2}, Y: document.Axis{Label: "sagas/s"},
		Series: []document.Series{dots},
	}
	part := &document.Part{Title: "Throughput over in flight", Chart: &chart, Table: &table}
	if c.Fit == nil {
		part.Text = append(part.Text, "No law was fitted: "+cmp.Or(strings.TrimPrefix(c.NoFit, usl.ErrNoFit.Error()+": "), "nobody asked for it")+".")
		return part
	}
	chart.Series = append(chart.Series, lawSeries(*c.Fit))
	var f facts
	f.add("law", "X(n) = λn / (1 + σ(n-1) + κn(n-1)), the Universal Scalability Law")
	for _, p := range []struct {
		name, unit string
		usl.Estimate
	}{{"λ, one alone", "/s", c.Fit.Lambda}, {"σ, contention", "", c.Fit.Sigma}, {"κ, coherence", "", c.Fit.Kappa}} {
		f.add(p.name, fmt.Sprintf("%s%s (95%%: %s to %s)", format.Number(p.Value), p.unit, format.Number(p.Low), format.Number(p.High)))
	}
	f.add("R²", fmt.Sprintf("%.3f", c.Fit.R2))
	if n, x, known := c.Fit.Peak(); known {
		f.add("peak", fmt.Sprintf("%s sagas/s (95%%: %s to %s) with %s in flight", format.Number(x.Value), format.Number(x.Low), format.Number(x.High), format.Number(n)))
	}
	part.Facts = f
	return part
}

// lawSeries is the law over the measured range, and not beyond it.
func lawSeries(fit usl.Fit) document.Series {
	s := document.Series{Name: "fitted"}
	const steps = 60
	for i := range steps + 1 {
		n := fit.From * math.Pow(fit.To/fit.From, float64(i)/steps)
		n = min(max(n, fit.From), fit.To)
		if at, known := fit.At(n); known && at.Value > 0 {
			s.Points = append(s.Points, document.Point{X: n, Y: at.Value})
		}
	}
	return s
}

// predictedPart is how good the arithmetic of a plan is, by these measurements.
func (c search) predictedPart() *document.Part {
	if len(c.Predicted) == 0 {
		return nil
	}
	table := document.Table{Columns: []string{"expected", "measured", "unit"}}
	for _, p := range c.Predicted {
		table.Rows = append(table.Rows, document.Row{Name: p.What, Cells: []string{format.Number(p.Expected), format.Number(p.Measured), p.Unit}})
	}
	return &document.Part{
		Title: "A rate in the middle of the range, predicted",
		Text:  []string{fmt.Sprintf("What follows from the other measurements for %s/s, as a plan has it, and what was measured.", format.Number(*c.Validation.Load.OfferedPerS))},
		Table: &table,
	}
}
