package plan

import (
	"fmt"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// warnings are what to know before the plan is relied on.
func (s sizing) warnings() []string {
	list := []string{}
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if s.peak > sameRate*s.e.highest() {
		warn("extrapolated: the peak is %s/s, the highest rate that was measured and followed %s/s",
			format.Number(s.peak), format.Number(s.e.highest()))
	}
	if d, ok := store.ParseDurability(s.e.store.Durability); ok && d < store.D3 {
		warn("durability: the store was measured at %s: %s", d, store.Settings{Durability: d, Values: s.e.store.Settings}.Meaning())
	}
	if s.e.store.Durability == "" {
		warn("durability: that of the measured store is not known")
	}
	for _, searched := range s.e.searched {
		if laxer(searched, s.d.SLO) {
			warn("laxer search: the highest rate was searched for another promise than this one, so the measured rates next to its limit may be far apart")
			break
		}
	}
	if s.highest.violated == nil {
		warn("no limit seen: no measured rate broke the promise, so machines may carry more")
	}
	if !slices.ContainsFunc(s.e.rates, func(r rate) bool { return len(r.runs) > 1 }) {
		warn("no interval: no rate was measured twice")
	}
	if others := s.e.others(s.highest.met); s.e.shared && others > othersShare {
		warn("other work: %s%% of the machine was busy with neither load, app nor store at %s/s; without that they may carry more",
			format.Number(100*others), format.Number(s.highest.met.rate))
	}
	if s.e.shared {
		warn("shared host: load, app and store took CPU from each other when they were measured; with machines of their own they may need fewer")
	}
	return list
}

// judge is whether a plan may be relied on, with its own warnings and those of the results.
func judge(results []result.Result, own []string) result.Validity {
	v := result.Validity{Valid: true, Warnings: []string{}}
	var said []string
	for _, r := range results {
		s := r.Envelope()
		if !s.Validity.Valid {
			v.Valid = false
			v.Warnings = append(v.Warnings, fmt.Sprintf("result %s is not valid", s.Run.ID))
		}
		for _, warning := range s.Validity.Warnings {
			said = append(said, s.Run.ID+": "+warning)
		}
	}
	v.Warnings = slices.Concat(v.Warnings, own, said)
	return v
}

// othersShare of a machine is more than the kernel takes for itself.
const othersShare = 0.2

// laxer reports whether a service level may be kept where the demanded one is not.
func laxer(searched, demanded result.SLO) bool {
	if searched.Errors > demanded.Errors {
		return true
	}
	for _, goal := range demanded.Latencies {
		if !slices.ContainsFunc(searched.Latencies, func(g result.LatencyGoal) bool {
			return g.Percentile >= goal.Percentile && g.MS <= goal.MS
		}) {
			return true
		}
	}
	return false
}
