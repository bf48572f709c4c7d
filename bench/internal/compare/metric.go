package compare

import (
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// Figure is a figure of a run that is compared.
type Figure struct {
	Key, Name, Unit string
	HigherIsBetter  bool
	main            bool // varies least from run to run
	Of              func(result.Summary) *float64
}

// Figures are the achieved rate, each cost of a saga, and the percentiles for which a run
// has enough samples.
var Figures = func() []Figure {
	list := []Figure{{"achieved_per_s", "achieved rate", "/s", true, false, func(s result.Summary) *float64 { return &s.Load.AchievedPerS }}}
	cost := func(f result.Field[result.Cost], main bool) {
		list = append(list, Figure{f.Key, f.Label + " per saga", f.Unit, false, main, func(s result.Summary) *float64 { return f.Of(s.CostPerSaga) }})
	}
	for _, f := range result.CPUFields {
		cost(f, f.Short != "load")
	}
	for _, f := range result.CPUFields {
		if f.Short != "load" {
			list = append(list, Figure{f.Short + "_cpu_to_load", f.Label + " divided by load CPU", "", false, false, toLoad(f.Of)})
		}
	}
	for _, f := range result.LatencyFields {
		switch f.Percentile {
		case 50, 99, 99.9:
			list = append(list, Figure{f.Key + "_ms", f.Label, "ms", false, false, latency(f.Of)})
		}
	}
	for _, f := range result.CostFields {
		if !f.IsCPU() {
			cost(f, false)
		}
	}
	return list
}()

// figuresOf returns Figures. Beside a cluster, one server is compared with its busiest master.
func figuresOf(a, b Side) []Figure {
	list := slices.Clone(Figures)
	if a.Runs[0].Run.Store.Masters() == 0 && b.Runs[0].Run.Store.Masters() == 0 {
		return list
	}
	for i := range list {
		if list[i].Key == KeyBusiest {
			list[i].Of = func(s result.Summary) *float64 { return s.CostPerSaga.OfBusiest(s.Run.Store) }
		}
	}
	return list
}

// KeyBusiest is the figure that only a cluster has.
const KeyBusiest = "store_busiest_cpu_us"

// toLoad divides a CPU time per saga by that of the load generator, which does the same
// work for both sides. On a host whose speed changes between runs, the quotient varies
// much less than the time itself.
func toLoad(of func(result.Cost) *float64) func(result.Summary) *float64 {
	return func(s result.Summary) *float64 {
		cpu, load := of(s.CostPerSaga), s.CostPerSaga.LoadCPUUS
		if cpu == nil || load == nil || *load <= 0 {
			return nil
		}
		x := *cpu / *load
		return &x
	}
}

// latency returns a latency from the due time, or nil if the run was overloaded: the
// latency then grows with the length of the run.
func latency(of func(result.Latency) *float64) func(result.Summary) *float64 {
	return func(s result.Summary) *float64 {
		if s.Load.Overloaded() {
			return nil
		}
		return of(s.LatencyMS)
	}
}

// values returns the values of the runs and their medians.
func (d Figure) values(a, b Side) Metric {
	m := Metric{Metric: d.Key, Name: d.Name, Unit: d.Unit, ARuns: d.runs(a), BRuns: d.runs(b)}
	median := func(s Side, xs []float64) *float64 {
		if len(xs) < len(s.Runs) {
			return nil
		}
		x := stats.Median(xs)
		return &x
	}
	m.A, m.B = median(a, m.ARuns), median(b, m.BRuns)
	return m
}

func (d Figure) runs(s Side) []float64 {
	xs := []float64{}
	for _, r := range s.Runs {
		if x := d.Of(r); x != nil {
			xs = append(xs, *x)
		}
	}
	return xs
}
