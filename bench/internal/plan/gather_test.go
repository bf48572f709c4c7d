package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

var modest = plan.Demand{RatePerS: 3000, Peak: 2, SLO: level, Retention: ptr(time.Hour)}

func TestMake_LeavesOutStepsThatAreNotValid(t *testing.T) {
	t.Parallel()
	c := searched()
	want, _, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	late := step(4000, 500, 150, 2000, 1)
	late.Validity = result.Validity{Because: []string{"late load generator"}}
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
	other.Run.ID, other.Validity = "other", result.Validity{Because: []string{"3 sagas are lost"}, Warnings: []string{"steal: 2%"}}
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.True(t, validity.Valid)
	require.Contains(t, validity.Warnings, "20261121-083542-redis: shared host: relative only")
	require.Empty(t, shown(p, validity, "").Verdict)

	p, validity, err = plan.Make(modest, append(of(c), of(other)...))
	require.NoError(t, err)
	require.False(t, validity.Valid)
	require.Equal(t, []string{"20261121-083542-redis: shared host: relative only", "other: steal: 2%"}, validity.Warnings[len(validity.Warnings)-2:])
	require.Equal(t, "NOT VALID because other: 3 sagas are lost", shown(p, validity, "").Verdict)
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
	p, _, err := plan.Make(plan.Demand{RatePerS: 20_000, Peak: 1, SLO: level}, of(c))
	require.NoError(t, err)
	// 0.8 of 2 cores, though 90% were busy.
	require.Contains(t, line(t, p.Lines, "app hosts").Basis, "used to 40.0%: the machine was that busy at 8,000/s")
}

func TestMake_SaysWhatMemoryARedisNeeds(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Environment.Memory = 1_000_000_000
	c.Run.Store.Settings = map[string]string{"repl-backlog-size": "1048576"}
	// A server that gives memory back of its own does not make a saga cost less.
	c.Capacity.Steps[0].CostPerSaga.StoreMemoryBytes = ptr(-200.0)
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	resident := line(t, p.Lines, "resident memory of the store")
	require.InEpsilon(t, 3000*3600*250.0, *resident.Value, 1e-2) // finished ones; the others are few
	require.Contains(t, resident.Basis, "how much of it is resident was not measured")
	require.InDelta(t, *resident.Value, *line(t, p.Lines, "reserve for fork").Value, 0)
	require.InDelta(t, 1<<20, *line(t, p.Lines, "replication backlog").Value, 0)
	sum := line(t, p.Lines, "memory of the store")
	require.InDelta(t, 2**resident.Value+1<<20, *sum.Value, 0)
	require.Equal(t, "more than the 1.00 GB of the measured machine: a shorter retention needs less", sum.Caveat)
	require.Contains(t, validity.Warnings, "memory: the store needs 5.40 GB, "+sum.Caveat)
	require.NoError(t, shown(p, validity, "").Check())

	for i := range c.Capacity.Steps {
		r := &c.Capacity.Steps[i].Resources
		r.StoreUsedBytes, r.StoreRSSBytes = ptr(100e6*float64(i)), ptr(10e6+120e6*float64(i))
		r.StoreMainCore, r.StoreChildCores = ptr(0.1), ptr(0.05*float64(i/3))
		c.Capacity.Steps[i].CostPerSaga.StoreBytesWritten = ptr(600.0)
	}
	p, _, err = plan.Make(modest, of(c))
	require.NoError(t, err)
	used := 3000*3600*250.0 + 6000*0.009*250
	require.InEpsilon(t, used*370/300, *line(t, p.Lines, "resident memory of the store").Value, 1e-6, "as in the fullest store")
	require.InEpsilon(t, 6000*600.0, *line(t, p.Lines, "written to disk").Value, 1e-6)
	require.Contains(t, line(t, p.Lines, "store main thread").Basis, "main-thread CPU per saga")
	children := line(t, p.Lines, "store children")
	require.Contains(t, children.Basis, "CPU of children per saga")
	require.GreaterOrEqual(t, *children.Value, 0.0)

	c.Run.Store.Settings["masters"], c.Run.Store.Settings[result.KeyReplicas] = "3", "2"
	p, _, err = plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Contains(t, line(t, p.Lines, "resident memory of the store").Basis, "was not measured with 320 MiB in use or more", "each of five servers takes a few MB for itself")

	p, validity, err = plan.Make(modest, of(sql()))
	require.NoError(t, err)
	for _, l := range p.Lines {
		require.NotContains(t, l.What, "memory of the store", "an SQL server keeps them on its disk")
	}
}

// Sagas whose branches take time are in flight for that long.
func TestMake_CountsUnfinishedSagasByTheTimeOfTheirBranches(t *testing.T) {
	t.Parallel()
	d := modest
	d.BranchLatency = time.Second
	p, _, err := plan.Make(d, of(searched()))
	require.NoError(t, err)
	l := line(t, p.Lines, "held by unfinished sagas")
	require.Greater(t, *l.Value, 6000*2*250.0) // two steps
	require.Less(t, *l.Value, 6000*2.01*250)
	require.Contains(t, l.Basis, "and 2 branch calls of 1s")

	d.BranchLatency = math.MaxInt64
	p, _, err = plan.Make(d, of(searched()))
	require.NoError(t, err)
	require.Positive(t, *line(t, p.Lines, "held by unfinished sagas").Value)
}

func TestMake_KeepsSagasAsLongAsTheMeasuredApp(t *testing.T) {
	t.Parallel()
	kept := func(seconds *float64) []result.Result {
		c := searched()
		c.Run.Store.RetentionS = seconds
		return of(c)
	}
	for name, tt := range map[string]struct {
		demand  *time.Duration
		results []result.Result
		want    time.Duration
		says    string
	}{
		"measured": {nil, kept(ptr(3600.0)), time.Hour, ""},
		"assumed":  {nil, kept(nil), 24 * time.Hour, "retention: 24h is an assumption: the results do not say one"},
		"demanded": {ptr(2 * time.Hour), kept(nil), 2 * time.Hour, ""},
		"another":  {ptr(2 * time.Hour), kept(ptr(3600.0)), 2 * time.Hour, "retention: 2h, and the measured app kept finished sagas for 1h"},
		"none":     {ptr(time.Duration(0)), kept(nil), 0, ""},
	} {
		p, validity, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 1, SLO: level, Retention: tt.demand}, tt.results)
		require.NoError(t, err, name)
		require.InDelta(t, tt.want.Seconds(), p.RetentionS, 0, name)
		require.InEpsilon(t, 1+3000*250*tt.want.Seconds(), 1+*line(t, p.Lines, "held by finished sagas").Value, 1e-9, name)
		if all := strings.Join(validity.Warnings, "\n"); tt.says == "" {
			require.NotContains(t, all, "retention", name)
		} else {
			require.Contains(t, all, tt.says, name)
		}
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

// ofHosts is searched, on so many app hosts: each has its share of the rates.
func ofHosts(n int) *result.CapacitySummary {
	c := searched()
	c.Run.ID, c.Run.AppHosts = fmt.Sprintf("of-%d", n), n
	for i := range c.Capacity.Steps {
		c.Capacity.Steps[i].Resources.AppCoresUsable = ptr(2.0 * float64(n))
	}
	return c
}

func TestMake_OfServersOnAnUnknownStore(t *testing.T) {
	t.Parallel()
	c := ofHosts(2)
	c.Run.Store = result.Store{}
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.CostPerSaga = result.Cost{}
		m.Resources.StoreCores, m.Resources.StoreOneCore = nil, false
	}
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	require.Equal(t, "2 app hosts on an unknown store for 3,000 sagas/s, at the peak 6,000/s, with p99 ≤ 20 ms", shown(p, validity, "").Headline)
	require.Nil(t, line(t, p.Lines, "store nodes").Value)
	require.Contains(t, validity.Warnings, "durability: that of the measured store is not known")
	require.NoError(t, shown(p, validity, "").Check())
}

// Runs that met the service level have held their rate.
func TestMake_TakesRunsOfOneRate(t *testing.T) {
	t.Parallel()
	c := searched()
	var results []result.Result
	for i, m := range c.Capacity.Steps {
		run := c.Run
		run.ID, run.DurationS = fmt.Sprintf("run-%d", i), m.DurationS
		results = append(results, result.Result{Run: &result.Summary{
			Envelope:    result.Envelope{Run: run, Validity: c.Validity, Environment: c.Environment},
			Measurement: m.Measurement,
		}})
	}
	d := plan.Demand{RatePerS: 3000, Peak: 2, SLO: level, Retention: ptr(time.Hour)}
	apart, _, err := plan.Make(d, results)
	require.NoError(t, err)
	together, _, err := plan.Make(d, of(c))
	require.NoError(t, err)
	require.Equal(t, []string{"run-0", "run-1", "run-2", "run-3"}, apart.From)
	require.Equal(t, []float64{8000, 60}, []float64{apart.Held, apart.HeldS})
	for i, l := range together.Lines {
		require.Equal(t, l.Value, apart.Lines[i].Value, l.What)
	}

	c.Capacity.Held.RatePerS = 4000
	both, _, err := plan.Make(d, append(results, of(c)...))
	require.NoError(t, err)
	require.InDelta(t, 8000, both.Held, 0, "a run held more than the search")
}
