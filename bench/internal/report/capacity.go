package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/usl"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// search renders the parts of a search for the capacity.
type search struct{ result.Capacity }

func capacityDocument(s result.CapacitySummary, dir string) document.Document {
	c := search{s.Capacity}
	var method facts
	method.add("service level", c.SLO.String())
	how := "the answer was held twice, a little below the highest rate that met the service level once, which may have been lucky"
	if c.LimitS != nil {
		how = "a time limit of " + format.Number(*c.LimitS) + " s ended the search"
	}
	method.add("hold", format.Short(c.HoldS)+" s; "+how)
	method.add("measurements", fmt.Sprintf("%d with a rate, %d with a number in flight, in %s s", len(c.Steps), len(c.Scaling), format.Number(s.Run.DurationS)))
	method.add("saga", s.Run.Scenario.String())
	var latency, cost *document.Part
	if step := (result.Result{Capacity: &s}).MainStep(); step != nil {
		rate := format.Number(step.RatePerS) + "/s"
		whole := step.Measurement
		whole.LatencyMS, whole.ServiceMS = c.Held.LatencyMS, result.Latency{} // the former is of all holds
		latency = latencyPart("Latency, ms, "+rate, whole)
		cost = factsPart("Cost per saga at "+rate+s.Run.Store.CostNote(), costFacts(step.Measurement))
	}
	return document.Document{
		Title:    s.Run.ID,
		Verdict:  s.Validity.Verdict(),
		Headline: c.headline(s.Run.Store),
		Lead:     append(c.lead(), auditResult(s.Check)),
		Command:  s.Run.Command,
		Again:    again,
		Parts: present(
			latency,
			detail(c.latencyPart()),
			detail(c.searchesPart()),
			c.limitPart(),
			detail(c.scalingPart()),
			detail(cost),
			detail(c.costPart()),
			detail(c.resourcesPart()),
			detail(c.predictedPart()),
			detail(factsPart("Check", checkFacts(s.Check))), // the lead has what it found
			because(s.Validity), warnings(s.Validity), notes(s.Validity),
			detail(factsPart("Search", method)),
			detail(factsPart("Environment", environmentFacts(s.Run, s.Environment))),
			detail(factsPart("Run", runFacts(s.Run, dir)))),
	}
}

func (c search) headline(s result.Store) string {
	switch {
	case c.CannotTell != "":
		return fmt.Sprintf("cannot tell the highest rate %s at %s", onStore(s), c.SLO.LatencyLimits())
	case len(c.Searches) == 0:
		return fmt.Sprintf("the search for the highest rate %s at %s did not end", onStore(s), c.SLO.LatencyLimits())
	case c.Held == nil:
		return fmt.Sprintf("no rate %s held %s", onStore(s), c.SLO.LatencyLimits())
	}
	line := ""
	if c.LimitS != nil {
		line = "at least "
	}
	line += fmt.Sprintf("%s sagas/s %s held at %s", format.Number(c.Held.RatePerS), onStore(s), c.SLO.LatencyLimits())
	if c.Limit.Resource != "" {
		line += ", limited by " + c.Limit.Resource
	}
	return line
}

// lead describes the hold, the next higher rate, and the spread between searches.
func (c search) lead() (lines []string) {
	if h := c.Held; h != nil {
		limit := "the limit"
		var latencies []string
		for i, g := range c.SLO.Latencies {
			text := g.Name() + " " + format.Optional(h.LatencyMS.At(g.Percentile), format.Number) + " ms"
			if i < len(h.Interval) {
				text += fmt.Sprintf(" (%s to %s within this hold)", format.Number(h.Interval[i].LowMS), format.Number(h.Interval[i].HighMS))
			}
			latencies = append(latencies, text)
		}
		if len(latencies) > 1 {
			limit = "a limit"
		}
		lines = append(lines, fmt.Sprintf("Held for %s s: %s, over %s in %s of its seconds, %s.", format.Number(h.DurationS),
			strings.Join(latencies, ", "), limit, format.Percent(h.OverLimitShare), format.Plural(h.Errors, "request")+" failed or not sent"))
	}
	if n := c.Next; n != nil {
		text := "%s/s was not held: %s."
		if c.Held == nil && c.CannotTell == "" { // the lowest that was tried
			text = "Not even %s/s was held: %s."
		}
		lines = append(lines, fmt.Sprintf(text, format.Number(n.RatePerS), n.Why))
	}
	if w := c.Spread; w != nil {
		text := fmt.Sprintf("Spread of %d searches: %s to %s sagas/s, median %s.", len(result.CanTell(c.Searches)), format.Number(w.Low), format.Number(w.High), format.Number(w.Median))
		if w.Low == 0 {
			text += " 0: no rate was held."
		}
		lines = append(lines, text)
	}
	return lines
}

// searchesPart is the answer of each search. It returns nil for a single one.
func (c search) searchesPart() *document.Part {
	if c.Spread == nil {
		return nil
	}
	table := document.Table{Corner: "search", Columns: []string{"held, sagas/s", "not held, sagas/s"}}
	for _, g := range c.SLO.Latencies {
		table.Columns = append(table.Columns, g.Name()+", ms")
	}
	for i, s := range c.Searches {
		r := document.Row{Name: format.Count(int64(i + 1)), Cells: []string{"none", format.Unknown}}
		switch {
		case s.CannotTell != "":
			r.Cells[0] = "cannot tell"
		case s.Held != nil:
			r.Cells[0] = format.Number(s.Held.RatePerS)
		}
		if s.Next != nil {
			r.Cells[1] = format.Number(s.Next.RatePerS)
		}
		for _, g := range c.SLO.Latencies {
			ms := format.Unknown
			if s.Held != nil {
				ms = format.Optional(s.Held.LatencyMS.At(g.Percentile), format.Number)
			}
			r.Cells = append(r.Cells, ms)
		}
		table.Rows = append(table.Rows, r)
	}
	return tablePart("Searches", &table)
}

// latencyPart is latency over the offered rate, with all steps.
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
				s.Points = append(s.Points, document.Point{X: m.RatePerS, Y: *ms})
			}
		}
		if len(s.Points) > 0 {
			chart.Series = append(chart.Series, s)
		}
	}
	series("p50", func(m result.Step) *float64 { return m.LatencyMS.P50 })
	table := document.Table{Corner: "offered, sagas/s", Columns: []string{"s", "achieved", "p50"}}
	for _, g := range c.SLO.Latencies {
		for _, outcome := range []string{"violated", "met", "unknown"} {
			series(g.Name()+", "+outcome, func(m result.Step) *float64 {
				if sloOutcome(m) != outcome {
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
	if c.Held != nil {
		chart.Marks = append(chart.Marks, document.Mark{Label: format.Number(c.Held.RatePerS) + "/s", X: &c.Held.RatePerS})
	}
	table.Columns = append(table.Columns, "errors", "service level")
	for _, m := range steps {
		r := document.Row{Name: format.Number(m.RatePerS), Cells: []string{stepSeconds(m), format.Number(m.Load.AchievedPerS), format.Optional(m.LatencyMS.P50, format.Number)}}
		for _, g := range c.SLO.Latencies {
			r.Cells = append(r.Cells, format.Optional(m.LatencyMS.At(g.Percentile), format.Number))
		}
		r.Cells = append(r.Cells, format.Count(m.Load.Errors), stepOutcome(m))
		table.Rows = append(table.Rows, r)
	}
	chart.Summary = fmt.Sprintf("Latency from the due time over the offered rate, %s to %s sagas/s; the service level is %s.",
		format.Number(steps[0].RatePerS), format.Number(steps[len(steps)-1].RatePerS), c.SLO)
	return &document.Part{Title: "Latency over the rate", Chart: &chart, Table: &table}
}

// stepSeconds is the length of a step, and whether the rate was to be held.
func stepSeconds(m result.Step) string {
	if m.Hold {
		return format.Number(m.DurationS) + ", hold"
	}
	return format.Number(m.DurationS)
}

// sloOutcome says whether a step met the service level.
func sloOutcome(m result.Step) string {
	switch {
	case m.MeetsSLO == nil:
		return "unknown"
	case *m.MeetsSLO:
		return "met"
	}
	return "violated"
}

// stepOutcome is the same with the kind of the reason: the whole one is too long for a
// table.
func stepOutcome(m result.Step) string {
	kind, _, named := strings.Cut(m.Why, ":")
	switch {
	case !m.Validity.Valid:
		return "not valid, " + cmp.Or(kind, "incomplete")
	case m.MeetsSLO == nil:
		return format.Unknown
	case *m.MeetsSLO:
		return "met"
	case named:
		return kind
	}
	return "violated"
}

// logarithmic gives y a logarithmic scale if the highest value is far above the typical
// one.
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
	return factsPart("Limit", facts{{Name: cmp.Or(c.Limit.Resource, "unknown"), Value: c.Limit.Evidence}})
}

// scalingPart is throughput over the number in flight, with the fitted law. It returns nil
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
		part.Text = append(part.Text, "No scaling law was fitted: "+cmp.Or(strings.TrimPrefix(c.NoFit, usl.ErrNoFit.Error()+": "), "no fit was requested")+".")
		return part
	}
	curve := document.Series{Name: "fitted"}
	for _, at := range c.Fit.Curve {
		curve.Points = append(curve.Points, document.Point{X: at.N, Y: at.X.Value})
	}
	chart.Series = append(chart.Series, curve)
	var f facts
	f.add("law", "X(n) = λn / (1 + σ(n-1) + κn(n-1)), the Universal Scalability Law")
	for _, p := range []struct {
		name, unit string
		usl.Estimate
	}{{"λ, with one in flight", "/s", c.Fit.Lambda}, {"σ, contention", "", c.Fit.Sigma}, {"κ, coherence", "", c.Fit.Kappa}} {
		f.add(p.name, fmt.Sprintf("%s%s (95%%: %s to %s)", format.Number(p.Value), p.unit, format.Number(p.Low), format.Number(p.High)))
	}
	f.add("R²", fmt.Sprintf("%.3f", c.Fit.R2))
	if n, x, known := c.Fit.Peak(); known {
		f.add("peak", fmt.Sprintf("%s sagas/s (95%%: %s to %s) with %s in flight", format.Number(x.Value), format.Number(x.Low), format.Number(x.High), format.Number(n)))
	}
	part.Facts = f
	return part
}

// predictedPart compares what a plan would predict for one rate with what was measured at
// it.
func (c search) predictedPart() *document.Part {
	if len(c.Predicted) == 0 || c.Validation == nil {
		return nil
	}
	table := document.Table{Columns: []string{"predicted", "measured", "unit"}}
	for _, p := range c.Predicted {
		table.Rows = append(table.Rows, document.Row{Name: p.What, Cells: []string{format.Number(p.Expected), format.Number(p.Measured), p.Unit}})
	}
	return &document.Part{
		Title: "Predicted and measured at " + format.Number(c.Validation.RatePerS) + "/s",
		Text:  []string{"The other measurements predict these values, as bench plan does."},
		Table: &table,
	}
}

// sampleDistance is the least relative distance between the rates that the tables of
// costs and resources show: near the capacity there are many that are nearly the same.
const sampleDistance = 0.1

// samples returns one valid step for some of the rates that the system could follow, the
// highest included. A rate that was measured several times has its last step.
func (c search) samples() (names []string, chosen []result.Step) {
	for _, m := range slices.Backward(c.ByRate()) {
		if m.Load.Overloaded() || !m.Validity.Valid {
			continue
		}
		if n := len(chosen); n == 0 || m.RatePerS < chosen[n-1].RatePerS*(1-sampleDistance) {
			chosen = append(chosen, m)
		}
	}
	slices.Reverse(chosen)
	for _, m := range chosen {
		names = append(names, format.Number(m.RatePerS)+"/s")
	}
	return names, chosen
}

// costPart is the cost per saga over the rate: batches grow with it.
func (c search) costPart() *document.Part {
	names, chosen := c.samples()
	var costs []result.Cost
	for _, m := range chosen {
		costs = append(costs, m.CostPerSaga)
	}
	chart := cpuChart(names, costs)
	if chart == nil {
		return nil
	}
	last := costs[len(costs)-1]
	var summary []string
	for _, f := range result.CPUFields {
		if us := f.Of(last); us != nil {
			summary = append(summary, f.Short+" "+format.Number(*us))
		}
	}
	chart.Summary = fmt.Sprintf("CPU per saga in µs, by process, at some rates; at %s: %s.", names[len(names)-1], strings.Join(summary, ", "))
	return &document.Part{Title: "Cost per saga over the rate", Chart: chart, Table: figureTable(names, costs, result.CostFields)}
}

// resourcesPart is the use of each resource over the rate.
func (c search) resourcesPart() *document.Part {
	names, chosen := c.samples()
	var used []result.Resources
	for _, m := range chosen {
		used = append(used, m.Resources)
	}
	return tablePart("Resources over the rate", figureTable(names, used, result.ResourceFields))
}
