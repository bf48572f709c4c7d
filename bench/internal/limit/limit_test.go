package limit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

func TestFind_NamesWhatIsFull(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	machine := Machine{Cores: 4, Shared: true, Batches: 2}
	quiet := result.Resources{
		LoadCores: value(0.5), AppCores: value(1), StoreCores: value(0.5), HostBusy: value(0.5),
		BusiestCore: value(0.65), StoreCallsInFlight: value(1), StoreLockWaits: value(0), StoreFsyncsPerS: value(400),
	}
	for name, c := range map[string]struct {
		spoil              func(*result.Resources)
		resource, evidence string
	}{
		"one core of Redis": {func(r *result.Resources) { r.StoreOneCore, r.StoreCores = true, value(0.96) }, "store CPU", "the store keeps 96% of the one core busy on which it runs commands"},
		"cores of a store":  {func(r *result.Resources) { r.StoreCores = value(3.6) }, "store CPU", "the store keeps 90% of the machine's cores busy"},
		"machine":           {func(r *result.Resources) { r.HostBusy = value(0.97) }, "CPU of the machine", "its cores are 97% busy (in cores: load 0.50, app 1.00, store 0.50)"},
		"one core":          {func(r *result.Resources) { r.BusiestCore = value(0.99) }, "one core of the machine", "one of its cores is 99% busy"},
		"all cores alike":   {func(r *result.Resources) { r.HostBusy, r.BusiestCore = value(0.8), value(0.88) }, "CPU of the machine", "its cores are 80% busy (in cores: load 0.50, app 1.00, store 0.50) on average: latency comes"},
		"network":           {func(r *result.Resources) { r.NetworkShare = value(0.93) }, "network", "93% full"},
		"locks":             {func(r *result.Resources) { r.StoreLockWaits = value(1.8) }, "row locks", "wait for them 90% of the time"},
		"fsyncs":            {func(r *result.Resources) { r.StoreCallsInFlight = value(1.95) }, "writes to the store", "98% of the time as many batches are in flight as may be, with 400 fsyncs/s"},
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
		"app":           {result.Resources{AppCores: value(7.2), AppCoresUsable: value(8), HostBusy: value(0.9)}, "app CPU", "the app keeps 90% of its 8 cores busy"},
		"load":          {result.Resources{AppCores: value(2), AppCoresUsable: value(8), HostBusy: value(0.97), LoadCores: value(0.5)}, "load generator", "the cores of its machine are 97% busy (by itself 0.50 cores)"},
		"load, a core":  {result.Resources{AppCores: value(2), AppCoresUsable: value(8), HostBusy: value(0.5), BusiestCore: value(0.99)}, "load generator", "one core of its machine is 99% busy"},
		"cores unknown": {result.Resources{AppCores: value(7.9), HostBusy: value(0.2)}, "", "most used: load generator, 20%"},
	} {
		limit := Find(c.used, 0, Machine{Cores: 4})
		require.Equal(t, c.resource, limit.Resource, name)
		require.Contains(t, limit.Evidence, c.evidence, name)
	}
}
