package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/usl"
	"sagabench/internal/document"
)

// Document is the result as it is shown.
func (s CapacitySummary) Document(dir string) document.Document {
	c := s.Capacity
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
	var search facts
	search.add("service level", c.SLO.String())
	search.add("measured", fmt.Sprintf("%s with a rate, %s with a number in flight, in %s s",
		plural(int64(len(c.Steps)), "time"), plural(int64(len(c.Scaling)), "time"), number(s.Run.DurationS)))
	search.add("saga", s.Run.Scenario.words())
	d.Parts = append(d.Parts,
		document.Part{Title: "Search", Facts: search},
		document.Part{Title: "Environment", Facts: environmentFacts(s.Run, s.Environment)},
		document.Part{Title: "Run", Facts: runFacts(s.Run, dir)})
	return d
}

// String is the service level in words.
func (o SLO) String() string {
	var all []string
	for _, l := range o.Latencies {
		all = append(all, l.String())
	}
	return strings.Join(append(all, "errors ≤ "+brief(100*o.Errors)+"%"), ", ")
}

// String is the goal as "p99 ≤ 20 ms".
func (g LatencyGoal) String() string { return g.Name() + " ≤ " + brief(g.MS) + " ms" }

// Name is that of the percentile, as "p99.9".
func (g LatencyGoal) Name() string { return "p" + brief(g.Percentile) }

// brief writes a number that somebody chose.
func brief(x float64) string { return fmt.Sprintf("%.6g", x) }

// level is the service level without that of the errors.
func (o SLO) level() string {
	var all []string
	for _, l := range o.Latencies {
		all = append(all, l.String())
	}
	return strings.Join(all, ", ")
}

func (c Capacity) headline(s Store) string {
	where := "on " + cmp.Or(s.Driver, "an unknown store")
	if d := durability(s); d != "" {
		where += " (" + d + ")"
	}
	if c.RatePerS == nil {
		return fmt.Sprintf("no rate that was tried %s keeps %s", where, c.SLO.level())
	}
	line := fmt.Sprintf("%s sagas/s %s at %s", number(*c.RatePerS), where, c.SLO.level())
	if c.HighPerS == nil {
		line = "at least " + line
	}
	if c.Limit.Resource != "" {
		line += ", limited by " + c.Limit.Resource
	}
	return line
}

// lead says how well the rate is known.
func (c Capacity) lead() []string {
	switch {
	case c.RatePerS == nil && c.HighPerS != nil:
		return []string{fmt.Sprintf("The service level was not kept at %s sagas/s, nor above.", number(*c.HighPerS))}
	case c.RatePerS == nil:
		return nil
	case c.HighPerS != nil && c.LowPerS != nil:
		return []string{fmt.Sprintf("With 95%% confidence the highest rate that keeps it is from %s to %s sagas/s.", number(*c.LowPerS), number(*c.HighPerS))}
	case c.HighPerS == nil:
		return []string{"It was kept at the highest rate that was tried."}
	}
	return nil
}

// latencyPart is latency over the offered rate, all measurements of it.
func (c Capacity) latencyPart() *document.Part {
	steps := c.byRate()
	if len(steps) == 0 {
		return nil
	}
	chart := document.Chart{X: document.Axis{Label: "offered, sagas/s"}, Y: document.Axis{Label: "ms"}}
	series := func(name string, of func(Measured) *float64) {
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
	series("p50", func(m Measured) *float64 { return m.LatencyMS.P50 })
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
			series(g.Name()+", "+judged.name, func(m Measured) *float64 {
				if !judged.is(m.Kept) {
					return nil
				}
				return m.LatencyMS.At(g.Percentile)
			})
		}
		chart.Marks = append(chart.Marks, document.Mark{Label: brief(g.MS) + " ms", Y: &g.MS})
		table.Columns = append(table.Columns, g.Name())
	}
	if len(chart.Series) == 0 {
		return nil
	}
	logarithmic(&chart, chart.Series[0].Points[0].Y)
	if c.RatePerS != nil {
		chart.Marks = append(chart.Marks, document.Mark{Label: number(*c.RatePerS) + "/s", X: c.RatePerS})
	}
	table.Columns = append(table.Columns, "errors", "")
	for _, m := range steps {
		r := document.Row{Name: number(*m.Load.OfferedPerS), Cells: []string{number(m.Load.AchievedPerS), optional(m.LatencyMS.P50)}}
		for _, g := range c.SLO.Latencies {
			r.Cells = append(r.Cells, optional(m.LatencyMS.At(g.Percentile)))
		}
		r.Cells = append(r.Cells, count(m.Load.Errors), m.outcome())
		table.Rows = append(table.Rows, r)
	}
	chart.Summary = fmt.Sprintf("Latency from the due time over the offered rate, %s to %s sagas/s; the service level is %s.",
		number(*steps[0].Load.OfferedPerS), number(*steps[len(steps)-1].Load.OfferedPerS), c.SLO)
	return &document.Part{Title: "Latency over the rate", Chart: &chart, Table: &table}
}

// outcome says what became of the service level.
func (m Measured) outcome() string {
	switch {
	case !m.Validity.Valid:
		kind, _, _ := strings.Cut(m.Why, ":") // its numbers would be most of the table
		return "not valid, " + cmp.Or(kind, "incomplete")
	case m.Kept == nil:
		return unknown
	case *m.Kept:
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

// byRate are the open-loop steps by their offered rate.
func (c Capacity) byRate() []Measured {
	steps := slices.DeleteFunc(slices.Clone(c.Steps), func(m Measured) bool { return m.Load.OfferedPerS == nil })
	slices.SortStableFunc(steps, func(a, b Measured) int { return cmp.Compare(*a.Load.OfferedPerS, *b.Load.OfferedPerS) })
	return steps
}

func (c Capacity) limitPart() *document.Part {
	if c.Limit.Resource == "" && c.Limit.Evidence == "" {
		return nil
	}
	var f facts
	f.add("resource", cmp.Or(c.Limit.Resource, "not known"))
	if c.Limit.Share != nil {
		f.add("used at the edge", percent(*c.Limit.Share))
	}
	if c.Limit.Evidence != "" {
		f.add("evidence", c.Limit.Evidence)
	}
	return &document.Part{Title: "What limits it", Facts: f}
}

// scalingPart is throughput over in flight, with the law that was fitted to it.
func (c Capacity) scalingPart() *document.Part {
	var points []usl.Point
	for _, m := range c.Scaling {
		points = append(points, usl.Point{N: float64(m.Load.InFlight), X: m.Load.AchievedPerS})
	}
	return LawPart("in flight", "in flight", points, c.Scaling, c.Fit, c.NoFit)
}

// LawPart is throughput over a number of something, with the law that was fitted to
// the points; point i is of measurement i. over is how "the number" goes on in a sentence.
// It is nil without a point.
func LawPart(of, over string, points []usl.Point, measured []Measured, fit *usl.Fit, noFit string) *document.Part {
	if len(points) == 0 {
		return nil
	}
	dots := document.Series{Name: "measured", Dots: true}
	table := document.Table{Corner: of, Columns: []string{"sagas/s", "fitted", "residual", "p50, ms", "p99, ms"}}
	best := points[0]
	for i, p := range points {
		dots.Points = append(dots.Points, document.Point{X: p.N, Y: p.X})
		if p.X > best.X {
			best = p
		}
		fitted, residual := unknown, unknown
		if fit != nil && p.X > 0 {
			if at, known := fit.At(p.N); known {
				fitted, residual = number(at.Value), percent((p.X-at.Value)/p.X)
			}
		}
		latency := measured[i].LatencyMS
		table.Rows = append(table.Rows, document.Row{
			Name:  count(int64(p.N)),
			Cells: []string{number(p.X), fitted, residual, optional(latency.P50), optional(latency.P99)},
		})
	}
	chart := document.Chart{
		Summary: fmt.Sprintf("Throughput over the number %s: at most %s sagas/s, with %s.", over, number(best.X), count(int64(best.N))),
		X:       document.Axis{Label: of, Scale: document.Log2}, Y: document.Axis{Label: "sagas/s"},
		Series: []document.Series{dots},
	}
	part := &document.Part{Title: "Throughput over " + of, Chart: &chart, Table: &table}
	if fit == nil {
		part.Text = append(part.Text, "No law was fitted: "+cmp.Or(strings.TrimPrefix(noFit, usl.ErrNoFit.Error()+": "), "nobody asked for it")+".")
		return part
	}
	chart.Series = append(chart.Series, lawSeries(*fit))
	var f facts
	f.add("law", "X(n) = λn / (1 + σ(n-1) + κn(n-1)), the Universal Scalability Law")
	for _, p := range []struct {
		name, unit string
		usl.Estimate
	}{{"λ, one alone", "/s", fit.Lambda}, {"σ, contention", "", fit.Sigma}, {"κ, coherence", "", fit.Kappa}} {
		f.add(p.name, fmt.Sprintf("%s%s (95%%: %s to %s)", number(p.Value), p.unit, number(p.Low), number(p.High)))
	}
	f.add("R²", fmt.Sprintf("%.3f", fit.R2))
	if n, x, known := fit.Peak(); known {
		f.add("peak", fmt.Sprintf("%s sagas/s (95%%: %s to %s) with %s %s", number(x.Value), number(x.Low), number(x.High), number(n), of))
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
func (c Capacity) predictedPart() *document.Part {
	if len(c.Predicted) == 0 {
		return nil
	}
	table := document.Table{Columns: []string{"expected", "measured", "unit"}}
	for _, p := range c.Predicted {
		table.Rows = append(table.Rows, document.Row{Name: p.What, Cells: []string{number(p.Expected), number(p.Measured), p.Unit}})
	}
	return &document.Part{
		Title: "The middle of the range, foretold",
		Text:  []string{fmt.Sprintf("What follows from the other measurements for %s/s, as a plan has it, and what was measured.", number(*c.Middle.Load.OfferedPerS))},
		Table: &table,
	}
}
