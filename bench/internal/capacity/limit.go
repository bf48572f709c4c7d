package capacity

import (
	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
)

// blame adds to each rate that was not held what limits it.
func blame(c result.Capacity, machine limit.Machine) {
	for _, s := range c.Searches {
		if s.Next == nil {
			continue
		}
		if found := limitOf(c.Holds(s.Next.RatePerS), machine); found.Resource != "" {
			s.Next.Why += "; limited by " + found.Resource
		}
	}
}

// limitOf names what limits a rate, from its holds.
func limitOf(holds []result.Step, machine limit.Machine) result.Limit {
	if len(holds) == 0 {
		return result.Limit{Evidence: "the search found no rate to judge it at"}
	}
	var used []result.Resources
	failed := int64(0)
	for _, m := range holds {
		used = append(used, m.Resources)
		failed += m.Load.Errors
	}
	mean := result.Average(result.ResourceFields, used)
	mean.StoreOneCore = used[0].StoreOneCore
	return limit.Find(mean, failed, machine)
}
