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

var metrics = []metric{
	{"achieved_per_s", "achieved rate", "/s", true, false, func(s result.Summary) *float64 { return &s.Load.AchievedPerS }},
	{"store_cpu_us", "store CPU per saga", "µs", false, true, func(s result.Summary) *float64 { return s.CostPerSaga.StoreCPUUS }},
	{"app_cpu_us", "app CPU per saga", "µs", false, true, func(s result.Summary) *float64 { return s.CostPerSaga.AppCPUUS }},
	{"load_cpu_us", "load CPU per saga", "µs", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.LoadCPUUS }},
	{"store_cpu_to_load", "store CPU, for each of the load's", "", false, false, toLoad(func(c result.Cost) *float64 { return c.StoreCPUUS })},
	{"app_cpu_to_load", "app CPU, for each of the load's", "", false, false, toLoad(func(c result.Cost) *float64 { return c.AppCPUUS })},
	{"p50_ms", "p50", "ms", false, false, latency(func(l result.Latency) *float64 { return l.P50 })},
	{"p99_ms", "p99", "ms", false, false, latency(func(l result.Latency) *float64 { return l.P99 })},
	{"p999_ms", "p99.9", "ms", false, false, latency(func(l result.Latency) *float64 { return l.P999 })},
	{"store_bytes_in", "to the store per saga", "bytes", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.StoreBytesIn }},
	{"store_bytes_out", "from the store per saga", "bytes", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.StoreBytesOut }},
	{"store_round_trips", "store round trips per saga", "", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.StoreRoundTrips }},
	{"store_fsyncs", "store fsyncs per saga", "", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.StoreFsyncs }},
	{"store_memory_bytes", "kept in the store per saga", "bytes", false, false, func(s result.Summary) *float64 { return s.CostPerSaga.StoreMemoryBytes }},
}

// toLoad is a CPU time per saga divided by the load generator's. That does the same
// work for either side, so on a host whose speed changes from run to run this holds
// several times better than the time itself.
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
	m := Metric{Metric: d.key, ARuns: d.runs(a), BRuns: d.runs(b)}
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
