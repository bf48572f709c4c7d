package compare

import (
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// metric is a figure of a run that two sides are compared by.
type metric struct {
	key, name, unit string
	higherIsBetter  bool
	main            bool // quoted, and steady from run to run
	of              func(result.Summary) *float64
}

// metrics are the achieved rate, every cost of a saga, and the percentiles that a
// comparison has the samples for.
var metrics = func() []metric {
	list := []metric{{"achieved_per_s", "achieved rate", "/s", true, false, func(s result.Summary) *float64 { return &s.Load.AchievedPerS }}}
	cost := func(f result.Field[result.Cost], main bool) {
		list = append(list, metric{f.Key, f.Label + " per saga", f.Unit, false, main, func(s result.Summary) *float64 { return f.Of(s.CostPerSaga) }})
	}
	for _, f := range result.CPUFields {
		cost(f, f.Short != "load")
	}
	for _, f := range result.CPUFields {
		if f.Short != "load" {
			list = append(list, metric{f.Short + "_cpu_to_load", f.Label + " divided by load CPU", "", false, false, toLoad(f.Of)})
		}
	}
	for _, f := range result.LatencyFields {
		switch f.Percentile {
		case 50, 99, 99.9:
			list = append(list, metric{f.Key + "_ms", f.Label, "ms", false, false, latency(f.Of)})
		}
	}
	for _, f := range result.CostFields {
		if !f.IsCPU() {
			cost(f, false)
		}
	}
	return list
}()

// toLoad divides a CPU time per saga by that of the load generator, which does the same
// work for either side. On a host whose speed changes from run to run the quotient varies
// several times less than the time itself.
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

// latency is from the due time. That of an overloaded run depends on how long it went
// on, and is not compared.
func latency(of func(result.Latency) *float64) func(result.Summary) *float64 {
	return func(s result.Summary) *float64 {
		if s.Load.Overloaded() {
			return nil
		}
		return of(s.LatencyMS)
	}
}

// values are the runs' and their medians.
func (d metric) values(a, b Side) Metric {
	m := Metric{Metric: d.key, Name: d.name, Unit: d.unit, ARuns: d.runs(a), BRuns: d.runs(b)}
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

func (d metric) runs(s Side) []float64 {
	xs := []float64{}
	for _, r := range s.Runs {
		if x := d.of(r); x != nil {
			xs = append(xs, *x)
		}
	}
	return xs
}

func find(key string) (metric, bool) {
	for _, m := range metrics {
		if m.key == key {
			return m, true
		}
	}
	return metric{}, false
}
