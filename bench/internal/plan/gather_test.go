package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

var modest = plan.Demand{RatePerS: 3000, Peak: 2, SLO: promise, Retention: time.Hour}

func TestMake_LeavesOutStepsThatAreNotValid(t *testing.T) {
	t.Parallel()
	c := searched()
	want, _, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	late := step(4000, 500, 150, 2000, 1)
	late.Validity = result.Validity{Warnings: []string{"late load generator"}}
	c.Capacity.Steps = append(c.Capacity.Steps, late)
	got, _, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestMake_RefusesAResultTwice(t *testing.T) {
	t.Parallel()
	_, _, err := plan.Make(modest, append(of(searched()), of(searched())...))
	require.ErrorIs(t, err, plan.ErrNoPlan)
	require.ErrorContains(t, err, "result 20261121-083542-redis is there twice")

	again := searched()
	again.Run.Started = again.Run.Started.Add(time.Second / 2) // two hosts, in the same second
	_, _, err = plan.Make(modest, append(of(searched()), of(again)...))
	require.NoError(t, err)
}

// A plan is as valid as what it rests on, and has its warnings.
func TestMake_IsNotValidWithAResultThatIsNot(t *testing.T) {
	t.Parallel()
	c, other := searched(), searched()
	c.Validity.Warnings = []string{"shared host: relative only"}
	other.Run.ID, other.Validity = "other", result.Validity{Warnings: []string{"lost: 3 sagas", "steal: 2%"}}
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.True(t, validity.Valid)
	require.Contains(t, validity.Warnings, "20261121-083542-redis: shared host: relative only")
	require.Empty(t, shown(p, validity, "").Verdict)

	p, validity, err = plan.Make(modest, append(of(c), of(other)...))
	require.NoError(t, err)
	require.False(t, validity.Valid)
	require.Equal(t, "result other is not valid", validity.Warnings[0])
	require.Equal(t, []string{"20261121-083542-redis: shared host: relative only", "other: lost: 3 sagas", "other: steal: 2%"}, validity.Warnings[len(validity.Warnings)-3:])
	require.Contains(t, shown(p, validity, "").Verdict, "NOT VALID")
}

// What somebody else does on the machine makes it busy, and is no sign of how busy
// load, app and store may keep it.
func TestMake_CountsOwnWorkOnly(t *testing.T) {
	t.Parallel()
	c := searched()
	for i := range c.Capacity.Steps {
		r := &c.Capacity.Steps[i].Resources
		r.LoadCores, r.AppCores, r.StoreCores = ptr(0.3), ptr(0.4), ptr(0.1)
	}
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.InDelta(t, 0.4, *p.Usable, 1e-9) // 0.8 of 2 cores, though 90% were busy
	require.Contains(t, validity.Warnings, "other work: 50.0% of the machine was busy with neither load, app nor store at 8,000/s; without that they may carry more")
}

func TestMake_SaysWhatMemoryARedisNeeds(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Environment.Memory = 1_000_000_000
	// A server that gives memory back of its own does not make a saga cost less.
	c.Capacity.Steps[0].CostPerSaga.StoreMemoryBytes = ptr(-200.0)
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	each := line(t, p.Lines, "memory of each store node")
	require.InEpsilon(t, 3000*3600*250.0, *each.Value, 1e-3) // finished ones; the others are few
	require.Equal(t, "more than the 1.00 GB of the measured machine: more nodes, or a shorter retention, need less", each.Caveat)
	require.Contains(t, validity.Warnings, "memory: a store node needs 2.70 GB, "+each.Caveat)
	require.NoError(t, shown(p, validity, "").Check())

	c = searched()
	c.Run.Store.Driver = "mysql"
	for i := range c.Capacity.Steps {
		c.Capacity.Steps[i].Resources.StoreOneCore = false
	}
	p, validity, err = plan.Make(modest, of(c))
	require.NoError(t, err)
	for _, l := range p.Lines {
		require.NotContains(t, l.What, "memory of each", "an SQL server keeps them on its disk")
	}
}

func TestMake_SaysHowMuchTimeIsAtRisk(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.Store.Durability, c.Run.Store.Settings = "D2", map[string]string{"loss_window": "15s"}
	_, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Contains(t, validity.Warnings, "durability: the store was measured at D2: about the last 15s at risk")
}

func TestPlan_HeadlineIsInWords(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 1, SLO: promise}, of(searched()))
	require.NoError(t, err)
	require.Equal(t, "1 app host and 1 store node (redis) for 3,000 sagas/s, with p99 ≤ 20 ms", shown(p, validity, "").Headline)
	require.Len(t, shown(p, validity, "").Lead, 1)

	c := searched()
	c.Run.Store.Driver = "pebble"
	p, validity, err = plan.Make(plan.Demand{RatePerS: 20_000, Peak: 1, SLO: promise, Retention: 90 * time.Minute}, of(c))
	require.NoError(t, err)
	d := shown(p, validity, "")
	require.Equal(t, "3 app hosts, each with its own store (pebble) for 20,000 sagas/s, with p99 ≤ 20 ms", d.Headline)
	require.True(t, strings.HasPrefix(d.Lead[0], "Extrapolated: "), d.Lead)
	require.Contains(t, line(t, p.Lines, "held by finished sagas").Caveat, "of 1h30m at")
}

// ofHosts is searched, on so many app hosts: each has its share of the rates.
func ofHosts(n int) *result.CapacitySummary {
	c := searched()
	c.Run.ID, c.Run.AppHosts = fmt.Sprintf("of-%d", n), n
	return c
}

func TestMake_SizesBySeveralAppHosts(t *testing.T) {
	t.Parallel()
	p, _, err := plan.Make(plan.Demand{RatePerS: 8000, Peak: 1, SLO: promise}, of(ofHosts(2)))
	require.NoError(t, err)
	// Two did so, though at 40 µs one of 1.8 cores was enough: at 8,000/s of its own, as
	// two that carry 16,000/s, which nobody saw; so one is what the cost says.
	hosts := line(t, p.Lines, "app hosts")
	require.InDelta(t, 1, *hosts.Value, 0)
	require.True(t, hosts.Extrapolated)
	require.Contains(t, hosts.Caveat, "if each carries as much as each of the 2 that were measured together")

	c := ofHosts(2)
	for i := range c.Capacity.Steps {
		*c.Capacity.Steps[i].CostPerSaga.AppCPUUS *= 10 // 400 µs at 8,000/s: 3.2 cores
	}
	p, _, err = plan.Make(plan.Demand{RatePerS: 8000, Peak: 1, SLO: promise}, of(c))
	require.NoError(t, err)
	hosts = line(t, p.Lines, "app hosts")
	require.InDelta(t, 2, *hosts.Value, 0)
	require.False(t, hosts.Extrapolated)
	require.Empty(t, hosts.Caveat, "it was measured so")
	require.Contains(t, hosts.Basis, "app CPU per saga 400 µs, measured at 8,000/s (of-2, 2 app hosts)")
	require.InEpsilon(t, 3.2, *line(t, p.Lines, "app CPU").Value, 1e-9)
	require.InEpsilon(t, 0.08, *line(t, p.Lines, "store CPU").Value, 1e-9, "the store had the whole rate")
	require.InEpsilon(t, 100*(3.6/3.2-1), *line(t, p.Lines, "headroom of the app hosts").Value, 1e-9)
}

// What was seen to carry a rate is enough for it, though each of its sagas cost more when
// there were fewer.
func TestMake_TakesNoMoreThanWasSeenToBeEnough(t *testing.T) {
	t.Parallel()
	c := searched()
	for i := range c.Capacity.Steps {
		if m := &c.Capacity.Steps[i]; *m.Load.OfferedPerS < 8000 {
			m.CostPerSaga.StoreCPUUS = ptr(100.0) // 0.4 cores at 4,000/s, and 0.08 at 8,000/s
		}
	}
	c.Run.SharedHost = false // so that the store's core, 8% busy at 8,000/s, is what is known
	p, _, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 1, SLO: promise}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 1, *line(t, p.Lines, "store nodes").Value, 0)
	require.InDelta(t, 1, *line(t, p.Lines, "app hosts").Value, 0)
	require.GreaterOrEqual(t, *line(t, p.Lines, "headroom of the store nodes").Value, 99.9, "8,000/s were carried")
}

func TestMake_OfServersOnAnUnknownStore(t *testing.T) {
	t.Parallel()
	c := ofHosts(2)
	c.Run.Store = result.Store{}
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.CostPerSaga = result.Cost{AppCPUUS: m.CostPerSaga.AppCPUUS}
		m.Resources.StoreCores, m.Resources.StoreOneCore = nil, false
	}
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Equal(t, "1 app host on an unknown store for 3,000 sagas/s, at the peak 6,000/s, with p99 ≤ 20 ms", shown(p, validity, "").Headline)
	require.Nil(t, line(t, p.Lines, "store nodes").Value)
	require.Contains(t, validity.Warnings, "durability: that of the measured store is not known")
	require.NoError(t, shown(p, validity, "").Check())
}
