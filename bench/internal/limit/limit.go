// Package limit names the resource that keeps a rate from being higher, for a run and for
// a search.
package limit

import (
	"fmt"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Machine is what shares are relative to.
type Machine struct {
	Cores   int  // of the load generator's machine
	Shared  bool // app or store run on it, too
	Batches int  // that the app may have in flight to the store; 0: unknown
}

// Full is the share from which on a resource is the limit.
const Full = 0.85

const (
	// Calls to the store are checked last: with one batch in flight at a time they are
	// nearly always full, and batches grow before that is a limit.
	fullCallsShare = 0.90
	// likelyShare is an average from which on the most used resource is named: the more
	// it is used, the more often a request waits for it.
	likelyShare = 0.70

	waitingShare    = 0.05 // of the time of a call to the store spent waiting for a connection, from which on connections are too few
	fullServerShare = 0.98 // of the connections that the store's server allows: one may be reserved
	oneCoreShare    = 0.10 // how much busier than the average the busiest core is, if something runs on one core only
)

// candidate is a resource that may be the limit. Its evidence has one %s, for the share.
type candidate struct {
	resource string
	share    *float64
	evidence string
}

// Find names the limit, given the resources used and the number of requests that failed
// meanwhile. Resource is empty if nothing was near its limit, or nothing was measured.
func Find(r result.Resources, failed int64, machine Machine) result.Limit {
	store := candidate{"store CPU", shareOf(r.StoreCores, machine.Cores), "the store keeps %s of the machine's cores busy"}
	if r.StoreOneCore {
		store = candidate{"store CPU", r.StoreCores, "the store keeps %s of the one core busy on which it runs commands"}
	}
	host := candidate{"CPU of the machine", r.HostBusy, "its cores are %s busy" + CoresByProcess(r)}
	one := candidate{"one core of the machine", busiestCore(r), "one of its cores is %s busy: something runs on one core only" + CoresByProcess(r)}
	app := candidate{}
	if !machine.Shared { // only the load generator runs on that machine
		host.resource, host.evidence = "load generator", "the cores of its machine are %s busy"+loadCores(r)
		one.resource, one.evidence = "load generator", "one core of its machine is %s busy"+loadCores(r)
		app = appCPU(r)
	}
	most := candidate{}
	for _, c := range []candidate{
		serverConnections(r, failed), // refused requests do no work, whatever else is busy
		{"connections to the app", atMostOne(r.AppAcceptWait), "all that it accepts are in use, and clients are turned away %s of the time"},
		store,
		app,
		{"network", r.NetworkShare, "the slowest link in use is %s full"},
		host,
		one,
		{"load generator", shareOf(r.LoadCores, machine.Cores), "it keeps %s of its machine's cores busy"},
		{"row locks", shareOf(r.StoreLockWaits, machine.Batches), "transactions wait for them %s of the time"},
	} {
		if c.share == nil {
			continue
		}
		if *c.share >= Full {
			return c.limit()
		}
		if most.share == nil || *c.share > *most.share {
			most = c
		}
	}
	calls := candidate{"writes to the store", shareOf(r.StoreCallsInFlight, machine.Batches), "%s of the time as many batches are in flight as may be" + fsyncs(r)}
	for _, c := range []candidate{storeConnections(r), calls} { // a call that waits for a connection is in flight, too
		if c.share != nil && *c.share >= fullCallsShare {
			return c.limit()
		}
	}
	switch {
	case most.share == nil:
		return result.Limit{Evidence: "nothing that could be the limit was measured"}
	case *most.share >= likelyShare:
		found := most.limit()
		found.Evidence += " on average: latency comes from the moments when it is full"
		return found
	}
	return result.Limit{Evidence: fmt.Sprintf("nothing was near its limit (most used: %s, %.0f%%), so latency comes from waiting", most.resource, 100**most.share)}
}

func (c candidate) limit() result.Limit {
	percent := fmt.Sprintf("%.0f%%", 100**c.share)
	return result.Limit{Resource: c.resource, Share: c.share, Evidence: strings.Replace(c.evidence, "%s", percent, 1)}
}

// appCPU is that of app hosts that are machines of their own.
func appCPU(r result.Resources) candidate {
	c := candidate{resource: "app CPU"}
	if r.AppCores != nil && r.AppCoresUsable != nil && *r.AppCoresUsable > 0 {
		x := *r.AppCores / *r.AppCoresUsable
		c.share, c.evidence = &x, fmt.Sprintf("the app keeps %%s of its %.0f cores busy", *r.AppCoresUsable)
	}
	return c
}

func storeConnections(r result.Resources) candidate {
	c := candidate{resource: "connections to the store", share: StoreConnections(r)}
	if c.share != nil {
		c.evidence = fmt.Sprintf("the %.0f that the app may have are in use %%s of the time, and of %.1f batches in flight %.1f wait for one",
			*r.StoreConns, *r.StoreCallsInFlight, *r.StoreConnWaits)
	}
	return c
}

// StoreConnections returns the share of the app's connections to the store's server that
// was in use. It returns nil if calls did not wait for one: then each call has its own.
func StoreConnections(r result.Resources) *float64 {
	busy, waits, conns := r.StoreCallsInFlight, r.StoreConnWaits, r.StoreConns
	if busy == nil || waits == nil || conns == nil || *conns < 1 || *waits < waitingShare**busy {
		return nil
	}
	used := (*busy - *waits) / *conns
	return atMostOne(&used)
}

func serverConnections(r result.Resources, failed int64) candidate {
	return candidate{
		"connections of the store's server", ServerConnections(r, failed),
		fmt.Sprintf("%%s of those that it allows are open, and it refuses more: %s requests failed", format.Count(failed)),
	}
}

// ServerConnections returns the share of the connections that the store's server allows
// which was open. It returns nil if there was room for more, or if no request failed:
// until the last one is taken, nobody waits, and after that a client gets an error.
func ServerConnections(r result.Resources, failed int64) *float64 {
	if x := r.StoreServerConns; x == nil || *x < fullServerShare || failed == 0 {
		return nil
	}
	return r.StoreServerConns
}

// busiestCore is nil if the other cores were nearly as busy.
func busiestCore(r result.Resources) *float64 {
	if r.BusiestCore != nil && r.HostBusy != nil && *r.BusiestCore-*r.HostBusy < oneCoreShare {
		return nil
	}
	return r.BusiestCore
}

func atMostOne(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := min(1, *x)
	return &y
}

func shareOf(used *float64, of int) *float64 {
	if used == nil || of < 1 {
		return nil
	}
	x := *used / float64(of)
	return &x
}

// loadCores says how much of its machine the load generator used itself.
func loadCores(r result.Resources) string {
	if r.LoadCores == nil {
		return ""
	}
	return fmt.Sprintf(" (by itself %.2f cores)", *r.LoadCores)
}

// CoresByProcess lists the cores that load, app and store used: " (in cores: load 0.50,
// app 0.75)". It returns "" if none is known.
func CoresByProcess(r result.Resources) string {
	var parts []string
	for _, p := range []struct {
		name  string
		cores *float64
	}{{"load", r.LoadCores}, {"app", r.AppCores}, {"store", r.StoreCores}} {
		if p.cores != nil {
			parts = append(parts, fmt.Sprintf("%s %.2f", p.name, *p.cores))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (in cores: " + strings.Join(parts, ", ") + ")"
}

func fsyncs(r result.Resources) string {
	if r.StoreFsyncsPerS == nil {
		return ""
	}
	return fmt.Sprintf(", with %.0f fsyncs/s", *r.StoreFsyncsPerS)
}
