package plan

import (
	"cmp"
	"fmt"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// evidence is what all results together have measured.
type evidence struct {
	ids      []string
	store    result.Store
	scenario result.Scenario
	hosts    int   // of the app, which carried the rates together
	cores    int   // of the measured machine
	memory   int64 // of the same, in bytes; 0: not known
	shared   bool  // load, app and store took CPU from each other
	searched []result.SLO
	rates    []rate // rising
}

// rate is the measurements at one offered rate.
type rate struct {
	rate float64 // achieved, the mean
	runs []result.Step
}

// sameRate is how far offered rates may be apart and count as repeats of one.
const sameRate = 1.01

// gather takes the open-loop measurements that are valid and that the system could
// follow, of results that differ by their number of app hosts at most.
func gather(results []result.Result) (evidence, error) {
	var e evidence
	var runs []result.Step
	for i, r := range results {
		s := r.Envelope()
		run, environment := s.Run, s.Environment
		if len(e.ids) == 0 {
			e.store, e.scenario, e.shared = run.Store, run.Scenario, run.SharedHost
			e.hosts, e.cores, e.memory = appHosts(run), environment.Cores, environment.Memory
		}
		if twice := slices.ContainsFunc(results[:i], func(o result.Result) bool {
			other := o.Envelope().Run
			return other.ID == run.ID && other.Started.Equal(run.Started)
		}); twice {
			return evidence{}, fmt.Errorf("%w: result %s is there twice", ErrNoPlan, run.ID)
		}
		if run.Store.Driver != e.store.Driver || run.Store.Durability != e.store.Durability ||
			run.Scenario != e.scenario || environment.Cores != e.cores || run.SharedHost != e.shared {
			return evidence{}, fmt.Errorf("%w: results %s and %s have different stores, durability, sagas or machines", ErrNoPlan, e.ids[0], run.ID)
		}
		if r.Capacity != nil {
			e.searched = append(e.searched, r.Capacity.Capacity.SLO)
		}
		e.ids = append(e.ids, run.ID)
		runs = append(runs, r.Steps()...)
	}
	runs = slices.DeleteFunc(runs, func(m result.Step) bool {
		return !m.Validity.Valid || m.Load.OfferedPerS == nil || m.Load.AchievedPerS <= 0 || m.Load.Overloaded()
	})
	if len(runs) == 0 {
		return evidence{}, fmt.Errorf("%w: nothing was measured in an open loop that the store could follow; bench capacity does", ErrNoPlan)
	}
	slices.SortStableFunc(runs, func(a, b result.Step) int {
		return cmp.Compare(*a.Load.OfferedPerS, *b.Load.OfferedPerS)
	})
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(m result.Step) bool {
			return *m.Load.OfferedPerS > sameRate**runs[0].Load.OfferedPerS
		})
		if n < 0 {
			n = len(runs)
		}
		e.rates = append(e.rates, rate{mean(runs[:n], func(m result.Step) *float64 { return &m.Load.AchievedPerS }), runs[:n]})
		runs = runs[n:]
	}
	return e, nil
}

// appHosts are those of a run; where they are not known it is one of bench run.
func appHosts(r result.Run) int { return max(1, r.AppHosts) }

// mean of what was measured; NaN if nothing was.
func mean(runs []result.Step, of func(result.Step) *float64) float64 {
	return stats.Mean(known(runs, of))
}

func known(runs []result.Step, of func(result.Step) *float64) []float64 {
	var xs []float64
	for _, m := range runs {
		if x := of(m); x != nil {
			xs = append(xs, *x)
		}
	}
	return xs
}

// serviceRate is the highest rate that kept a service level, and what is known from it.
type serviceRate struct {
	met      rate
	violated *rate    // the next one, which did not
	usable   *float64 // how busy the busiest processor was, a share
	why      string   // what usable is of
}

// highestRate finds the highest rate that kept the service level, as all lower ones did, in
// most of its repeats.
func (e evidence) highestRate(slo result.SLO) (serviceRate, error) {
	for _, goal := range slo.Latencies {
		if !result.HasPercentile(goal.Percentile) {
			return serviceRate{}, fmt.Errorf("%w: p%v is not measured; p50, p90, p95, p99, p99.9 and p99.99 are", ErrNoPlan, goal.Percentile)
		}
	}
	var found serviceRate
	for i, r := range e.rates {
		if !r.meets(slo) {
			found.violated = &e.rates[i]
			break
		}
		found.met = r
	}
	if len(found.met.runs) == 0 {
		return serviceRate{}, fmt.Errorf("%w: no measured rate kept the service level, not even the lowest, %s/s",
			ErrNoPlan, format.Number(e.rates[0].rate))
	}
	found.usable, found.why = e.usable(found.met)
	return found, nil
}

func (r rate) meets(slo result.SLO) bool {
	kept := 0
	for _, m := range r.runs {
		if met, _ := slo.Judge(m.Measurement); met != nil && *met {
			kept++
		}
	}
	return 2*kept > len(r.runs)
}

// usable is how busy the busiest processor was at a rate: the machine that all shared,
// or the core that runs a store's commands. What others did on the machine is left out,
// as it is of the costs.
func (e evidence) usable(r rate) (share *float64, why string) {
	take := func(x float64, what string) {
		if x > 0 && (share == nil || x > *share) {
			share, why = &x, what
		}
	}
	if e.shared {
		take(min(1, mean(r.runs, e.busy)), "the machine")
	}
	if e.oneCore() {
		take(min(1, mean(r.runs, func(m result.Step) *float64 { return m.Resources.StoreCores })), "the store's core")
	}
	return share, why
}

// busy is the share of the shared machine that load, app and store kept busy; all of
// its use, where theirs was not measured.
func (e evidence) busy(m result.Step) *float64 {
	own, known := e.own(m)
	if host := m.Resources.HostBusy; !known || host == nil || *host < own {
		return host
	}
	return &own
}

// own is what load, app and store used of the shared machine, as a share.
func (e evidence) own(m result.Step) (share float64, known bool) {
	r := m.Resources
	if r.LoadCores == nil || r.AppCores == nil || r.StoreCores == nil && !e.store.Embedded() || e.cores < 1 {
		return 0, false
	}
	cores := *r.LoadCores + *r.AppCores
	if r.StoreCores != nil {
		cores += *r.StoreCores
	}
	return cores / float64(e.cores), true
}

// others is how much of the shared machine somebody else kept busy at a rate, as a
// share; 0 where that was not measured.
func (e evidence) others(r rate) float64 {
	return max(0, mean(r.runs, func(m result.Step) *float64 {
		x := 0.0
		if own, known := e.own(m); known && m.Resources.HostBusy != nil {
			x = *m.Resources.HostBusy - own
		}
		return &x
	}))
}

// oneCore reports whether the store runs its commands on one core.
func (e evidence) oneCore() bool {
	return e.rates[0].runs[0].Resources.StoreOneCore
}

func (e evidence) lowest() float64  { return e.rates[0].rate }
func (e evidence) highest() float64 { return e.rates[len(e.rates)-1].rate }

// beyond reports whether a rate lies outside of the measured ones, by more than
// repeats of a rate differ.
func (e evidence) beyond(perS float64) bool {
	return perS > sameRate*e.highest() || perS*sameRate < e.lowest()
}
