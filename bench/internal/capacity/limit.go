package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Machine is what shares are taken of.
type Machine struct {
	Cores    int  // of the load generator's machine
	Shared   bool // app or store run on it too
	Flushers int  // batches that the app may have under way to the store; 0: not known
}

// From these shares on, a resource is what keeps the rate from being higher. Calls
// to the store come last: with one batch under way at a time they are always nearly
// full, and batches grow before that is a limit.
const (
	fullShare      = 0.85
	fullCallsShare = 0.90
	likelyShare    = 0.70 // on average: the more a resource is used, the more often somebody waits for it

	nearShare = 0.05 // of the rate: next to the edge
)

// candidate is a resource that may be the limit.
type candidate struct {
	resource string
	share    *float64
	evidence string
}

// FindLimit names what limits the rate, from the measurements next to the edge.
func FindLimit(steps []result.Step, rate *float64, machine Machine) result.Limit {
	at := nextTo(steps, rate)
	if len(at) == 0 {
		return result.Limit{Evidence: "nothing was measured at the edge"}
	}
	r := average(at)
	store := candidate{"store CPU", share(r.StoreCores, machine.Cores), "the store keeps %s of the machine's cores busy"}
	if r.StoreOneCore {
		store = candidate{"store CPU", r.StoreCores, "the store keeps %s of the one core busy on which it runs commands"}
	}
	host := candidate{"CPU of the machine", r.HostBusy, "its cores are %s busy" + whose(r)}
	one := candidate{"one core of the machine", result.OneCoreOnly(r.BusiestCore, r.HostBusy), "one of its cores is %s busy: something runs on one core only" + whose(r)}
	app := candidate{}
	if !machine.Shared { // what is busy there is the load generator, and nothing else
		host.resource, host.evidence = "load generator", "the cores of its machine are %s busy"+ownOf(r)
		one.resource, one.evidence = "load generator", "one core of its machine is %s busy"+ownOf(r)
		app = appCPU(r)
	}
	full := []candidate{
		serverConnections(r, at), // what it refuses it does not do, whatever else is busy
		{"connections to the app", r.AppAcceptWait, "all that it accepts are in use, and clients are turned away %s of the time"},
		store,
		app,
		{"network", r.NetworkShare, "the slowest link in use is %s full"},
		host,
		one,
		{"load generator", share(r.LoadCores, machine.Cores), "it keeps %s of its machine's cores busy"},
		{"row locks", share(r.StoreLockWaits, machine.Flushers), "transactions wait for them %s of the time"},
	}
	most := candidate{}
	for _, c := range full {
		if c.share == nil {
			continue
		}
		if *c.share >= fullShare {
			return c.limit()
		}
		if most.share == nil || *c.share > *most.share {
			most = c
		}
	}
	calls := candidate{"writes to the store", share(r.StoreCallsInFlight, machine.Flushers), "%s of the time as many batches are under way as may be" + fsyncs(r)}
	for _, c := range []candidate{storeConnections(r), calls} { // what waits for a connection is under way, too
		if c.share != nil && *c.share >= fullCallsShare {
			return c.limit()
		}
	}
	switch {
	case most.share == nil:
		return result.Limit{Evidence: "nothing that could be the limit was measured"}
	case *most.share >= likelyShare:
		limit := most.limit()
		limit.Evidence += ", on average; nothing is nearer to its limit, and the latency is that of moments in which it is full"
		return limit
	}
	return result.Limit{Evidence: fmt.Sprintf("nothing was near its limit (most used: %s, %.0f%%), so the latency is that of moments in which something waits", most.resource, 100**most.share)}
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

// storeConnections are those of the app to the store's server.
func storeConnections(r result.Resources) candidate {
	c := candidate{resource: "connections to the store", share: r.ConnsInUse()}
	if c.share != nil {
		c.evidence = fmt.Sprintf("the %.0f that the app may have are in use %%s of the time, and of %.1f batches under way %.1f wait for one",
			*r.StoreConns, *r.StoreCallsInFlight, *r.StoreConnWaits)
	}
	return c
}

// serverConnections are those that the store's server allows.
func serverConnections(r result.Resources, at []result.Step) candidate {
	failed := int64(0)
	for _, m := range at {
		failed += m.Load.Errors
	}
	return candidate{
		"connections of the store's server", r.ServerConnsTaken(failed),
		fmt.Sprintf("%%s of those that it allows are open, and it refuses more: %s requests failed", format.Count(failed)),
	}
}

func (c candidate) limit() result.Limit {
	percent := fmt.Sprintf("%.0f%%", 100**c.share)
	return result.Limit{Resource: c.resource, Share: c.share, Evidence: strings.Replace(c.evidence, "%s", percent, 1)}
}

func share(used *float64, of int) *float64 {
	if used == nil || of < 1 {
		return nil
	}
	x := *used / float64(of)
	return &x
}

// ownOf is what of its machine the load generator kept busy itself: the rest is somebody
// else's, or app and store behind addresses that do not tell.
func ownOf(r result.Resources) string {
	if r.LoadCores == nil {
		return ""
	}
	return fmt.Sprintf(" (by itself %.2f cores)", *r.LoadCores)
}

func whose(r result.Resources) string {
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

// nextTo are the measurements within nearShare of the rate; if there is none, the one
// that is nearest, and without a rate, the lowest.
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

// average of what was used; what one of them lacks is nil.
func average(at []result.Step) result.Resources {
	mean := func(of func(result.Resources) *float64) *float64 {
		sum := 0.0
		for _, m := range at {
			x := of(m.Resources)
			if x == nil {
				return nil
			}
			sum += *x / float64(len(at))
		}
		return &sum
	}
	type R = result.Resources
	return R{
		LoadCores:          mean(func(r R) *float64 { return r.LoadCores }),
		AppCores:           mean(func(r R) *float64 { return r.AppCores }),
		AppCoresUsable:     mean(func(r R) *float64 { return r.AppCoresUsable }),
		StoreCores:         mean(func(r R) *float64 { return r.StoreCores }),
		StoreOneCore:       at[0].Resources.StoreOneCore,
		HostBusy:           mean(func(r R) *float64 { return r.HostBusy }),
		BusiestCore:        mean(func(r R) *float64 { return r.BusiestCore }),
		StoreFsyncsPerS:    mean(func(r R) *float64 { return r.StoreFsyncsPerS }),
		StoreCallsInFlight: mean(func(r R) *float64 { return r.StoreCallsInFlight }),
		StoreLockWaits:     mean(func(r R) *float64 { return r.StoreLockWaits }),
		AppAcceptWait:      mean(R.KeptOut),
		StoreConns:         mean(func(r R) *float64 { return r.StoreConns }),
		StoreConnWaits:     mean(func(r R) *float64 { return r.StoreConnWaits }),
		NetworkShare:       mean(func(r R) *float64 { return r.NetworkShare }),

		StoreServerConns: mean(func(r R) *float64 { return r.StoreServerConns }),
	}
}
