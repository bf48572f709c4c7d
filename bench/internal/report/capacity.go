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
	method.add("measurements", fmt.Sprintf("%d with a rate, %d with a number in flight, in %s s", len(c.Steps), len(c.Scaling), format.Number(s.Run.DurationS)))
	method.add("saga", s.Run.Scenario.String())
	var latency, cost *document.Part
	if step := (result.Result{Capacity: &s}).MainStep(); step != nil {
		rate := format.Optional(step.Load.OfferedPerS, format.Number) + "/s"
		latency = latencyPart("Latency, ms, "+rate, step.Measurement)
		cost = factsPart("Cost per saga at "+rate, costFacts(step.CostPerSaga))
	}
	return document.Document{
		Title:    s.Run.ID,
		Verdict:  s.Validity.Verdict(),
		Headline: c.headline(s.Run.Store),
		Lead:     append(c.lead(), auditResult(s.Check)),
		Command:  s.Run.Command,
		Parts: present(
			latency,
			detail(c.latencyPart()),
			c.limitPart(),
			detail(c.scalingPart()),
			cost,
			detail(c.costPart()),
			detail(c.resourcesPart()),
			detail(c.predictedPart()),
			factsPart("Check", checkFacts(s.Check)),
			warningsPart(s.Validity),
			detail(factsPart("Search", method)),
			detail(factsPart("Environment", environmentFacts(s.Run, s.Environment))),
			detail(factsPart("Run", runFacts(s.Run, dir)))),
	}
}

func (c search) headline(s result.Store) string {
	if c.RatePerS == nil {
		return fmt.Sprintf("no tried rate %s meets %s", onStore(s), c.SLO.LatencyLimits())
	}
	line := fmt.Sprintf("%s sagas/s %s at %s", format.Number(*c.RatePerS), onStore(s), c.SLO.LatencyLimits())
	if c.HighPerS == nil {
		line = "at least " + line
	}
	if c.Limit.Resource != "" {
		line += ", limited by " + c.Limit.Resource
	}
	return line
}

// lead states the interval of the rate.
func (c search) lead() []string {
	switch low, high := c.LowPerS, c.HighPerS; {
	case c.RatePerS == nil && high != nil:
		return []string{fmt.Sprintf("The service level was violated at %s sagas/s and above.", format.Number(*high))}
	case c.RatePerS == nil:
		return nil
	case high == nil:
		return []string{"The service level was met at the highest tried rate."}
	case low != nil:
		return []string{fmt.Sprintf("The 95%% confidence interval is %s to %s sagas/s.", format.Number(*low), format.Number(*high))}
	}
	return nil
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
	if c.RatePerS != nil {
		chart.Marks = append(chart.Marks, document.Mark{Label: format.Number(*c.RatePerS) + "/s", X: c.RatePerS})
	}
	table.Columns = append(table.Columns, "errors", "service level")
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

// stepOutcome is the same with the reason.
func stepOutcome(m result.Step) string {
	switch {
	case !m.Validity.Valid:
		kind, _, _ := strings.Cut(m.Why, ":") // the whole reason is too long for a table
		return "not valid, " + cmp.Or(kind, "incomplete")
	case m.MeetsSLO == nil:
		return format.Unknown
	case *m.MeetsSLO:
		return "met"
	}
	return cmp.Or(m.Why, "violated")
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
	if len(c.Predicted) == 0 {
		return nil
	}
	table := document.Table{Columns: []string{"predicted", "measured", "unit"}}
	for _, p := range c.Predicted {
		table.Rows = append(table.Rows, document.Row{Name: p.What, Cells: []string{format.Number(p.Expected), format.Number(p.Measured), p.Unit}})
	}
	return &document.Part{
		Title: "Predicted and measured at " + format.Number(*c.Validation.Load.OfferedPerS) + "/s",
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
		if n := len(chosen); n == 0 || *m.Load.OfferedPerS < *chosen[n-1].Load.OfferedPerS*(1-sampleDistance) {
			chosen = append(chosen, m)
		}
	}
	slices.Reverse(chosen)
	for _, m := range chosen {
		names = append(names, format.Number(*m.Load.OfferedPerS)+"/s")
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
