// Package limit names the resource that keeps a rate from being higher, for a run and for
// a search.
package limit

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Machine is what is known beside the figures.
type Machine struct {
	Shared  bool // app or store run on it, too
	Batches int  // that the app may have in flight to the store; 0: unknown
}

// LoadGenerator is the resource that shows the load generator instead of the system.
const LoadGenerator = "load generator"

// Full is the share from which on a resource is the limit.
const Full = 0.85

const (
	// Calls to the store are checked last: with one batch in flight at a time they are
	// nearly always full, and batches grow before that is a limit.
	fullCallsShare = 0.90
	// likelyShare is an average from which on the most used resource is named: the more
	// it is used, the more often a request waits for it.
	likelyShare = 0.70

	waitingShare    = 0.05  // of the time of a call to the store spent waiting for a connection, from which on connections are too few
	throttledShare  = 0.05  // of the periods of its CPU quota that a process was stopped in, from which on requests wait for that
	starvedShare    = 0.50  // of these periods, from which on the quota is the limit, however busy the machine is
	stealShare      = 0.05  // of the machine's CPU time, from which on the hypervisor is named, too
	fullServerShare = 0.98  // of the connections that the store's server allows: one may be reserved
	childrenCores   = 0.005 // of the store, from which on they are named
	oneCoreShare    = 0.10  // how much busier than the average the busiest core is, if something runs on one core only
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
	found := find(r, failed, machine)
	if steal := r.HostSteal; steal != nil && *steal >= stealShare {
		found.Evidence += fmt.Sprintf("; the hypervisor took %.0f%% of this machine's CPU time (steal)", 100**steal)
	}
	return found
}

func find(r result.Resources, failed int64, machine Machine) result.Limit {
	command := candidate{}
	if r.StoreOneCore {
		who, core := "the store", cmp.Or(r.StoreMainCore, r.StoreCores)
		if r.StoreCPUImbalance != nil {
			who, core = "the busiest master", r.StoreMainCore
		}
		command = candidate{"store CPU", atMostOne(core), who + " keeps %s of the one core busy on which it runs commands"}
	}
	host := candidate{"CPU of the machine", notStolen(r.HostBusy, r.HostSteal), "its cores are %s busy" + CoresByProcess(r)}
	one := candidate{"one core of the machine", notStolen(busiestCore(r), r.HostSteal), "one of its cores is %s busy: " + onOneCore(r) + CoresByProcess(r)}
	if !machine.Shared { // only the load generator runs on that machine
		host.resource, host.evidence = LoadGenerator, "the cores of its machine are %s busy"+loadCores(r)
		one.resource, one.evidence = LoadGenerator, "one core of its machine is %s busy"+loadCores(r)
	}
	processes := []process{
		{"store CPU", "the store", r.StoreCores, r.StoreCoresUsable, r.StoreThrottled},
		{"app CPU", "the app", r.AppCores, r.AppCoresUsable, r.AppThrottled},
		{LoadGenerator, "it", r.LoadCores, r.LoadCoresUsable, r.LoadThrottled},
	}
	if stopped(processes, starvedShare).share != nil {
		// Other programs may fill the machine, and keep the process from using up its quota in
		// each period. An idle machine would not carry more.
		host.share, one.share = nil, nil
	}
	most := candidate{}
	for _, c := range []candidate{
		serverConnections(r, failed), // refused requests do no work, whatever else is busy
		{"connections to the app", atMostOne(r.AppAcceptWait), "all that it accepts are in use, and clients are turned away %s of the time"},
		command,
		processes[0].cpu(),
		processes[1].cpu(),
		{"network", r.NetworkShare, "the slowest link in use is %s full"},
		processes[2].cpu(), // before its machine: it may use a part of that only
		host,
		one,
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
	if c := stopped(processes, throttledShare); c.share != nil {
		return c.limit()
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

// process is the CPU of the store, the app or the load generator. Its cores are those that
// it may use, whatever its machine has.
type process struct {
	resource, name          string
	used, usable, throttled *float64
}

func (p process) cpu() candidate {
	c := candidate{resource: p.resource}
	if p.used != nil && p.usable != nil && *p.usable > 0 {
		x := *p.used / *p.usable
		c.share, c.evidence = atMostOne(&x), p.name+" keeps %s of the "+p.cores()+" busy"
	}
	return c
}

// stopped returns the first process that its CPU quota stopped in at least this share of the
// quota's periods. Its share is nil if there is none.
func stopped(processes []process, share float64) candidate {
	for _, p := range processes {
		if p.throttled != nil && *p.throttled >= share {
			return candidate{p.resource, p.throttled, p.name + " used up its CPU quota in %s of the quota's periods, and was stopped until the next one"}
		}
	}
	return candidate{}
}

// cores says how many it may use, and whether a quota sets that.
func (p process) cores() string {
	text := fmt.Sprintf("%.3g cores that it may use", *p.usable)
	if *p.usable == 1 {
		text = "one core that it may use"
	}
	if *p.usable != math.Trunc(*p.usable) || p.throttled != nil && *p.throttled > 0 {
		text += " (cgroup quota)"
	}
	return text
}

// notStolen is a share of the CPU time that the hypervisor left to the machine.
func notStolen(share, steal *float64) *float64 {
	if share == nil || steal == nil || *steal >= 1 {
		return share
	}
	x := *share / (1 - *steal)
	return atMostOne(&x)
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
		fmt.Sprintf("%%s of those that it allows are open, and it refuses more: %s failed", format.Plural(failed, "request")),
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

// onOneCore says what runs on one core only.
func onOneCore(r result.Resources) string {
	var names []string
	for _, p := range []struct {
		name   string
		usable *float64
	}{{"load", r.LoadCoresUsable}, {"app", r.AppCoresUsable}, {"store", r.StoreCoresUsable}} {
		if p.usable != nil && *p.usable <= 1 {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "something runs on one core only"
	}
	return strings.Join(names, ", ") + " may use one core only"
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
	if children := r.StoreChildCores; children != nil && *children >= childrenCores {
		parts[len(parts)-1] += fmt.Sprintf(", %.2f of these in its children", *children)
	}
	return " (in cores: " + strings.Join(parts, ", ") + ")"
}

func fsyncs(r result.Resources) string {
	if r.StoreFsyncsPerS == nil {
		return ""
	}
	return fmt.Sprintf(", with %.0f fsyncs/s", *r.StoreFsyncsPerS)
}
