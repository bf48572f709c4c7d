package plan

import (
	"cmp"
	"fmt"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// evidence is what all results together have measured.
type evidence struct {
	ids       []string
	store     result.Store
	disk      *result.StoreDisk // nil: unknown
	scenario  result.Scenario
	hosts     int     // of the app, which carried the rates together
	cores     int     // of the load generator's machine
	memory    int64   // of the same, in bytes; 0: not known
	shared    bool    // load, app and store took CPU from each other
	retention []int64 // of the measured apps, in seconds; those that are known
	sources   []source
}

// source is a search, or all runs together: they are the steps of one.
type source struct {
	search *result.Capacity // nil: runs
	tried  []result.Step    // open loop and valid
}

// sameRate is how far offered rates may be apart and count as one.
const sameRate = 1.01

// gather takes the valid open-loop measurements of results that differ by their number of
// app hosts at most.
func gather(results []result.Result) (evidence, error) {
	var e evidence
	var runs source
	for i, r := range results {
		s := r.Envelope()
		run, environment := s.Run, s.Environment
		if len(e.ids) == 0 {
			e.store, e.disk, e.scenario, e.shared = run.Store, environment.StoreDisk, run.Scenario, run.SharedHost
			e.hosts, e.cores, e.memory = appHosts(run), environment.Cores, environment.Memory
		}
		if twice := slices.ContainsFunc(results[:i], func(o result.Result) bool {
			other := o.Envelope().Run
			return other.ID == run.ID && other.Started.Equal(run.Started)
		}); twice {
			return evidence{}, fmt.Errorf("%w: result %s is there twice", ErrNoPlan, run.ID)
		}
		if what := e.differs(run, environment); what != "" {
			return evidence{}, fmt.Errorf("%w: results %s and %s have different %s", ErrNoPlan, e.ids[0], run.ID, what)
		}
		if kept := run.Store.RetentionS; kept != nil {
			e.retention = append(e.retention, int64(*kept))
		}
		e.ids = append(e.ids, run.ID)
		tried := slices.Clone(r.Steps())
		if r.Capacity != nil && r.Capacity.Capacity.Validation != nil {
			tried = append(tried, *r.Capacity.Capacity.Validation)
		}
		tried = slices.DeleteFunc(tried, func(m result.Step) bool {
			return !m.Validity.Valid || m.Load.OfferedPerS == nil || m.Load.AchievedPerS <= 0 || m.Load.Changes()
		})
		if r.Capacity == nil {
			runs.tried = append(runs.tried, tried...)
		} else if len(tried) > 0 {
			e.sources = append(e.sources, source{&r.Capacity.Capacity, tried})
		}
	}
	if len(runs.tried) > 0 {
		e.sources = append(e.sources, runs)
	}
	if !slices.ContainsFunc(e.sources, func(s source) bool { return slices.ContainsFunc(s.tried, followed) }) {
		why := "nothing was measured in an open loop that the store could follow; bench capacity does"
		for _, r := range results {
			if r.Capacity != nil {
				why = cmp.Or(cannotTell(&r.Capacity.Capacity), why)
			}
		}
		return evidence{}, fmt.Errorf("%w: %s", ErrNoPlan, why)
	}
	return e, nil
}

// followed reports whether the costs of a measurement count: an overloaded system does
// other work than one that follows.
func followed(m result.Step) bool { return !m.Load.Overloaded() }

// appHosts are those of a run; where they are not known it is one of bench run.
func appHosts(r result.Run) int { return max(1, r.AppHosts) }

// mean of what was measured, nil if nothing was.
func mean(steps []result.Step, of measure) *float64 {
	var xs []float64
	for _, m := range steps {
		if x := of(m); x != nil {
			xs = append(xs, *x)
		}
	}
	if len(xs) == 0 {
		return nil
	}
	x := stats.Mean(xs)
	return &x
}

// busy is the share of the shared machine that load, app and store kept busy; all of its
// use, where theirs was not measured. It is nil on machines of their own.
func (e evidence) busy(m result.Step) *float64 {
	r := m.Resources
	if !e.shared {
		return nil
	}
	if r.LoadCores == nil || r.AppCores == nil || r.StoreCores == nil && !e.store.Embedded() || r.HostBusy == nil {
		return r.HostBusy
	}
	own := *r.LoadCores + *r.AppCores
	if r.StoreCores != nil {
		own += *r.StoreCores
	}
	own = min(own/float64(max(1, e.cores)), *r.HostBusy)
	return &own
}

// oneCore reports whether the store runs its commands on one core.
func (e evidence) oneCore() bool { return e.sources[0].tried[0].Resources.StoreOneCore }

// names lists the results, in words.
func (e evidence) names() string {
	names := e.ids[0]
	if len(e.ids) > 1 {
		names += fmt.Sprintf(" and %d more", len(e.ids)-1)
	}
	if e.hosts > 1 {
		names += fmt.Sprintf(", %d app hosts", e.hosts)
	}
	return names
}

// intended is the rate that was to be offered: random arrivals offer a little more or less.
func intended(m result.Step) float64 { return cmp.Or(m.RatePerS, *m.Load.OfferedPerS) }

// byRate groups measurements of one intended rate, the lowest rate first.
func byRate(steps []result.Step) (groups [][]result.Step) {
	steps = slices.SortedStableFunc(slices.Values(steps), func(a, b result.Step) int {
		return cmp.Compare(intended(a), intended(b))
	})
	for i, m := range steps {
		if i == 0 || intended(m) > sameRate*intended(groups[len(groups)-1][0]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], m)
	}
	return groups
}

// differs names what a further run has otherwise than the first one; "" if nothing.
func (e evidence) differs(run result.Run, environment result.Environment) string {
	switch {
	case run.Store.Driver != e.store.Driver:
		return "stores"
	case run.Store.Masters() != e.store.Masters():
		return "numbers of masters"
	case run.Store.Replicated() != e.store.Replicated():
		return "numbers of servers: one has a replica"
	case run.Store.Settings[result.KeyReplicas] != e.store.Settings[result.KeyReplicas]:
		return "numbers of replicas"
	case run.Store.Durability != e.store.Durability:
		return "durability classes"
	case run.Scenario != e.scenario:
		return "sagas"
	case run.SharedHost != e.shared, e.shared && environment.Cores != e.cores:
		return "machines"
	}
	return ""
}
