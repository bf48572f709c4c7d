package merge

import (
	"slices"

	"sagabench/bench/internal/result"
)

// maxUncoveredShare is the largest share of a host's measured part that may lie outside of
// another's. Outside of it the other may have been warming up, and the sagas of a warm-up
// are in no interval.
const maxUncoveredShare = 0.05

// cost is the cost per saga over all hosts.
//
// Each host divided what was used during its measured part by its own sagas. The CPU of the
// load generators is added up and divided by all sagas. The store served the sagas of all
// hosts at the same time. So its cost times the host's sagas is what it used in that time,
// and is divided by the sagas of all hosts in that time. The time is the longest measured
// part that those of all others cover. The cost is unknown if there is none.
//
// If all hosts had the same targets, the app servers are merged like the store. If no two
// hosts had a target in common, they are merged like the load generators. Otherwise their
// cost is unknown.
func (m merge) cost() (c result.Cost) {
	app := m.appCost()
	for _, f := range result.CostFields {
		how := f.Merge
		if (f.Key == "store_fsyncs" || f.Key == "store_bytes_written") && m.hosts[0].Run.Run.Store.Embedded() {
			how = result.MergeApp
		}
		switch how {
		case result.MergeLoad:
			f.Set(&c, m.own(f.Of))
		case result.MergeApp:
			f.Set(&c, app(f.Of))
		case result.MergeStore:
			f.Set(&c, m.shared(f.Of))
		}
		if f.Of(c) == nil && slices.ContainsFunc(m.hosts, func(h host) bool { return slices.Contains(h.Run.CostPerSaga.NotMeasurable, f.Key) }) {
			c.NotMeasurable = append(c.NotMeasurable, f.Key)
		}
	}
	return c
}

// appCost returns how a cost of the app servers is merged.
func (m merge) appCost() func(func(result.Cost) *float64) *float64 {
	targets := make([][]string, len(m.hosts))
	same, apart := true, true
	for i, h := range m.hosts {
		targets[i] = slices.Sorted(slices.Values(h.Run.Run.Targets))
		same = same && len(targets[i]) > 0 && slices.Equal(targets[i], targets[0])
		for _, other := range targets[:i] {
			apart = apart && !slices.ContainsFunc(other, func(t string) bool { return slices.Contains(targets[i], t) })
		}
		apart = apart && len(targets[i]) > 0
	}
	switch {
	case same:
		return m.shared
	case apart:
		return m.own
	default:
		return func(func(result.Cost) *float64) *float64 { return nil }
	}
}

// own merges a cost of what each host has for itself. It returns nil if one lacks it.
func (m merge) own(of func(result.Cost) *float64) *float64 {
	sagas := 0.0
	used := m.sum(func(s result.Summary) *float64 {
		x := of(s.CostPerSaga)
		if x == nil {
			return nil
		}
		sagas += acknowledgedOf(s)
		all := *x * acknowledgedOf(s)
		return &all
	})
	if used == nil || sagas == 0 {
		return nil
	}
	*used = result.Round(*used / sagas)
	return used
}

// shared merges a cost of what all hosts use.
func (m merge) shared(of func(result.Cost) *float64) *float64 {
	h := m.widest(func(s result.Summary) bool { return of(s.CostPerSaga) != nil })
	if h == nil {
		return nil
	}
	sagas := 0.0
	for _, other := range m.hosts {
		sagas += other.acknowledged(h.measured)
	}
	if sagas == 0 {
		return nil
	}
	cost := result.Round(*of(h.Run.CostPerSaga) * acknowledgedOf(*h.Run) / sagas)
	return &cost
}

// widest returns the host with the longest measured part that those of all others cover,
// among the hosts that has reports true for. It returns nil if there is none.
func (m merge) widest(has func(result.Summary) bool) (found *host) {
	for i, h := range m.hosts {
		if m.commonShare(h) < 1-maxUncoveredShare || !has(*h.Run) {
			continue
		}
		if found == nil || h.measured.length() > found.measured.length() {
			found = &m.hosts[i]
		}
	}
	return found
}

// resources merges the resources: of the store those of the widest host, of the hosts
// their sum or their maximum.
func (m merge) resources() (r result.Resources) {
	widest := m.widest(func(s result.Summary) bool {
		return s.Resources.StoreCores != nil || s.Resources.StoreFsyncsPerS != nil
	})
	r.StoreOneCore = m.hosts[0].Run.Resources.StoreOneCore
	for _, f := range result.ResourceFields {
		switch f.Merge {
		case result.MergeStore:
			if widest != nil {
				f.Set(&r, f.Of(widest.Run.Resources))
			}
		case result.MergeSum:
			hosts := m.hosts
			switch f.Key {
			case "load_cores_usable":
				hosts = m.once(cpusOf)
			case "network_bytes_per_s":
				hosts = m.once(networkOf)
			}
			f.Set(&r, sum(hosts, func(s result.Summary) *float64 { return f.Of(s.Resources) }))
		case result.MergeMax:
			var highest *float64
			for _, h := range m.hosts {
				highest = higher(highest, f.Of(h.Run.Resources))
			}
			f.Set(&r, highest)
		}
	}
	return r
}
