package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// onHosts is the highest throughput of a number of app hosts.
type onHosts struct {
	n         int
	rate      float64
	low, high *float64 // its 95% interval; nil: not known
	of        result.Result
}

// throughput is what a result says of its app hosts: the highest rate that kept the
// service level, or what a run achieved.
func throughput(r result.Result) (t onHosts, known bool) {
	t = onHosts{n: r.Envelope().Run.AppHosts, of: r}
	if c := r.Capacity; c == nil {
		t.rate = r.Run.Load.AchievedPerS
	} else if c := c.Capacity; c.RatePerS != nil {
		t.rate, t.low, t.high = *c.RatePerS, c.LowPerS, c.HighPerS
	}
	return t, t.n > 0 && t.rate > 0 && r.Edge() != nil
}

// scaling is the throughput over the number of app hosts, if several were measured with
// the same sagas and store.
func (b beside) scaling() *document.Part {
	var all []onHosts // n rising, and of each n the highest rate first
	for _, r := range b.results {
		t, known := throughput(r)
		if !known {
			continue
		}
		if len(all) > 0 && !sameSystem(all[0].of, r) {
			return nil
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b onHosts) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(b.rate, a.rate)) })
	if len(all) == 0 || all[0].n == all[len(all)-1].n {
		return nil
	}
	table := document.Table{Corner: "app hosts", Columns: []string{"sagas/s", "p50, ms", "p99, ms", "added by each"}}
	for _, t := range all {
		latency := t.of.Edge().LatencyMS
		table.Rows = append(table.Rows, document.Row{Name: format.Count(t.n), Cells: []string{
			format.Number(t.rate), format.Optional(latency.P50, format.Number), format.Optional(latency.P99, format.Number),
		}})
	}
	part := &document.Part{Title: "Throughput over app hosts", Table: &table}
	addGains(part, all)
	return part
}

// sameSystem reports whether results differ by their machines at most.
func sameSystem(a, b result.Result) bool {
	x, y := a.Envelope().Run, b.Envelope().Run
	if x.Store.Driver != y.Store.Driver || x.Store.Durability != y.Store.Durability || x.Scenario != y.Scenario {
		return false
	}
	if a.Capacity == nil || b.Capacity == nil {
		return a.Capacity == b.Capacity
	}
	return a.Capacity.Capacity.SLO.String() == b.Capacity.Capacity.SLO.String()
}

// addGains says what each further host brought, by the highest rate of each number of
// them, and what follows for the next.
func addGains(part *document.Part, all []onHosts) {
	var best []onHosts
	for i, t := range all {
		text := format.Unknown
		if i == 0 || t.n > all[i-1].n {
			if best = append(best, t); len(best) > 1 {
				text = gain(best[len(best)-2], t)
			}
		}
		part.Table.Rows[i].Cells = append(part.Table.Rows[i].Cells, text)
	}
	first := best[0].rate / float64(best[0].n)
	from, to := best[len(best)-2], best[len(best)-1]
	more := perHost(from, to)
	each := "one carries alone"
	if n := best[0].n; n > 1 {
		each = fmt.Sprintf("each of the first %d carries", n)
	}
	text := fmt.Sprintf("From %d to %d app hosts: each added %s sagas/s, %s of what %s.", from.n, to.n, gain(from, to), format.Percent(more/first), each)
	if more <= 0 {
		text = fmt.Sprintf("From %d to %d app hosts: no more sagas/s.", from.n, to.n)
	}
	if c := to.of.Capacity; c != nil && c.Capacity.Limit.Resource != "" {
		text += fmt.Sprintf(" With %d the limit is %s.", to.n, c.Capacity.Limit.Resource)
	}
	part.Text = append(part.Text, text+" Expect no more of the next.")
	if to.of.Envelope().Run.SharedHost {
		part.Text = append(part.Text, "They shared a machine: one more server on it adds no cores, as one more host would.")
	}
}

// perHost is how much each of the hosts brought that were added.
func perHost(from, to onHosts) float64 { return (to.rate - from.rate) / float64(to.n-from.n) }

// gain is the same in words, with its 95% interval where those of the rates are known.
func gain(from, to onHosts) string {
	more, hosts := perHost(from, to), float64(to.n-from.n)
	text := format.Number(more)
	if from.low == nil || from.high == nil || to.low == nil || to.high == nil {
		return text
	}
	below := math.Hypot(to.rate-*to.low, *from.high-from.rate) / hosts
	above := math.Hypot(*to.high-to.rate, from.rate-*from.low) / hosts
	return fmt.Sprintf("%s (%s to %s)", text, format.Number(more-below), format.Number(more+above))
}
