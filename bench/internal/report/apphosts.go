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

// throughput is the highest throughput with a number of app hosts.
type throughput struct {
	hosts     int
	rate      float64
	low, high *float64 // of several searches; nil: there was one
	result    result.Result
}

// throughputOf returns the held rate, or the rate that a run
// achieved. known is false without a rate, or if the number of app hosts is unknown.
func throughputOf(r result.Result) (t throughput, known bool) {
	t = throughput{hosts: r.Envelope().Run.AppHosts, result: r}
	if c := r.Capacity; c == nil {
		t.rate = r.Run.Load.AchievedPerS
	} else if c := c.Capacity; c.Held != nil {
		t.rate = c.Held.RatePerS
		if c.Spread != nil {
			t.low, t.high = &c.Spread.Low, &c.Spread.High
		}
	}
	return t, t.hosts > 0 && t.rate > 0 && r.MainStep() != nil
}

// appHostsPart is throughput over the number of app hosts. It returns nil if that number
// is the same for all results, or if they differ by more than their machines.
func (b sideBySide) appHostsPart() *document.Part {
	var all []throughput // by rising number of hosts, and the highest rate of each first
	for _, r := range b.results {
		t, known := throughputOf(r)
		if !known {
			continue
		}
		if len(all) > 0 && !sameSystem(all[0].result, r) {
			return nil
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b throughput) int {
		return cmp.Or(cmp.Compare(a.hosts, b.hosts), cmp.Compare(b.rate, a.rate))
	})
	if len(all) == 0 || all[0].hosts == all[len(all)-1].hosts {
		return nil
	}
	table := &document.Table{Corner: "app hosts", Columns: []string{"sagas/s", "p50, ms", "p99, ms", "added by each"}}
	var best []throughput // the highest of each number of hosts
	for i, t := range all {
		added := format.Unknown
		if i == 0 || t.hosts > all[i-1].hosts {
			if best = append(best, t); len(best) > 1 {
				added = gain(best[len(best)-2], t)
			}
		}
		latency := t.result.MainStep().LatencyMS
		table.Rows = append(table.Rows, document.Row{Name: format.Count(t.hosts), Cells: []string{
			format.Number(t.rate), format.Optional(latency.P50, format.Number), format.Optional(latency.P99, format.Number), added,
		}})
	}
	return &document.Part{Title: "Throughput over app hosts", Table: table, Text: scalingText(best)}
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

// scalingText says what the last added hosts gained, against the first ones.
func scalingText(best []throughput) (lines []string) {
	from, to := best[len(best)-2], best[len(best)-1]
	share := gainPerHost(from, to) / (best[0].rate / float64(best[0].hosts))
	text := fmt.Sprintf("From %d to %d app hosts each added %s sagas/s, %s of the rate per host with %d.",
		from.hosts, to.hosts, gain(from, to), format.Percent(share), best[0].hosts)
	if share <= 0 {
		text = fmt.Sprintf("From %d to %d app hosts: no more sagas/s.", from.hosts, to.hosts)
	}
	if c := to.result.Capacity; c != nil && c.Capacity.Limit.Resource != "" {
		text += fmt.Sprintf(" With %d the limit is %s.", to.hosts, c.Capacity.Limit.Resource)
	}
	lines = append(lines, text+" Expect no more from the next one.")
	if to.result.Envelope().Run.SharedHost {
		lines = append(lines, "The app hosts shared a machine, so another one added no cores.")
	}
	return lines
}

// gainPerHost returns the sagas/s that each added host gained.
func gainPerHost(from, to throughput) float64 {
	return (to.rate - from.rate) / float64(to.hosts-from.hosts)
}

// gain writes the same, with its range if those of the rates are known.
func gain(from, to throughput) string {
	more, hosts := gainPerHost(from, to), float64(to.hosts-from.hosts)
	text := format.Number(more)
	if from.low == nil || from.high == nil || to.low == nil || to.high == nil {
		return text
	}
	below := math.Hypot(to.rate-*to.low, *from.high-from.rate) / hosts
	above := math.Hypot(*to.high-to.rate, from.rate-*from.low) / hosts
	return fmt.Sprintf("%s (%s to %s)", text, format.Number(more-below), format.Number(more+above))
}
