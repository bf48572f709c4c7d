package probe

import (
	"math"
	"runtime"
	"slices"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/validity"
)

// Usage is what was used between Begin and End. What is nil was not measured.
type Usage struct {
	Elapsed time.Duration

	// CPU seconds.
	LoadCPU, AppCPU, StoreCPU *float64

	StoreBytesIn, StoreBytesOut *int64 // as the store sees them
	StoreMemory                 *int64 // bytes of data that were added
	StoreCalls                  *int64 // commands that clients sent; a lower bound with scripts, see Server.Scripts
	StoreRoundTrips             *float64
	StoreFsyncs                 *float64

	// Seconds that calls of the app took, and that transactions waited for a row's
	// lock, all added up; the latter of a PostgreSQL is an estimate.
	StoreCallTime, StoreLockTime *float64

	// Seconds that calls of the app waited for one of its connections to the store's
	// server, all added up and a part of StoreCallTime.
	StoreConnTime *float64

	// Seconds in which clients of an app server were turned away, because as many
	// connections as may be were in use.
	AppKeptOut *float64

	// Between this machine and others, both ways; and of its link that was nearest to
	// its speed.
	NetworkBytesPerS, NetworkShare *float64

	// Shares of this machine's CPU time.
	HostBusy, BusiestCore, HostSteal *float64

	GCPause  time.Duration   // of this process
	Timeline []result.Sample // by the time since Begin; what was done meanwhile is left to fill in
	Failures []string        // what could not be measured, and why

	appCores     *float64 // that the app servers may use
	storeConns   *float64 // that the app servers may have
	serverConns  *float64 // open at the end, of all that the store's server allows
	storeOneCore bool     // a Redis runs its commands on one core
	cpus         validity.CPUs
}

// Usage gives the differences between Begin and End.
func (s *Sampler) Usage() Usage {
	b, a := s.before, s.after
	u := Usage{
		Elapsed:  a.at.Sub(b.at),
		GCPause:  a.own.gcPause - b.own.gcPause,
		AppCPU:   difference(b.app, a.app),
		Timeline: s.moments,
		cpus:     a.cpus,
	}
	load := (a.own.cpu - b.own.cpu).Seconds()
	u.LoadCPU = &load
	u.HostBusy, u.BusiestCore, u.HostSteal = a.host.since(b.host)
	u.NetworkBytesPerS, u.NetworkShare = networkUse(b.links, a.links, u.Elapsed)
	failures := slices.Concat(b.failures, a.failures)
	if b.metrics != nil && a.metrics != nil {
		u.StoreRoundTrips = difference(b.metrics.roundTrips, a.metrics.roundTrips)
		u.StoreFsyncs = difference(b.metrics.fsyncs, a.metrics.fsyncs)
		u.appCores = a.metrics.cores
		u.StoreCallTime = difference(b.metrics.callSeconds, a.metrics.callSeconds)
		u.storeConns = a.metrics.conns
		u.AppKeptOut = difference(b.metrics.keptOut, a.metrics.keptOut)
		u.StoreConnTime = difference(b.metrics.connSeconds, a.metrics.connSeconds)
		if len(s.app) == 0 {
			u.AppCPU = difference(b.metrics.cpu, a.metrics.cpu)
		}
	}
	if s.store != nil {
		used := s.store.used()
		u.addStore(used)
		u.serverConns = a.storeConns
		failures = append(failures, used.failures...)
	}
	for _, err := range failures {
		u.Failures = append(u.Failures, err.Error())
	}
	return u
}

// addStore adds what the store's server says. How often it synced it knows better
// than its client.
func (u *Usage) addStore(used storeUse) {
	u.StoreCPU, u.storeOneCore = used.cpu, used.oneCore
	u.StoreBytesIn, u.StoreBytesOut = used.bytesIn, used.bytesOut
	u.StoreMemory, u.StoreCalls = used.memory, used.calls
	u.StoreLockTime = used.lockTime
	if used.fsyncs != nil {
		u.StoreFsyncs = used.fsyncs
	}
}

// difference is nil when either is, or when the counter went backwards: then it
// is not the one it was.
func difference(before, after *float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	d := *after - *before
	return &d
}

// PerSaga divides by the number of sagas acknowledged in the interval. Of no
// sagas nothing is known.
func (u Usage) PerSaga(sagas int64) result.Cost {
	if sagas <= 0 {
		return result.Cost{}
	}
	per := func(x *float64, unit float64) *float64 {
		if x == nil {
			return nil
		}
		// To a thousandth: what lies below is noise.
		y := math.Round(*x*unit/float64(sagas)*1000) / 1000
		return &y
	}
	whole := func(n *int64) *float64 {
		if n == nil {
			return nil
		}
		x := float64(*n)
		return per(&x, 1)
	}
	const microseconds = 1e6
	return result.Cost{
		StoreCPUUS:       per(u.StoreCPU, microseconds),
		AppCPUUS:         per(u.AppCPU, microseconds),
		LoadCPUUS:        per(u.LoadCPU, microseconds),
		StoreBytesIn:     whole(u.StoreBytesIn),
		StoreBytesOut:    whole(u.StoreBytesOut),
		StoreMemoryBytes: whole(u.StoreMemory),
		StoreCalls:       whole(u.StoreCalls),
		StoreRoundTrips:  per(u.StoreRoundTrips, 1),
		StoreFsyncs:      per(u.StoreFsyncs, 1),
	}
}

// Evidence is what report.Judge wants to know of the machine; the rest is left
// to fill in.
func (u Usage) Evidence() validity.Evidence {
	perSecond := func(total *float64) *float64 {
		zero := 0.0
		return cores(&zero, total, u.Elapsed.Seconds())
	}
	return validity.Evidence{
		Resources: result.Resources{
			LoadCores:       perSecond(u.LoadCPU),
			AppCores:        perSecond(u.AppCPU),
			AppCoresUsable:  u.appCores,
			StoreCores:      perSecond(u.StoreCPU),
			StoreOneCore:    u.storeOneCore,
			HostBusy:        u.HostBusy,
			BusiestCore:     u.BusiestCore,
			HostSteal:       u.HostSteal,
			StoreFsyncsPerS: perSecond(u.StoreFsyncs),

			StoreCallsInFlight: perSecond(u.StoreCallTime),
			StoreLockWaits:     perSecond(u.StoreLockTime),
			AppAcceptWait:      perSecond(u.AppKeptOut),
			StoreConns:         u.storeConns,
			StoreConnWaits:     perSecond(u.StoreConnTime),
			StoreServerConns:   u.serverConns,
			NetworkBytesPerS:   u.NetworkBytesPerS,
			NetworkShare:       u.NetworkShare,
		},
		LoadCoresUsable: runtime.GOMAXPROCS(0),
		CPUs:            u.cpus,
		GCPause:         u.GCPause,
		Failures:        u.Failures,
	}
}
