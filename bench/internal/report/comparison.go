package report

import (
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/picture"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// comparison renders the parts of a comparison.
type comparison struct{ compare.Comparison }

// Comparison lays out a comparison.
func Comparison(s compare.Result) document.Document {
	c, v, gates := comparison{s.Compare}, s.Validity, s.Gates
	return document.Document{
		Title:    c.B.Name + " against " + c.A.Name,
		Headline: c.headline(),
		Lead:     c.lead(),
		Command:  s.Run.Command,
		Verdict:  v.Verdict(),
		Parts: present(
			gatePart(gates),
			c.metricPart(),
			detail(c.ratePart()),
			detail(c.cpuPart()),
			detail(c.pairPart()),
			because(v), warnings(v), notes(v),
			detail(c.differencePart()),
			detail(factsPart("Runs", facts{
				{Name: c.A.Name, Value: c.A.Command},
				{Value: strings.Join(c.A.Runs, ", ")},
				{Name: c.B.Name, Value: c.B.Command},
				{Value: strings.Join(c.B.Runs, ", ")},
			}))),
	}
}

// headline names the metrics that differ.
func (c comparison) headline() string {
	if len(c.NotRanked) > 0 {
		return "Not ranked: " + compare.List(c.NotRanked)
	}
	var found []string
	same := 0
	for _, m := range c.Metrics {
		switch {
		case m.Better != nil:
			found = append(found, m.Name+" "+compare.Change(*m.Effect))
		case m.Verdict == compare.NoDifference:
			same++
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("No difference shown between %s and %s in %d metrics", c.A.Name, c.B.Name, same)
	}
	return fmt.Sprintf("%s against %s: %s", c.B.Name, c.A.Name, compare.List(found))
}

func (c comparison) lead() []string {
	lines := []string{fmt.Sprintf("%s is %s; %s is %s.", c.A.Name, variantText(c.A), c.B.Name, variantText(c.B))}
	if c.Pairs < compare.MinPairs {
		lines = append(lines, fmt.Sprintf("Only %s of each: a difference may be chance.", format.Plural(c.Pairs, "run")))
	} else {
		lines = append(lines, fmt.Sprintf("%d interleaved pairs. Equal variants show a difference in fewer than 1 of 20 comparisons. Changes below %.0f%% are not named.",
			c.Pairs, 100*compare.Named))
	}
	var also []string
	for _, d := range c.Differences {
		also = append(also, d.Of+" "+d.Name)
	}
	if len(also) > 0 {
		lines = append(lines, "Different, too: "+compare.List(also)+".")
	}
	return lines
}

func (c comparison) metricPart() *document.Part {
	t := document.Table{
		Corner:  "median",
		Columns: []string{c.A.Name, c.B.Name, c.B.Name + " / " + c.A.Name, "from", "to", "verdict"},
	}
	for _, m := range c.Metrics {
		if len(m.ARuns)+len(m.BRuns) == 0 {
			continue
		}
		cells := []string{format.Optional(m.A, format.Number), format.Optional(m.B, format.Number), format.Unknown, format.Unknown, format.Unknown, metricVerdict(m)}
		if r := m.Ratio; r != nil {
			cells[2], cells[3], cells[4] = format.Optional(&r.Value, format.Ratio), format.Optional(r.Low, format.Ratio), format.Optional(r.High, format.Ratio)
		}
		name := m.Name
		if unit := m.Unit; unit != "" {
			name += ", " + unit
		}
		t.Rows = append(t.Rows, document.Row{Name: name, Cells: cells})
	}
	return &document.Part{Title: "Metrics", Table: &t}
}

// variantText is what was run for a side.
func variantText(s compare.Subject) string {
	return strings.TrimPrefix(strings.TrimPrefix(s.Command, "go run bench/main.go "), "run ")
}

// variantNames are the sides with what was run for them.
func (c comparison) variantNames() []string {
	return []string{c.A.Name + ": " + variantText(c.A), c.B.Name + ": " + variantText(c.B)}
}

// spread returns the median that is given, and the lowest and highest run. It returns nil
// without a median.
func spread(median *float64, runs []float64) *result.Spread {
	if median == nil {
		return nil
	}
	return &result.Spread{Low: slices.Min(runs), Median: *median, High: slices.Max(runs)}
}

// ratePart has the rate and the p99 of both sides.
func (c comparison) ratePart() *document.Part {
	var charts []*document.Chart
	for _, m := range c.Metrics {
		if m.Metric == "achieved_per_s" || m.Metric == "p99_ms" {
			charts = append(charts, picture.Figures(m.Name+", "+m.Unit, c.variantNames(), []*result.Spread{spread(m.A, m.ARuns), spread(m.B, m.BRuns)}))
		}
	}
	return picture.Part("Rate and latency", charts...)
}

// cpuPart has the medians of the CPU per saga of both sides.
func (c comparison) cpuPart() *document.Part {
	medians := make([]result.Cost, 2)
	for _, m := range c.Metrics {
		for _, f := range result.CPUFields {
			if f.Key == m.Metric {
				f.Set(&medians[0], m.A)
				f.Set(&medians[1], m.B)
			}
		}
	}
	return cpuPart(c.variantNames(), medians)
}

func metricVerdict(m compare.Metric) string {
	if m.Better == nil {
		return m.Verdict
	}
	return m.Verdict + "; " + *m.Better + " is better"
}

// pairPart charts the first CPU time per saga that both sides have: the figure to quote.
func (c comparison) pairPart() *document.Part {
	for _, m := range c.Metrics {
		if m.Unit != "µs" || m.A == nil || m.B == nil || c.Pairs < 2 {
			continue
		}
		dots := func(name string, xs []float64) document.Series {
			s := document.Series{Name: name, Dots: true}
			for pair, x := range xs {
				s.Points = append(s.Points, document.Point{X: float64(pair + 1), Y: x})
			}
			return s
		}
		return &document.Part{Title: "Pair by pair", Chart: &document.Chart{
			Summary: fmt.Sprintf("%s of each run: the median is %s µs for %s and %s µs for %s.",
				m.Name, format.Optional(m.A, format.Number), c.A.Name, format.Optional(m.B, format.Number), c.B.Name),
			X:      document.Axis{Label: "pair"},
			Y:      document.Axis{Label: m.Name + ", µs"},
			Series: []document.Series{dots(c.A.Name, m.ARuns), dots(c.B.Name, m.BRuns)},
		}}
	}
	return nil
}

func (c comparison) differencePart() *document.Part {
	p := &document.Part{Title: "Differences"}
	if len(c.Differences) == 0 {
		p.Text = []string{"None known: settings, load, versions and machine are the same."}
		return p
	}
	p.Table = &document.Table{Columns: []string{c.A.Name, c.B.Name}}
	for _, d := range c.Differences {
		p.Table.Rows = append(p.Table.Rows, document.Row{Name: d.Of + ": " + d.Name, Cells: []string{d.A, d.B}})
	}
	return p
}

func gatePart(gates []compare.GateResult) *document.Part {
	t := &document.Table{Columns: []string{"outcome", "evidence"}}
	for _, g := range gates {
		t.Rows = append(t.Rows, document.Row{Name: g.Gate, Cells: []string{string(g.Outcome), g.Evidence}})
	}
	return tablePart("Gates", t)
}
