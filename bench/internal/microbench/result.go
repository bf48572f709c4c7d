package microbench

import (
	"context"
	"fmt"
	"maps"
	"net"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// Summary is summary.json of bench lua.
type Summary struct {
	result.Envelope         // without a check: no sagas were run
	Lua             Servers `json:"lua"`
}

// Servers holds one result for each server.
type Servers struct {
	Servers []Result `json:"servers"`
}

// summarize puts the summary together. incomplete says why the measurement ended early;
// nil: it did not.
func summarize(ctx context.Context, cfg Config, started time.Time, servers []Result, incomplete error) Summary {
	first := servers[0]
	s := Summary{Lua: Servers{servers}, Envelope: result.Envelope{
		Schema: result.Schema, Kind: result.KindLua,
		Run: result.Run{
			ID: cfg.ID, Started: started, DurationS: time.Since(started).Seconds(), Command: cfg.Command,
			Store:    result.Store{Driver: "redis", Version: first.Server.Version, Settings: first.Server.Settings},
			Scenario: result.Scenario{Steps: base.Steps},
			Topology: "caller and Redis on two machines", SharedHost: first.sharedHost, Commit: environment.Commit(ctx),
		},
		Validity:    result.Validity{Valid: incomplete == nil},
		Environment: environment.Describe(ctx),
	}}
	v := &s.Validity
	if incomplete != nil {
		v.Because = append(v.Because, "it is incomplete: "+incomplete.Error())
	}
	if first.sharedHost {
		s.Run.Topology = "caller and Redis on one machine"
		v.Notes = append(v.Notes, "shared host: the caller and Redis share a machine; its speed limits the calls per second, but hardly the CPU per call")
	}
	for _, one := range servers {
		v.Include(one.Label(), result.Validity{Valid: true, Warnings: one.Warnings})
	}
	return s
}

// Price is what one call costs.
type Price struct {
	Key
	CPUUS     Estimate          `json:"cpu_us"`      // of the server, all threads
	CoreUS    float64           `json:"core_us"`     // of the main thread, where the server reports it
	PerSagaUS float64           `json:"per_saga_us"` // CPUUS divided by the sagas per call
	CallsPerS Estimate          `json:"calls_per_s"`
	BytesIn   float64           `json:"bytes_in"` // to the server
	BytesOut  float64           `json:"bytes_out"`
	Inside    map[string]Inside `json:"inside"` // commands of one call, by INFO commandstats
}

// Method says how it was measured.
type Method struct {
	Rounds        int     `json:"rounds"`
	WindowMS      float64 `json:"window_ms"`
	DueIndexes    []int   `json:"due_indexes"`
	FinishedSagas int     `json:"finished_sagas_kept"`
	PollUS        float64 `json:"poll_us"` // CPU of asking for the server's CPU once; subtracted from every price
}

// Result is what was measured on one server.
type Result struct {
	Server      Server       `json:"server"`
	Method      Method       `json:"method"`
	Prices      []Price      `json:"prices"`
	Breakdowns  []Breakdown  `json:"splits"`
	Ceilings    []Ceiling    `json:"ceilings"`
	Baselines   []Baseline   `json:"classic"`
	Comparisons []Comparison `json:"comparisons"`
	NotMeasured []string     `json:"not_measured"` // what, and why
	Warnings    []string     `json:"warnings"`

	sharedHost bool // with the caller
}

// result returns what was measured so far. Lists without entries are empty, not nil.
func (b *bench) result() Result {
	r := Result{
		Server: b.server,
		Method: Method{
			Rounds: b.rounds, WindowMS: float64(b.cfg.Window) / float64(time.Millisecond),
			DueIndexes: b.cfg.DueIndexes, FinishedSagas: b.cfg.FinishedSagas, PollUS: b.pollUS,
		},
		Prices: []Price{}, Breakdowns: b.breakdowns(), Ceilings: b.ceilings(), Comparisons: b.comparisons(),
		NotMeasured: append([]string{}, b.notes...),
	}
	r.Baselines = b.baselines(r.Ceilings)
	for _, c := range b.cases {
		if c.measured() {
			r.Prices = append(r.Prices, c.price())
		}
	}
	r.Warnings = r.warnings()
	local, remote := b.conns[0].LocalAddr(), b.conns[0].RemoteAddr()
	r.sharedHost = local.Network() == "unix" || hostOf(local) == hostOf(remote)
	return r
}

func hostOf(address net.Addr) string {
	host, _, _ := net.SplitHostPort(address.String())
	return host
}

func (c *callCase) price() Price {
	cpu := c.estimate(sample.cpuPerCall)
	return Price{
		Key: c.Key, CPUUS: cpu, CoreUS: c.median(sample.corePerCall), PerSagaUS: cpu.Median / float64(c.Sagas),
		CallsPerS: c.estimate(sample.callsPerS), BytesIn: c.median(sample.inPerCall), BytesOut: c.median(sample.outPerCall),
		Inside: c.inside(),
	}
}

// inside returns the commands of one call.
func (c *callCase) inside() map[string]Inside {
	all := map[string]Inside{}
	for _, s := range c.samples {
		maps.Copy(all, s.inside)
	}
	for command := range all {
		all[command] = Inside{
			Calls: c.median(func(s sample) float64 { return s.inside[command].Calls / s.calls }),
			US:    c.median(func(s sample) float64 { return s.inside[command].US / s.calls }),
		}
	}
	return all
}

// warnings say what to know before a price is quoted.
func (r Result) warnings() []string {
	const wideSpread = 0.10 // of the interval of the typical price
	all := []string{}
	if n := r.Method.Rounds; n > 0 && n < minRounds {
		all = append(all, fmt.Sprintf("few rounds: %d; an interval, and so a breakdown by cause, needs %d", n, minRounds))
	}
	if spread := r.spread(); spread > wideSpread {
		all = append(all, fmt.Sprintf("noise: the interval of the typical price is %.0f%% wide, which means that the machine was busy", 100*spread))
	}
	return all
}

// spread returns the median of the prices' relative interval widths, or 0.
func (r Result) spread() float64 {
	var spreads []float64
	for _, p := range r.Prices {
		spreads = append(spreads, p.CPUUS.Spread())
	}
	if len(spreads) == 0 {
		return 0
	}
	return stats.Median(spreads)
}
