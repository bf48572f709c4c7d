package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
)

var modest = plan.Demand{RatePerS: 3000, Peak: 2, SLO: promise, Retention: time.Hour}

func TestMake_LeavesOutStepsThatAreNotValid(t *testing.T) {
	t.Parallel()
	c := searched()
	want, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	late := step(4000, 500, 150, 2000, 1)
	late.Validity = report.Validity{Warnings: []string{"late load generator"}}
	c.Capacity.Steps = append(c.Capacity.Steps, late)
	got, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestMake_RefusesAResultTwice(t *testing.T) {
	t.Parallel()
	_, err := plan.Make(modest, append(of(searched()), of(searched())...))
	require.ErrorIs(t, err, plan.ErrNoPlan)
	require.ErrorContains(t, err, "result 20261121-083542-redis is there twice")

	again := searched()
	again.Run.Started = again.Run.Started.Add(time.Second / 2) // two hosts, in the same second
	_, err = plan.Make(modest, append(of(searched()), of(again)...))
	require.NoError(t, err)
}

func TestMake_SaysWhyAResultIsNotValid(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Validity = report.Validity{Warnings: []string{"shared host: " + strings.Repeat("x", 100), "lost: 3 sagas"}}
	_, err := plan.Make(modest, of(c))
	require.ErrorContains(t, err, "not valid; its warnings: shared host: "+strings.Repeat("x", 67)+"…; lost: 3 sagas")
	c.Validity.Warnings = nil
	_, err = plan.Make(modest, of(c))
	require.ErrorContains(t, err, "its warnings: none")
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
	p, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.InDelta(t, 0.4, *p.Usable, 1e-9) // 0.8 of 2 cores, though 90% were busy
	require.Contains(t, p.Warnings, "other work: 50.0% of the machine was busy with neither load, app nor store at 8,000/s; without that they may carry more")
}

func TestMake_SaysWhatMemoryARedisNeeds(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Environment.Memory = 1_000_000_000
	// A server that gives memory back of its own does not make a saga cost less.
	c.Capacity.Steps[0].CostPerSaga.StoreMemoryBytes = ptr(-200.0)
	p, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	each := line(t, p.Lines, "memory of each store node")
	require.InEpsilon(t, 3000*3600*250.0, *each.Value, 1e-3) // finished ones; the others are few
	require.Equal(t, "more than the 1.00 GB of the measured machine: more nodes, or a shorter retention, need less", each.Caveat)
	require.Contains(t, p.Warnings, "memory: a store node needs 2.70 GB, "+each.Caveat)
	require.NoError(t, p.Document("").Check())

	c = searched()
	c.Run.Store.Driver = "mysql"
	for i := range c.Capacity.Steps {
		c.Capacity.Steps[i].Resources.StoreOneCore = false
	}
	p, err = plan.Make(modest, of(c))
	require.NoError(t, err)
	for _, l := range p.Lines {
		require.NotContains(t, l.What, "memory of each", "an SQL server keeps them on its disk")
	}
}

func TestPlan_HeadlineIsInWords(t *testing.T) {
	t.Parallel()
	p, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 1, SLO: promise}, of(searched()))
	require.NoError(t, err)
	require.Equal(t, "1 app host and 1 store node (redis) for 3,000 sagas/s, with p99 ≤ 20 ms", p.Document("").Headline)
	require.Len(t, p.Document("").Lead, 1)

	c := searched()
	c.Run.Store.Driver = "pebble"
	p, err = plan.Make(plan.Demand{RatePerS: 20_000, Peak: 1, SLO: promise, Retention: 90 * time.Minute}, of(c))
	require.NoError(t, err)
	d := p.Document("")
	require.Equal(t, "3 app hosts, each with its own store (pebble) for 20,000 sagas/s, with p99 ≤ 20 ms", d.Headline)
	require.True(t, strings.HasPrefix(d.Lead[0], "Extrapolated: "), d.Lead)
	require.Contains(t, line(t, p.Lines, "held by finished sagas").Caveat, "of 1h30m at")
}
