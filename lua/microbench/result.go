package microbench

import (
	"fmt"
	"time"
)

// Price is what one call costs.
type Price struct {
	Key
	CPUUS     Figure            `json:"cpu_us"`      // of the server, all threads
	CoreUS    float64           `json:"core_us"`     // of the thread that runs commands, where the server tells it apart
	PerSagaUS float64           `json:"per_saga_us"` // CPUUS divided by the sagas of a call
	CallsPerS Figure            `json:"calls_per_s"`
	BytesIn   float64           `json:"bytes_in"` // to the server
	BytesOut  float64           `json:"bytes_out"`
	Inside    map[string]Inside `json:"inside"` // commands, by INFO commandstats, of one call
}

// Method says how it was measured.
type Method struct {
	Rounds   int     `json:"rounds"`
	WindowMS float64 `json:"window_ms"`
	Due      []int   `json:"due_indexes"`
	Finished int     `json:"finished_sagas_kept"`
	Brief    bool    `json:"brief"` // only the scripts of a saga, in a few shapes
	Self
}

// Result is what one server showed.
type Result struct {
	Server      Server       `json:"server"`
	Method      Method       `json:"method"`
	Prices      []Price      `json:"prices"`
	Splits      []Split      `json:"splits"`
	Ceilings    []Ceiling    `json:"ceilings"`
	Classic     []Classic    `json:"classic"`
	Records     []Record     `json:"records"`
	Agreements  []Agreement  `json:"agreements"`
	Comparisons []Comparison `json:"comparisons"`
	NotMeasured []string     `json:"not_measured"` // what, and why
	Warnings    []string     `json:"warnings"`
}

// Result gives what was measured so far.
func (b *Bench) Result() Result {
	r := Result{
		Server: b.server,
		Method: Method{
			Rounds: b.rounds, WindowMS: float64(b.cfg.Window) / float64(time.Millisecond),
			Due: b.cfg.Due, Finished: b.cfg.Finished, Brief: b.cfg.Brief, Self: b.self,
		},
		Splits: b.splits(), Ceilings: b.ceilings(), Records: b.records,
		Agreements: b.agreements, Comparisons: b.comparisons(), NotMeasured: b.notes,
	}
	r.Classic = b.classic(r.Ceilings)
	for _, c := range b.cells {
		if len(c.samples) > 0 {
			r.Prices = append(r.Prices, c.price())
		}
	}
	r.Warnings = b.warnings(r)
	r.fillEmpty()
	return r
}

// fillEmpty makes lists without entries empty rather than null.
func (r *Result) fillEmpty() {
	orEmpty(&r.Prices)
	orEmpty(&r.Splits)
	orEmpty(&r.Ceilings)
	orEmpty(&r.Classic)
	orEmpty(&r.Records)
	orEmpty(&r.Agreements)
	orEmpty(&r.Comparisons)
	orEmpty(&r.NotMeasured)
	orEmpty(&r.Warnings)
}

func orEmpty[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func (c *cell) price() Price {
	p := Price{
		Key: c.Key, CPUUS: *c.figure(sample.cpuPerCall), CoreUS: c.median(sample.coreCall), CallsPerS: *c.figure(sample.callsPerS),
		BytesIn: c.median(sample.inPerCall), BytesOut: c.median(sample.outPerCall), Inside: map[string]Inside{},
	}
	p.PerSagaUS = p.CPUUS.Median / c.Sagas
	for _, command := range c.commandsInside() {
		p.Inside[command] = Inside{
			Calls: c.median(func(s sample) float64 { return s.inside[command].Calls / s.calls }),
			US:    c.median(func(s sample) float64 { return s.inside[command].US / s.calls }),
		}
	}
	return p
}

// The thresholds of warnings.
const (
	wideSpread   = 0.10 // of the interval, of the typical probe
	foreignShare = 0.01 // of the bytes that the server got
	coarseShare  = 0.01 // of a window
	idleShare    = 0.02 // of a core
	usPerS       = 1e6
)

// warnings say what to know before a figure is quoted.
func (b *Bench) warnings(r Result) []string {
	var all []string
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if b.rounds > 0 && b.rounds < least {
		warn("few rounds: %d, and an interval needs %d", b.rounds, least)
	}
	if spread := r.spread(); spread != nil && spread.Median > wideSpread {
		warn("noise: only half of the figures are known to within %.0f%%, which a busy machine does", 100*spread.Median)
	}
	if foreign, all := b.foreign(); foreign > foreignShare*all {
		warn("others: %.1f%% of the bytes that the server got were not ours, and what it did with them is in the figures", 100*foreign/all)
	}
	if window := float64(b.cfg.Window) / float64(time.Microsecond); b.self.ResolutionUS > coarseShare*window {
		warn("coarse clock: the server's CPU was seen to grow by no less than %.0f µs, and a window has %.0f", b.self.ResolutionUS, window)
	}
	if share := b.self.IdleUS / usPerS; share > idleShare {
		warn("the server is not idle by itself: %.1f%% of a core", 100*share)
	}
	var toRun []float64
	for _, a := range r.Agreements {
		toRun = append(toRun, a.Ratio)
	}
	if ratio := figureOf(toRun); ratio != nil && (ratio.Median > 1+Agreeing || ratio.Median < 1-Agreeing) {
		warn("sum and run differ: the scripts add up to %.2f of what a run of sagas took (median of %d); mostly because something else keeps the machine busy", ratio.Median, ratio.N)
	}
	return all
}

// spread is that of the probes' intervals, as shares of their medians.
func (r Result) spread() *Figure {
	var spreads []float64
	for _, p := range r.Prices {
		spreads = append(spreads, p.CPUUS.Spread())
	}
	return figureOf(spreads)
}

// foreign is how many bytes the server got from others while it was measured, and
// how many in all.
func (b *Bench) foreign() (foreign, all float64) {
	for _, c := range b.cells {
		for _, s := range c.samples {
			foreign += max(0, s.foreign)
			all += max(0, s.foreign) + s.in
		}
	}
	return foreign, all
}
