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

// machines are those that results may differ in by number.
type machines struct {
	name  string // of several
	count func(result.Run) int
}

var (
	appHosts = machines{"app hosts", func(r result.Run) int { return r.AppHosts }}
	masters  = machines{"masters of the store", func(r result.Run) int {
		if r.Store.Driver == "redis" {
			return max(1, r.Store.Masters())
		}
		return 0 // an SQL server says nothing about a cluster
	}}
)

// throughput is the highest throughput with a number of machines.
type throughput struct {
	machines  int
	rate      float64
	low, high *float64 // of several searches; nil: there was one
	result    result.Result
}

// throughputOf returns the held rate, or the rate that a run
// achieved. known is false without a rate, or if the number of machines is unknown.
func (m machines) throughputOf(r result.Result) (t throughput, known bool) {
	t = throughput{machines: m.count(r.Envelope().Run), result: r}
	if c := r.Capacity; c == nil {
		t.rate = r.Run.Load.AchievedPerS
	} else if c := c.Capacity; c.Held != nil {
		t.rate = c.Held.RatePerS
		if c.Spread != nil {
			t.low, t.high = &c.Spread.Low, &c.Spread.High
		}
	}
	return t, t.machines > 0 && t.rate > 0 && r.MainStep() != nil
}

// growth is throughput over a number of machines. It returns nil if that number is the same
// for all results, or if they differ by more than it.
func (b sideBySide) growth(of machines) *document.Part {
	var all []throughput // by rising number of machines, and the highest rate of each first
	for _, r := range b.results {
		t, known := of.throughputOf(r)
		if !known {
			continue
		}
		if len(all) > 0 && !sameSystem(all[0].result, r) {
			return nil
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b throughput) int {
		return cmp.Or(cmp.Compare(a.machines, b.machines), cmp.Compare(b.rate, a.rate))
	})
	if len(all) == 0 || all[0].machines == all[len(all)-1].machines {
		return nil
	}
	other := appHosts
	table := &document.Table{Corner: of.name, Columns: []string{"sagas/s", "p50, ms", "p99, ms", "added by each"}}
	if of.name == appHosts.name {
		other = masters
	} else {
		table.Columns = append(table.Columns, "CPU of the busiest, µs", "times the mean")
	}
	var best []throughput // the highest of each number of machines
	for i, t := range all {
		if other.count(t.result.Envelope().Run) != other.count(all[0].result.Envelope().Run) {
			return nil
		}
		added := format.Unknown
		if i == 0 || t.machines > all[i-1].machines {
			if best = append(best, t); len(best) > 1 {
				added = gain(best[len(best)-2], t)
			}
		}
		m := t.result.MainStep().Measurement
		cells := []string{
			format.Number(t.rate), format.Optional(m.LatencyMS.P50, format.Number), format.Optional(m.LatencyMS.P99, format.Number), added,
			format.Optional(m.CostPerSaga.OfBusiest(t.result.Envelope().Run.Store), format.Number),
			format.Optional(m.Resources.StoreCPUImbalance, format.Ratio),
		}
		table.Rows = append(table.Rows, document.Row{Name: format.Count(t.machines), Cells: cells[:len(table.Columns)]})
	}
	return &document.Part{Title: "Throughput over " + of.name, Table: table, Text: of.scalingText(best)}
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

// scalingText says what the last added machines gained, against the first ones.
func (m machines) scalingText(best []throughput) []string {
	from, to := best[len(best)-2], best[len(best)-1]
	share := gainOfEach(from, to) / (best[0].rate / float64(best[0].machines))
	text := fmt.Sprintf("From %d to %d %s each added %s sagas/s, %s of the rate of each with %d.",
		from.machines, to.machines, m.name, gain(from, to), format.Percent(share), best[0].machines)
	if share <= 0 {
		text = fmt.Sprintf("From %d to %d %s: no more sagas/s.", from.machines, to.machines, m.name)
	}
	if c := to.result.Capacity; c != nil && c.Capacity.Limit.Resource != "" {
		text += fmt.Sprintf(" With %d the limit is %s.", to.machines, c.Capacity.Limit.Resource)
	}
	if to.result.Envelope().Run.SharedHost { // what another one adds there says nothing about machines of their own
		return []string{text, "The " + m.name + " shared a machine, so another one added no cores. On machines of their own they may add more."}
	}
	return []string{text + " Expect no more from the next one."}
}

// gainOfEach returns the sagas/s that each added machine gained.
func gainOfEach(from, to throughput) float64 {
	return (to.rate - from.rate) / float64(to.machines-from.machines)
}

// gain writes the same, with its range if those of the rates are known.
func gain(from, to throughput) string {
	more, added := gainOfEach(from, to), float64(to.machines-from.machines)
	text := format.Number(more)
	if from.low == nil || from.high == nil || to.low == nil || to.high == nil {
		return text
	}
	below := math.Hypot(to.rate-*to.low, *from.high-from.rate) / added
	above := math.Hypot(*to.high-to.rate, from.rate-*from.low) / added
	return fmt.Sprintf("%s (%s to %s)", text, format.Number(more-below), format.Number(more+above))
}
