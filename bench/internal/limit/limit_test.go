package limit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

func TestFind_NamesWhatIsFull(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	machine := Machine{Shared: true, Batches: 2}
	quiet := result.Resources{
		LoadCores: value(0.5), AppCores: value(1), StoreCores: value(0.5), HostBusy: value(0.5),
		LoadCoresUsable: value(4), AppCoresUsable: value(4), StoreCoresUsable: value(4), LoadThrottled: value(0), StoreThrottled: value(0), HostSteal: value(0),
		BusiestCore: value(0.65), StoreCallsInFlight: value(1), StoreLockWaits: value(0), StoreFsyncsPerS: value(400),
	}
	for name, c := range map[string]struct {
		spoil              func(*result.Resources)
		resource, evidence string
	}{
		"the main thread of Redis, not its children": {
			func(r *result.Resources) {
				r.StoreOneCore, r.StoreCores, r.StoreMainCore, r.StoreChildCores = true, value(1.2), value(0.9), value(0.3)
			}, "store CPU", "the store keeps 90% of the one core busy on which it runs commands",
		},
		"one core of the busiest master, not the sum of all": {func(r *result.Resources) {
			r.StoreOneCore, r.StoreCores, r.StoreMainCore, r.StoreCPUImbalance = true, value(2.4), value(0.9), value(1.1)
		}, "store CPU", "the busiest master keeps 90% of the one core busy on which it runs commands"},
		"masters that are all half busy": {func(r *result.Resources) {
			r.StoreOneCore, r.StoreCores, r.StoreMainCore, r.StoreCPUImbalance = true, value(1.5), value(0.5), value(1)
		}, "", "most used: one core of the machine, 65%"},
		"one core of Redis": {func(r *result.Resources) { r.StoreOneCore, r.StoreCores = true, value(0.96) }, "store CPU", "the store keeps 96% of the one core busy on which it runs commands"},
		"cores of a store":  {func(r *result.Resources) { r.StoreCores = value(3.6) }, "store CPU", "the store keeps 90% of the 4 cores that it may use busy"},
		"half a core of Redis": {func(r *result.Resources) {
			r.StoreOneCore, r.StoreCores, r.StoreCoresUsable, r.StoreThrottled = true, value(0.49), value(0.5), value(0.99)
		}, "store CPU", "the store keeps 98% of the 0.5 cores that it may use (cgroup quota) busy"},
		"a store whose cores are unknown":            {func(r *result.Resources) { r.StoreCores, r.StoreCoresUsable = value(3.9), nil }, "", "most used: one core of the machine, 65%"},
		"a store of another machine with more cores": {func(r *result.Resources) { r.StoreCores, r.StoreCoresUsable = value(4), value(16) }, "", "most used: one core of the machine, 65%"},
		"a pinned app": {func(r *result.Resources) { r.AppCoresUsable = value(1) }, "app CPU", "the app keeps 100% of the one core that it may use busy"},
		"a pinned load generator": {func(r *result.Resources) {
			r.LoadCores, r.LoadCoresUsable, r.BusiestCore = value(0.97), value(1), value(1)
		}, LoadGenerator, "it keeps 97% of the one core that it may use busy"},
		"a load generator with a quota": {func(r *result.Resources) {
			r.LoadCores, r.LoadCoresUsable, r.LoadThrottled = value(0.98), value(1), value(0.9)
		}, LoadGenerator, "it keeps 98% of the one core that it may use (cgroup quota) busy"},
		"a load generator that is stopped in bursts": {func(r *result.Resources) { r.LoadThrottled = value(0.3) }, LoadGenerator, "it used up its CPU quota in 30% of the quota's periods"},
		"a store that its quota stops, on a machine that others fill": {func(r *result.Resources) {
			r.StoreOneCore, r.StoreCores, r.StoreCoresUsable, r.StoreThrottled = true, value(0.016), value(0.02), value(0.6)
			r.HostBusy, r.BusiestCore = value(0.97), value(0.98)
		}, "store CPU", "the store used up its CPU quota in 60% of the quota's periods, and was stopped until the next one"},
		"a store that its quota always stops, on a machine that others fill": {func(r *result.Resources) {
			r.StoreOneCore, r.StoreCores, r.StoreCoresUsable, r.StoreThrottled = true, value(0.019), value(0.02), value(1)
			r.HostBusy, r.BusiestCore = value(0.97), value(0.98)
		}, "store CPU", "the store keeps 95% of the 0.02 cores that it may use (cgroup quota) busy"},
		"a load generator that its quota stops, on a machine that others fill": {func(r *result.Resources) {
			r.LoadCores, r.LoadCoresUsable, r.LoadThrottled = value(0.016), value(0.02), value(0.7)
			r.HostBusy, r.BusiestCore = value(0.97), value(0.98)
		}, LoadGenerator, "it used up its CPU quota in 70% of the quota's periods"},
		"a machine that is full, and a store that its quota stops now and then": {func(r *result.Resources) {
			r.StoreThrottled, r.HostBusy = value(0.3), value(0.97)
		}, "CPU of the machine", "its cores are 97% busy"},
		"hardly stopped": {func(r *result.Resources) { r.StoreThrottled = value(0.01) }, "", "nothing was near its limit"},
		"a quarter stolen": {func(r *result.Resources) {
			r.HostBusy, r.BusiestCore, r.HostSteal = value(0.73), value(0.75), value(0.25)
		}, "CPU of the machine", "its cores are 97% busy (in cores: load 0.50, app 1.00, store 0.50); the hypervisor took 25% of this machine's CPU time (steal)"},
		"machine":  {func(r *result.Resources) { r.HostBusy = value(0.97) }, "CPU of the machine", "its cores are 97% busy (in cores: load 0.50, app 1.00, store 0.50)"},
		"one core": {func(r *result.Resources) { r.BusiestCore = value(0.99) }, "one core of the machine", "one of its cores is 99% busy"},
		"load and app on one core": {func(r *result.Resources) {
			r.LoadCoresUsable, r.AppCores, r.AppCoresUsable, r.BusiestCore = value(1), value(0.5), value(1), value(1)
		}, "one core of the machine", "one of its cores is 100% busy: load, app may use one core only (in cores: "},
		"all cores alike": {func(r *result.Resources) { r.HostBusy, r.BusiestCore = value(0.8), value(0.88) }, "CPU of the machine", "its cores are 80% busy (in cores: load 0.50, app 1.00, store 0.50) on average: latency comes"},
		"network":         {func(r *result.Resources) { r.NetworkShare = value(0.93) }, "network", "93% full"},
		"locks":           {func(r *result.Resources) { r.StoreLockWaits = value(1.8) }, "row locks", "wait for them 90% of the time"},
		"fsyncs":          {func(r *result.Resources) { r.StoreCallsInFlight = value(1.95) }, "writes to the store", "98% of the time as many batches are in flight as may be, with 400 fsyncs/s"},
		"connections": {func(r *result.Resources) {
			r.StoreCallsInFlight, r.StoreConnWaits, r.StoreConns = value(1.95), value(0.95), value(1)
		}, "connections to the store", "the 1 that the app may have are in use 100% of the time, and of 1.9 batches in flight 0.9 wait for one"},
		"enough connections": {func(r *result.Resources) {
			r.StoreCallsInFlight, r.StoreConnWaits, r.StoreConns = value(1.95), value(0.01), value(2)
		}, "writes to the store", "98% of the time"},
		"kept out":             {func(r *result.Resources) { r.AppAcceptWait = value(1.7) }, "connections to the app", "all that it accepts are in use, and clients are turned away 100% of the time"},
		"connections refused":  {func(r *result.Resources) { r.HostBusy, r.StoreServerConns = value(0.97), value(1) }, "connections of the store's server", "100% of those that it allows are open, and it refuses more: 20 requests failed"},
		"room for connections": {func(r *result.Resources) { r.StoreServerConns = value(0.9) }, "", "most used: one core of the machine"},
		"nothing":              {func(*result.Resources) {}, "", "nothing was near its limit (most used: one core of the machine, 65%)"},
		"nothing known":        {func(r *result.Resources) { *r = result.Resources{} }, "", "nothing that could be the limit was measured"},
	} {
		used := quiet
		c.spoil(&used)
		limit := Find(used, 20, machine)
		require.Equal(t, c.resource, limit.Resource, name)
		require.Contains(t, limit.Evidence, c.evidence, name)
		require.Equal(t, c.resource == "", limit.Share == nil, name)
	}
}

// What is busy on a machine that has neither app nor store is the load generator.
func TestFind_OfAppHostsElsewhere(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		used               result.Resources
		resource, evidence string
	}{
		"app":           {result.Resources{AppCores: value(7.2), AppCoresUsable: value(8), HostBusy: value(0.9)}, "app CPU", "the app keeps 90% of the 8 cores that it may use busy"},
		"load":          {result.Resources{AppCores: value(2), AppCoresUsable: value(8), HostBusy: value(0.97), LoadCores: value(0.5)}, "load generator", "the cores of its machine are 97% busy (by itself 0.50 cores)"},
		"load, a core":  {result.Resources{AppCores: value(2), AppCoresUsable: value(8), HostBusy: value(0.5), BusiestCore: value(0.99)}, "load generator", "one core of its machine is 99% busy"},
		"cores unknown": {result.Resources{AppCores: value(7.9), HostBusy: value(0.2)}, "", "most used: load generator, 20%"},
	} {
		limit := Find(c.used, 0, Machine{})
		require.Equal(t, c.resource, limit.Resource, name)
		require.Contains(t, limit.Evidence, c.evidence, name)
	}
}
