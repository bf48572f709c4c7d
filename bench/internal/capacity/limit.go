package capacity

import (
	"cmp"
	"math"
	"slices"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
)

// nearShare is how far from a rate, relative to it, a step is next to it.
const nearShare = 0.05

// FindLimit names what limits the rate, from the steps next to it.
func FindLimit(steps []result.Step, rate *float64, machine limit.Machine) result.Limit {
	at := nextTo(steps, rate)
	if len(at) == 0 {
		return result.Limit{Evidence: "nothing was measured near the highest rate"}
	}
	var used []result.Resources
	failed := int64(0)
	for _, m := range at {
		used = append(used, m.Resources)
		failed += m.Load.Errors
	}
	mean := result.Average(result.ResourceFields, used)
	mean.StoreOneCore = at[0].Resources.StoreOneCore
	return limit.Find(mean, failed, machine)
}

// nextTo returns the steps within nearShare of the rate, or the nearest one if there is
// none. Without a rate it returns the lowest.
func nextTo(steps []result.Step, rate *float64) (at []result.Step) {
	if len(steps) == 0 {
		return nil
	}
	goal := 0.0
	if rate != nil {
		goal = *rate
	}
	off := func(m result.Step) float64 { return math.Abs(*m.Load.OfferedPerS - goal) }
	nearest := slices.MinFunc(steps, func(a, b result.Step) int { return cmp.Compare(off(a), off(b)) })
	for _, m := range steps {
		if off(m) <= max(nearShare*goal, off(nearest)) {
			at = append(at, m)
		}
	}
	return at
}
