package sample

import (
	"fmt"
	"slices"
	"time"

	"sagabench/bench/internal/cgroup"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
)

// Usage is what was used between Begin and End. What is nil was not measured.
type Usage struct {
	Elapsed   time.Duration
	Total     result.Cost // in the units of a saga's cost
	Resources result.Resources
	HostCores int // of this machine; 0: unknown
	CPUs      validity.CPUs
	GCPause   time.Duration   // of this process
	Timeline  []result.Sample // without what was done meanwhile
	Failures  []string        // what could not be measured, and why

	LostWrites int64 // that the app's coordinators noticed
}

// Fail records that something could not be measured.
func (u *Usage) Fail(what string, err error) {
	u.Failures = append(u.Failures, fmt.Sprintf("%s: %v", what, err))
}

const microseconds = 1e6 // in a second

// Usage returns the differences between Begin and End.
func (s *Sampler) Usage() Usage {
	b, a := s.before, s.after
	u := Usage{Elapsed: a.at.Sub(b.at), GCPause: a.own.gcPause - b.own.gcPause, CPUs: a.cpus, Timeline: s.samples}
	for _, err := range slices.Concat(b.failures, a.failures) {
		u.Failures = append(u.Failures, err.Error())
	}
	if a.host != nil {
		u.HostCores = len(a.host.total)
	}
	t, r := &u.Total, &u.Resources

	perS := func(total *float64) *float64 { return perSecond(total, u.Elapsed) }

	a.metrics.addTo(&u, b.metrics, len(s.cfg.AppMetrics), a.metricsAt.Sub(b.metricsAt))
	if len(s.app) > 0 {
		app := difference(b.app, a.app)
		t.AppCPUUS, r.AppCores = times(app, microseconds), perS(app)
	}
	if s.store != nil {
		s.store.AddTo(&u) // it knows its fsyncs better than its client
		r.StoreFsyncsPerS = perS(t.StoreFsyncs)
	}

	load := (a.own.cpu - b.own.cpu).Seconds()
	t.LoadCPUUS = times(&load, microseconds)
	r.LoadCores = perS(&load)
	usable := cgroup.OwnCores()
	r.LoadCoresUsable = &usable
	r.StoreCoresUsable = a.store.cores
	r.LoadThrottled = a.load.throttledShare(b.load, u.Elapsed)
	r.StoreThrottled = a.store.throttledShare(b.store, u.Elapsed)
	r.StoreCores = perS(times(t.StoreCPUUS, 1/microseconds))
	r.StoreDeviceBytesPerS = perS(difference(b.device, a.device))
	r.HostBusy, r.BusiestCore, r.HostSteal = a.host.since(b.host)
	r.HostCPUPressure = perS(difference(b.pressure, a.pressure))
	r.NetworkBytesPerS, r.NetworkShare = networkUse(b.links, a.links, u.Elapsed)
	return u
}

// PerSaga divides the totals by the number of sagas that were acknowledged in the
// interval. Without sagas, no cost is known. A total below 0 shows other work: a server that
// gave memory back, for example.
func (u Usage) PerSaga(sagas int64) (cost result.Cost) {
	if sagas <= 0 {
		return cost
	}
	for _, f := range result.CostFields {
		switch total := f.Of(u.Total); {
		case total == nil:
		case *total < 0:
			cost.NotMeasurable = append(cost.NotMeasurable, f.Key)
		default:
			x := result.Round(*total / float64(sagas))
			f.Set(&cost, &x)
		}
	}
	return cost
}

// Evidence returns what validity needs to know of the machine.
func (u Usage) Evidence() validity.Evidence {
	return validity.Evidence{
		Resources: u.Resources,
		HostCores: u.HostCores,
		CPUs:      u.CPUs,
		GCPause:   u.GCPause,
		Failures:  u.Failures,
	}
}

// difference is nil if either is, and if the counter went backwards: it is another one
// then.
func difference(before, after *float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	d := *after - *before
	return &d
}

func times(x *float64, factor float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x * factor
	return &y
}

func perSecond(total *float64, elapsed time.Duration) *float64 {
	if elapsed <= 0 {
		return nil
	}
	return times(total, 1/elapsed.Seconds())
}
