package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

func ptr[T any](x T) *T { return &x }

// level is what the measured rates up to 8,000/s meet.
var level = result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: 0.001}

// step is a measurement at an offered rate, on a machine that is 90% busy at 8,000/s.
// off is how far its costs are off.
func step(perS, appUS, storeUS, p99, off float64) result.Step {
	return result.Step{
		Measurement: result.Measurement{
			Load:      result.Load{Mode: result.Open, InFlight: 1000, OfferedPerS: ptr(perS), AchievedPerS: perS, Requests: int64(10 * perS)},
			LatencyMS: result.Latency{P50: ptr(p99 / 3), P99: ptr(p99), Mean: ptr(p99 / 2)},
			CostPerSaga: result.Cost{
				AppCPUUS: ptr(appUS * off), StoreCPUUS: ptr(storeUS * off), LoadCPUUS: ptr(16 * off),
				StoreBytesIn: ptr(400.0), StoreBytesOut: ptr(50.0), StoreMemoryBytes: ptr(250.0),
			},
			Resources: result.Resources{
				HostBusy: ptr(0.9 * perS / 8000), AppCoresUsable: ptr(2.0), StoreCores: ptr(perS * storeUS / 1e6), StoreOneCore: true,
			},
		},
		RatePerS:  perS,
		DurationS: 4,
		Validity:  result.Validity{Valid: true},
	}
}

// hold is a step whose rate was to be held.
func hold(perS, appUS, storeUS, p99, off float64) result.Step {
	m := step(perS, appUS, storeUS, p99, off)
	m.Hold, m.DurationS = true, 60
	return m
}

// searched is a search for the highest rate on Redis: app CPU per saga falls from 60 to
// 40 µs as the rate rises from 2,000 to 8,000/s, which was held, store CPU from 20 to 10.
func searched() *result.CapacitySummary { return searchedAs("20261121-083542-redis", 1) }

// searchedAs is another such search, whose costs are off.
func searchedAs(id string, off float64) *result.CapacitySummary {
	return &result.CapacitySummary{
		Envelope: result.Envelope{
			Run: result.Run{
				ID: id, SharedHost: true,
				Store:    result.Store{Driver: "redis", Version: "7.0.15", Durability: "D3"},
				Scenario: result.Scenario{Steps: 2, Branches: "empty"},
			},
			Validity:    result.Validity{Valid: true},
			Environment: result.Environment{Cores: 2},
		},
		Capacity: result.Capacity{
			SLO: level, HoldS: 60,
			Search: result.Search{
				Held: &result.Held{RatePerS: 8000, DurationS: 60},
				Next: &result.Next{RatePerS: 9000, Why: "p99 is 200 ms"},
			},
			Steps: []result.Step{
				step(2000, 60, 20, 3, off), step(4000, 50, 15, 5, off), hold(8000, 40, 10, 18, off), hold(9000, 39, 9, 200, off),
			},
		},
	}
}

func of(c *result.CapacitySummary) []result.Result { return []result.Result{{Capacity: c}} }

func line(t *testing.T, lines []plan.Line, what string) plan.Line {
	t.Helper()
	for _, l := range lines {
		if l.What == what {
			return l
		}
	}
	require.Fail(t, "no such line", what)
	return plan.Line{}
}

func TestMake_SizesRedis(t *testing.T) {
	t.Parallel()
	d := plan.Demand{RatePerS: 4000, Peak: 2, SLO: level, Retention: ptr(24 * time.Hour)}
	p, validity, err := plan.Make(d, of(searched()))
	require.NoError(t, err)
	require.InDelta(t, 8000, p.PeakPerS, 0)
	require.Equal(t, []float64{8000, 60, 9000}, []float64{p.Held, p.HeldS, *p.Next})
	require.Empty(t, p.Because)
	for what, want := range map[string]float64{
		"highest held rate":        8000,
		"app hosts":                1,
		"app CPU":                  8000 * 40e-6,
		"store nodes":              1,
		"store CPU":                8000 * 10e-6,
		"held by unfinished sagas": 8000 * 0.009 * 250, // in flight by Little's law
		"held by finished sagas":   4000 * 86_400 * 250,
		"network to the store":     8000 * 400,
		"network from the store":   8000 * 50,

		"sagas waiting when a store node is lost": 100,
	} {
		l := line(t, p.Lines, what)
		require.NotNil(t, l.Value, what)
		require.InEpsilon(t, want, *l.Value, 2e-2, what)
		require.False(t, l.Extrapolated, what)
		require.NotEmpty(t, l.Basis, what)
	}
	require.Equal(t, "it met the service level for 60.0 s (20261121-083542-redis); 9,000/s did not: p99 is 200 ms", line(t, p.Lines, "highest held rate").Basis)
	require.Equal(t, "1 host held 8,000/s (20261121-083542-redis)", line(t, p.Lines, "app hosts").Basis)
	require.Equal(t, "one held 8,000/s (20261121-083542-redis), and the peak is 100% of that", line(t, p.Lines, "store nodes").Basis)
	require.Contains(t, line(t, p.Lines, "app CPU").Basis, "measured at 4,000 to 9,000/s (20261121-083542-redis)")
	require.Nil(t, line(t, p.Lines, "store fsyncs").Value)
	require.Equal(t, "fsyncs per saga was not measured", line(t, p.Lines, "store fsyncs").Basis)
	require.Nil(t, line(t, p.Lines, "written to disk").Value, "what is sent is not what is written")
	require.Contains(t, p.Breaks, "the store: 100% of the sagas wait")

	doc := shown(p, validity, "bench plan")
	require.NoError(t, doc.Check())
	require.Equal(t, "1 app host and 1 store node (redis) for 4,000 sagas/s, at the peak 8,000/s, with p99 ≤ 20 ms", doc.Headline)
	require.Equal(t, []string{"86.4", "–", "–", "GB", ""}, row(t, doc, "held by finished sagas"))
}

func row(t *testing.T, d document.Document, name string) []string {
	t.Helper()
	for _, r := range d.Parts[0].Table.Rows {
		if r.Name == name {
			return r.Cells
		}
	}
	require.Fail(t, "no such row", name)
	return nil
}

// What was not measured is in the headline, and no store is recommended that cannot be had.
func TestMake_SaysWhatIsMoreThanWasMeasured(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 40_000, Peak: 1, SLO: level}, of(searched()))
	require.NoError(t, err)
	// Not fewer than three: 13,333/s each are within one and a half of the 9,000/s that were measured.
	require.InDelta(t, 3, *line(t, p.Lines, "app hosts").Value, 0)
	require.False(t, line(t, p.Lines, "app hosts").Extrapolated)
	require.Equal(t, "if 3 carry 3 times what one does, which was not measured", line(t, p.Lines, "app hosts").Caveat)
	require.True(t, line(t, p.Lines, "store nodes").Extrapolated)
	require.InEpsilon(t, 0.36, *line(t, p.Lines, "store main thread").Value, 1e-9)
	require.Len(t, p.Because, 2)
	require.Equal(t, "3 app hosts and 1 store node (redis) for 40,000 sagas/s, with p99 ≤ 20 ms; "+
		"extrapolated: the store was measured to hold 8,000/s, and the peak is 5.00 times that", shown(p, validity, "").Headline)
	require.Contains(t, p.Because[1], "of a machine for store main thread, store CPU, ")

	p, validity, err = plan.Make(plan.Demand{RatePerS: 40_000, Peak: 3, SLO: level}, of(searched()))
	require.NoError(t, err)
	require.Nil(t, line(t, p.Lines, "store nodes").Value)
	require.Contains(t, shown(p, validity, "").Headline, "one Redis server cannot carry 120,000/s at the measured cost: at most 111,111/s by the CPU of its main thread (")
	require.Contains(t, p.Impossible, "a Redis Cluster may carry more: measure one")
	require.NoError(t, shown(p, validity, "").Check())

	low, _, err := plan.Make(plan.Demand{RatePerS: 500, Peak: 1, SLO: level}, of(searched()))
	require.NoError(t, err)
	require.True(t, line(t, low.Lines, "app CPU").Extrapolated)
	require.Contains(t, low.Because[0], "extrapolated: nothing was measured within 0.5 to 1.5 times the planned rate")
}

// onCluster is the search on a Redis Cluster of three masters, the busiest of which used half
// of a core for its commands at 8,000/s.
func onCluster() *result.CapacitySummary {
	c := searched()
	c.Run.Store.Settings = map[string]string{"masters": "3", "repl-backlog-size": "1000"}
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources.StoreMainCore = ptr(0.5 * m.Load.AchievedPerS / 8000)
	}
	return c
}

func TestMake_SizesAClusterFromACluster(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 2, SLO: level}, of(onCluster()))
	require.NoError(t, err)
	nodes := line(t, p.Lines, "store nodes")
	require.InDelta(t, 3, *nodes.Value, 0)
	require.False(t, nodes.Extrapolated)
	require.InEpsilon(t, 0.5, *line(t, p.Lines, "store main thread").Value, 1e-9)
	require.InEpsilon(t, 100.0/3, *line(t, p.Lines, "sagas waiting when a store node is lost").Value, 1e-9)
	require.InDelta(t, 3000, *line(t, p.Lines, "replication backlog").Value, 0)
	require.Contains(t, shown(p, validity, "").Headline, "1 app host and 3 store nodes (redis) for 4,000 sagas/s")

	p, validity, err = plan.Make(plan.Demand{RatePerS: 40_000, Peak: 1, SLO: level}, of(onCluster()))
	require.NoError(t, err)
	nodes = line(t, p.Lines, "store nodes")
	require.InDelta(t, 15, *nodes.Value, 0, "five times the rate that three held")
	require.True(t, nodes.Extrapolated)
	require.Contains(t, nodes.Caveat, "if each of 15 carries as much as each of 3 did, which was not measured")
	require.InEpsilon(t, 0.5, *line(t, p.Lines, "store main thread").Value, 1e-9, "each has as much as at the held rate")
	require.InEpsilon(t, 40_000*10e-6, *line(t, p.Lines, "store CPU").Value, 2e-2, "of all, at the cost of the held rate")
	require.Empty(t, p.Impossible)
	require.NoError(t, shown(p, validity, "").Check())

	needs := *line(t, p.Lines, "memory of the store").Value
	for machine, says := range map[float64]string{ // each master has one of its own
		needs / 10: "",
		needs / 20: "for each of 15 masters more than the ",
	} {
		c := onCluster()
		c.Environment.Memory = int64(machine)
		p, _, err = plan.Make(plan.Demand{RatePerS: 40_000, Peak: 1, SLO: level}, of(c))
		require.NoError(t, err)
		caveat := line(t, p.Lines, "memory of the store").Caveat
		require.Contains(t, caveat, says)
		require.Equal(t, says == "", caveat == "", caveat)
	}

	replicated := onCluster()
	replicated.Run.ID, replicated.Run.Store.Settings[result.KeyReplicas] = "replicated", "3"
	p, _, err = plan.Make(modest, of(replicated))
	require.NoError(t, err)
	for _, what := range []string{"store CPU", "store children", "written to disk"} {
		require.Equal(t, "masters and replicas together", line(t, p.Lines, what).Caveat)
	}
	_, _, err = plan.Make(modest, append(of(onCluster()), of(replicated)...))
	require.ErrorContains(t, err, "different numbers of replicas")

	one := searched()
	one.Run.ID = "one"
	_, _, err = plan.Make(modest, append(of(onCluster()), of(one)...))
	require.ErrorIs(t, err, plan.ErrNoPlan, "one server says nothing about a cluster")
}

// A slow moment far below the highest held rate changes nothing: what was held was held.
func TestMake_OneBadMomentChangesNothing(t *testing.T) {
	t.Parallel()
	for _, oneCore := range []bool{true, false} {
		good, bad := searched(), searched()
		bad.Capacity.Steps[0] = step(2000, 921, 400, 900, 1)
		overloaded := hold(2000, 921, 400, 900, 1)
		overloaded.Load.AchievedPerS = 500
		bad.Capacity.Steps = append(bad.Capacity.Steps, overloaded)
		for _, c := range []*result.CapacitySummary{good, bad} {
			for i := range c.Capacity.Steps {
				c.Capacity.Steps[i].Resources.StoreOneCore = oneCore
			}
		}
		want, _, err := plan.Make(modest, of(good))
		require.NoError(t, err)
		got, _, err := plan.Make(modest, of(bad))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestPlan_KeysAreStable(t *testing.T) {
	t.Parallel()
	p, _, err := plan.Make(plan.Demand{RatePerS: 3000, Peak: 2, SLO: level, Retention: ptr(time.Hour)}, of(searched()))
	require.NoError(t, err)
	p.Lines, p.Breaks = p.Lines[:1], ""
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"rate_per_s": 3000, "peak_per_s": 6000, "retention_s": 3600,
		"slo": {"latencies": [{"percentile": 99, "ms": 20}], "errors": 0.001},
		"from": ["20261121-083542-redis"],
		"store": {"driver": "redis", "version": "7.0.15", "settings": null, "durability": "D3", "retention_s": null},
		"held_per_s": 8000, "held_s": 60, "next_per_s": 9000, "impossible": "", "because": [],
		"lines": [{
			"what": "highest held rate", "value": 8000, "low": null, "high": null, "spans": "", "unit": "sagas/s",
			"basis": "it met the service level for 60.0 s (20261121-083542-redis); 9,000/s did not: p99 is 200 ms",
			"caveat": "", "extrapolated": false
		}],
		"breaks_first": ""
	}`, string(text))
}

func TestMake_JudgesTheHoldsAnewForAnotherServiceLevel(t *testing.T) {
	t.Parallel()
	at := func(ms float64) plan.Demand {
		return plan.Demand{RatePerS: 3000, Peak: 1, SLO: result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: ms}}, Errors: 0.001}}
	}
	c := searched()
	c.Capacity.Steps = append(c.Capacity.Steps, hold(5000, 45, 12, 9, 1))
	for ms, want := range map[float64][]float64{10: {5000, 8000}, 20: {8000, 9000}, 30: {8000, 9000}, 300: {9000, 0}} {
		p, validity, err := plan.Make(at(ms), of(c))
		require.NoError(t, err)
		require.InDelta(t, want[0], p.Held, 0, ms)
		if p.Next == nil {
			p.Next = new(float64)
		}
		require.InDelta(t, want[1], *p.Next, 0, ms)
		require.Equal(t, ms != 20, strings.Contains(strings.Join(validity.Warnings, "\n"), "another service level: a search was for p99 ≤ 20 ms"), ms)
		require.Equal(t, want[1] == 0, strings.Contains(strings.Join(validity.Warnings, "\n"), "no limit seen"), ms)
	}

	early := hold(8500, 40, 10, 25, 1)
	early.DurationS = 3
	c.Capacity.Steps = append(c.Capacity.Steps[:3:3], early, c.Capacity.Steps[4])
	c.Capacity.Steps[4].DurationS = 70 // it waited for its last answer; the others are whole holds all the same
	p, _, err := plan.Make(at(30), of(c))
	require.NoError(t, err)
	require.InDelta(t, 8000, p.Held, 0)
	require.Contains(t, line(t, p.Lines, "highest held rate").Basis, "8,500/s did not: its hold ended after 3.00 s")

	// Of several tries of one rate, what most did.
	again := hold(8000, 40, 10, 40, 1)
	c.Capacity.Steps = append(c.Capacity.Steps, again, again)
	p, _, err = plan.Make(at(30), of(c))
	require.NoError(t, err)
	require.InDelta(t, 5000, p.Held, 0)

	// Arrivals are random: what counts is the rate that was to be offered.
	for i, offered := range []float64{7800, 8200} {
		l := &c.Capacity.Steps[4+i].Load
		l.OfferedPerS, l.AchievedPerS = ptr(offered), offered
	}
	p, _, err = plan.Make(at(30), of(c))
	require.NoError(t, err)
	require.InDelta(t, 5000, p.Held, 0)

	c.Capacity.Held, c.Capacity.CannotTell = nil, "the load generator was late at every rate"
	_, _, err = plan.Make(at(20), of(c))
	require.ErrorContains(t, err, "no rate was held at p99 ≤ 20 ms: the search cannot tell: the load generator was late at every rate")
	c.Capacity.CannotTell = ""
	_, _, err = plan.Make(at(20), of(c))
	require.ErrorContains(t, err, "no rate was held at p99 ≤ 20 ms: the search did not end")
}

func TestMake_IntervalsSayWhatTheySpan(t *testing.T) {
	t.Parallel()
	p, _, err := plan.Make(modest, of(searched()))
	require.NoError(t, err)
	require.Nil(t, line(t, p.Lines, "app CPU").Low, "three measurements near 6,000/s")

	c := searched()
	c.Capacity.Steps = append(c.Capacity.Steps, step(8000, 44, 10, 18, 1), step(8000, 36, 10, 18, 1))
	p, validity, err := plan.Make(modest, of(c))
	require.NoError(t, err)
	cpu := line(t, p.Lines, "app CPU")
	require.Equal(t, "within this search", cpu.Spans)
	require.Less(t, *cpu.Low, *cpu.Value)
	require.Less(t, *cpu.Value, *cpu.High)
	require.Equal(t, []string{"From and to are the lowest and the highest measured, within this search."}, shown(p, validity, "").Parts[0].Text)

	one := func(perS float64) result.Search {
		return result.Search{Held: &result.Held{RatePerS: perS, DurationS: 60}}
	}
	c = searched()
	c.Capacity.Searches = []result.Search{one(8400), {}, one(8000)}
	p, _, err = plan.Make(modest, of(c))
	require.NoError(t, err)
	rate := line(t, p.Lines, "highest held rate")
	require.Equal(t, []float64{0, 8400}, []float64{*rate.Low, *rate.High}, "one held none")
	require.Equal(t, "between 3 searches", rate.Spans)
	require.Nil(t, line(t, p.Lines, "app hosts").High, "no number of hosts follows from 0")

	other, third := searchedAs("other", 1.1), searchedAs("third", 0.9)
	other.Capacity.Held.RatePerS, third.Capacity.Held.RatePerS = 8400, 7000
	p, _, err = plan.Make(modest, append(of(searched()), append(of(other), of(third)...)...))
	require.NoError(t, err)
	require.InDelta(t, 8000, p.Held, 0)
	rate = line(t, p.Lines, "highest held rate")
	require.Equal(t, []float64{7000, 8400}, []float64{*rate.Low, *rate.High})
	cpu = line(t, p.Lines, "app CPU")
	for _, l := range []plan.Line{rate, cpu} {
		require.Equal(t, "between 3 searches", l.Spans)
	}
	require.InEpsilon(t, 0.9, *cpu.Low / *cpu.Value, 1e-9)
	require.InEpsilon(t, 1.1, *cpu.High / *cpu.Value, 1e-9)
}

// sql is the search on a MySQL.
func sql() *result.CapacitySummary {
	c := searched()
	c.Run.Store = result.Store{Driver: "mysql", Durability: "D2"}
	for i := range c.Capacity.Steps {
		c.Capacity.Steps[i].Resources.StoreOneCore = false
		c.Capacity.Steps[i].CostPerSaga.StoreFsyncs = ptr(0.1)
	}
	return c
}

func TestMake_GivesSQLOnePrimary(t *testing.T) {
	t.Parallel()
	c := sql()
	c.Environment.StoreDisk = &result.StoreDisk{FileSystem: "ext4", Device: "vda1", FsyncP50MS: ptr(0.8), FsyncP99MS: ptr(3.0), FsyncMaxMS: ptr(9.0)}
	small, validity, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 2, SLO: level}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 1, *line(t, small.Lines, "store cores").Value, 0) // 8,000 × 10 µs
	synced := line(t, small.Lines, "store fsyncs")
	require.InDelta(t, 800, *synced.Value, 1e-9)
	require.Contains(t, synced.Basis, "on ext4 on vda1, 4 KiB fsynced in 0.800 ms, p99 3.00 ms")
	require.Contains(t, validity.Warnings, "durability: the store was measured at D2: about the last second at risk")

	large, validity, err := plan.Make(plan.Demand{RatePerS: 250_000, Peak: 2, SLO: level}, of(c))
	require.NoError(t, err)
	cores := line(t, large.Lines, "store cores")
	require.InDelta(t, 5, *cores.Value, 0) // 500,000 × 9 µs are 4.5, at most 90% busy
	require.True(t, cores.Extrapolated)
	require.InDelta(t, 1, *line(t, large.Lines, "store nodes").Value, 0)
	require.Contains(t, shown(large, validity, "").Headline, "; extrapolated: the store was measured to hold 8,000/s")
}

// Each server of a pair needs the cores of the one that does more, the primary.
func TestMake_GivesAServerWithAReplicaTheCoresOfOne(t *testing.T) {
	t.Parallel()
	c := sql()
	c.Run.Store.Settings = map[string]string{result.KeyReplica: "started with the server"}
	for i := range c.Capacity.Steps {
		r := &c.Capacity.Steps[i].Resources
		r.StorePrimaryCores = ptr(*r.StoreCores / 2)
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 250_000, Peak: 2, SLO: level}, of(c))
	require.NoError(t, err)
	require.InDelta(t, 3, *line(t, p.Lines, "store cores").Value, 0) // half of 4.5, at most 90% busy
	used := line(t, p.Lines, "store CPU")
	require.InEpsilon(t, 4.5, *used.Value, 1e-9)
	for _, l := range []plan.Line{used, line(t, p.Lines, "store fsyncs"), line(t, p.Lines, "written to disk")} {
		require.Equal(t, "primary and replica together", l.Caveat)
	}
	require.Contains(t, shown(p, validity, "").Headline, "1 store node (mysql) with a replica for 250,000 sagas/s")

	alone := sql()
	alone.Run.ID = "another"
	_, _, err = plan.Make(plan.Demand{RatePerS: 1, Peak: 1, SLO: level}, append(of(c), of(alone)...))
	require.ErrorContains(t, err, "different numbers of servers: one has a replica")
}

// Of machines of their own the app's CPU is known from /metrics, and a remote SQL server's
// is not.
func TestMake_OnMachinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := sql()
	c.Run.SharedHost, c.Run.AppHosts, c.Environment.Cores = false, 2, 64
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources = result.Resources{AppCores: ptr(m.Load.AchievedPerS * *m.CostPerSaga.AppCPUUS / 1e6), AppCoresUsable: ptr(8.0)}
		m.CostPerSaga.StoreCPUUS = nil
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 6000, Peak: 2, SLO: level}, of(c))
	require.NoError(t, err)
	hosts := line(t, p.Lines, "app hosts")
	require.InDelta(t, 3, *hosts.Value, 0)
	require.Equal(t, "hosts of 4 cores", hosts.Unit, "not those of the load generator's machine")
	require.Contains(t, line(t, p.Lines, "store nodes").Basis, "one held 8,000/s (20261121-083542-redis, 2 app hosts), and the peak is 150% of that")
	cores := line(t, p.Lines, "store cores")
	require.Nil(t, cores.Value)
	require.Equal(t, "the CPU of a server on another machine is not seen from here", cores.Caveat)
	require.NoError(t, shown(p, validity, "").Check())
}

func TestMake_CountsEmbeddedHostsByWhatOneHeld(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.Store = result.Store{Driver: "pebble", Durability: "D3"}
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources.StoreOneCore = false
		m.CostPerSaga.StoreCPUUS, m.CostPerSaga.StoreMemoryBytes = nil, nil
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 35_000, Peak: 1, SLO: level, Retention: ptr(time.Hour)}, of(c))
	require.NoError(t, err)
	hosts := line(t, p.Lines, "app hosts")
	require.InDelta(t, 5, *hosts.Value, 0)
	require.Zero(t, *line(t, p.Lines, "store nodes").Value)
	require.Nil(t, line(t, p.Lines, "held by finished sagas").Value)
	require.InEpsilon(t, 100*(40_000.0/35_000-1), *line(t, p.Lines, "headroom of the app hosts").Value, 1e-9)
	require.Contains(t, p.Breaks, "the 4 left would have 109% of the load that is known to meet it")
	require.Empty(t, p.Because, "each is planned for 7,000/s")
	require.Equal(t, "5 app hosts, each with its own store (pebble) for 35,000 sagas/s, with p99 ≤ 20 ms", shown(p, validity, "").Headline)

	p, _, err = plan.Make(plan.Demand{RatePerS: 1000, Peak: 1, SLO: level}, of(c))
	require.NoError(t, err)
	require.Contains(t, p.Breaks, "there is one, and nothing is accepted")
}

func TestMake_LeavesOpenWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	c := searched()
	c.Run.SharedHost = false
	for i := range c.Capacity.Steps {
		m := &c.Capacity.Steps[i]
		m.Resources, m.CostPerSaga = result.Resources{}, result.Cost{}
	}
	p, validity, err := plan.Make(plan.Demand{RatePerS: 4000, Peak: 2, SLO: level, Retention: ptr(time.Hour)}, of(c))
	require.NoError(t, err)
	for _, what := range []string{"app CPU", "store cores", "store CPU", "held by unfinished sagas", "held by finished sagas", "written to disk", "network to the store"} {
		require.Nil(t, line(t, p.Lines, what).Value, what)
	}
	require.InDelta(t, 1, *line(t, p.Lines, "app hosts").Value, 0, "as many as held it")
	require.NoError(t, shown(p, validity, "").Check())
	_, err = json.Marshal(p)
	require.NoError(t, err)
}

func TestMake_RefusesWhatCarriesNoPlan(t *testing.T) {
	t.Parallel()
	good := plan.Demand{RatePerS: 4000, Peak: 2, SLO: level}
	goal := func(p, ms float64) plan.Demand {
		return plan.Demand{RatePerS: 4000, Peak: 2, SLO: result.SLO{Latencies: []result.LatencyGoal{{Percentile: p, MS: ms}}}}
	}
	changed := func(change func(*result.CapacitySummary)) []result.Result {
		c := searched()
		change(c)
		return of(c)
	}
	for name, test := range map[string]struct {
		demand  plan.Demand
		results []result.Result
		want    string
	}{
		"no rate":  {plan.Demand{Peak: 1, SLO: level}, of(searched()), "it takes a rate above 0"},
		"no peak":  {plan.Demand{RatePerS: 1, SLO: level}, of(searched()), "a peak of at least 1"},
		"no end":   {plan.Demand{RatePerS: 1e300, Peak: 1e300, SLO: level}, of(searched()), "a peak of +Inf sagas/s, at most 1e+12"},
		"no goal":  {plan.Demand{RatePerS: 1, Peak: 1}, of(searched()), "a latency to meet"},
		"nothing":  {good, nil, "nothing was measured in an open loop"},
		"p99.999":  {goal(99.999, 20), of(searched()), "p99.999 is not measured"},
		"too fast": {goal(99, 1), of(searched()), "no rate was held at p99 ≤ 1 ms: not even 8,000/s (p99 is 18.0 ms)"},
		"unjudged": {goal(99.9, 100), of(searched()), "no rate was held at p99.9 ≤ 100 ms: not even 8,000/s (too few requests for p99.9: 80,000)"},
		"closed loop": {good, []result.Result{{Run: &result.Summary{
			Envelope: result.Envelope{
				Validity: result.Validity{Valid: true},
			},
			Measurement: result.Measurement{
				Load: result.Load{Mode: result.Closed, AchievedPerS: 10_000},
			},
		}}}, "nothing was measured in an open loop"},
		"cannot tell": {good, changed(func(c *result.CapacitySummary) {
			c.Capacity.Search, c.Capacity.Steps = result.Search{CannotTell: "the machine is too uneven"}, nil
		}), "no plan: the search cannot tell: the machine is too uneven"},
		"unlike": {good, append(of(searched()), changed(func(c *result.CapacitySummary) {
			c.Run.ID, c.Run.Store.Durability = "other", "D2"
		})...), "results 20261121-083542-redis and other have different durability classes"},
	} {
		_, _, err := plan.Make(test.demand, test.results)
		require.ErrorIs(t, err, plan.ErrNoPlan, name)
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestPredict_IsTheCostNearTheRate(t *testing.T) {
	t.Parallel()
	lines, err := plan.Predict(3000, of(searched()))
	require.NoError(t, err)
	// What is used per second is on a straight line: 0.12 cores at 2,000/s, 0.2 at 4,000.
	for what, want := range map[string]float64{"load CPU": 3000 * 16e-6, "app CPU": 0.16, "store CPU": 0.05} {
		l := line(t, lines, what)
		require.InEpsilon(t, want, *l.Value, 1e-9, what)
		require.False(t, l.Extrapolated)
	}
	require.Nil(t, line(t, lines, "store fsyncs").Value)
	require.Nil(t, line(t, lines, "written to disk").Value)

	for _, perS := range []float64{1400, 20_000} {
		lines, err = plan.Predict(perS, of(searched()))
		require.NoError(t, err)
		for _, l := range lines[:3] {
			require.Equal(t, perS > 1500, l.Extrapolated, perS)
			require.Nil(t, l.Low)
		}
	}
	_, err = plan.Predict(0, of(searched()))
	require.ErrorIs(t, err, plan.ErrNoPlan)
}

// shown is the plan as bench plan shows it.
func shown(p plan.Plan, v result.Validity, command string) document.Document {
	return report.Plan(plan.Result{Envelope: result.Envelope{Run: result.Run{Command: command}, Validity: v}, Plan: p})
}
