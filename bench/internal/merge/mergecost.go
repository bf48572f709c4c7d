package merge

import (
	"slices"

	"sagabench/bench/internal/result"
)

// embedded is the driver of a store that is a part of the app server.
const embedded = "pebble"

// countTogether is how much of a host's measured part may lie outside of that of
// another for the sagas that ran in it to be known: the other may have been warming
// up, and those sagas are in no interval.
const countTogether = 0.05

// cost is what a saga of all hosts cost.
//
// Each host divided what was used during its own measured part by its own sagas. What
// its generator used is its own affair, and is added up over all sagas. The store
// served the sagas of all hosts meanwhile: its cost times the host's sagas is what it
// used in that time, and that is divided by the sagas of all hosts in that time. Of
// the hosts' times the longest that all others cover is taken. It is not known when
// there is none.
//
// The app servers are shared like the store when all hosts were told of the same
// targets, and a host's own affair like its generator when no two were told of the
// same. Otherwise it cannot be told who was served.
func (m merge) cost() (c result.Cost) {
	app := m.appCost()
	for _, f := range result.CostFields {
		how := f.Merge
		if f.Key == "store_fsyncs" && m.hosts[0].Run.Run.Store.Driver == embedded {
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
	}
	return c
}

// appCost is how a cost of the app servers is merged.
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

// own is a cost of what each host has for itself; nil: one of them does not know.
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
	*used = round(*used / sagas)
	return used
}

// shared is a cost of what all hosts use.
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
	cost := round(*of(h.Run.CostPerSaga) * acknowledgedOf(*h.Run) / sagas)
	return &cost
}

// widest is the host with the longest measured part that all others cover, of those
// that know; nil: there is none.
func (m merge) widest(knows func(result.Summary) bool) (found *host) {
	for i, h := range m.hosts {
		if m.together(h) < 1-countTogether || !knows(*h.Run) {
			continue
		}
		if found == nil || h.measured.length() > found.measured.length() {
			found = &m.hosts[i]
		}
	}
	return found
}

// resources are those of the store as the host with the widest view of it saw them,
// and of the hosts together, or of the busiest of them.
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
			f.Set(&r, m.sum(func(s result.Summary) *float64 { return f.Of(s.Resources) }))
		case result.MergeMax:
			var highest *float64
			for _, h := range m.hosts {
				highest = most(highest, f.Of(h.Run.Resources))
			}
			f.Set(&r, highest)
		}
	}
	return r
}
