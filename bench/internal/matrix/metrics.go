package matrix

import (
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

// Metric is a figure of a run.
type Metric struct {
	result.MatrixMetric
	// Ranked metrics are those by which variants are called better. The more there are,
	// the clearer a difference must be.
	Ranked bool
}

// Metrics lists the figures of each measure, the most important first.
var Metrics = map[Measure][]Metric{
	MeasureSaga: append([]Metric{
		plain("slo_met", "service level met", "yes", ""),
	}, ofSaga...),
	MeasureCapacity: {
		ranked("held_per_s", "highest rate held", "/s", result.Higher),
		plain("next_per_s", "next rate (not held)", "/s", ""),
		plain("held_p99_ms", "p99 at the held rate", "ms", result.Lower),
		plain("held_cpu_us", "CPU per saga at the held rate", "µs", result.Lower),
		plain("app_hosts", "app hosts for the asked rate", "", result.Lower),
		plain("store_nodes", "store nodes for the asked rate", "", result.Lower),
	},
	MeasureOperation: {
		ranked("ops_per_s", "operations", "/s", result.Higher),
		detail("requests_per_s", "requests", "/s", result.Higher),
		ranked("p50_ms", "p50 of a request", "ms", result.Lower),
		plain("p95_ms", "p95", "ms", result.Lower),
		ranked("p99_ms", "p99", "ms", result.Lower),
		plain("max_ms", "max", "ms", result.Lower),
		detail("mean_ms", "mean", "ms", result.Lower),
		ranked("server_cpu_us", "server CPU per operation", "µs", result.Lower),
		plain("busiest_cpu_us", "server CPU on the busiest node", "µs", result.Lower),
		plain("main_core", "core of the server's main thread", "share", ""),
		ranked("client_cpu_us", "client CPU per operation", "µs", result.Lower),
		plain("client_allocs", "allocations per operation", "", result.Lower),
		detail("client_alloc_bytes", "allocated per operation", "bytes", result.Lower),
		plain("round_trips", "round trips per operation", "", result.Lower),
		plain("bytes_sent", "bytes sent per operation", "bytes", result.Lower),
		plain("bytes_received", "bytes received per operation", "bytes", result.Lower),
		plain("server_bytes_written", "written to disk per operation", "bytes", result.Lower),
		detail("server_rss_bytes", "memory of the servers", "bytes", result.Lower),
	},
	MeasureCrash: {
		plain("acknowledged", "sagas acknowledged", "", ""),
		plain("lost", "sagas lost", "", result.Lower),
		plain("window_ms", "loss window", "ms", result.Lower),
	},
}

func ranked(key, label, unit, better string) Metric {
	m := plain(key, label, unit, better)
	m.Ranked = true
	return m
}

// detail is a metric that only the whole report shows.
func detail(key, label, unit, better string) Metric {
	m := plain(key, label, unit, better)
	m.Detail = true
	return m
}

func plain(key, label, unit, better string) Metric {
	return Metric{MatrixMetric: result.MatrixMetric{Key: key, Label: label, Unit: unit, Better: better}}
}

// sagaFigure is a metric of bench run.
type sagaFigure struct {
	Metric
	of func(result.Summary) *float64
}

// sagaFigures are those of bench compare, and what only a table shows.
var sagaFigures = func() (list []sagaFigure) {
	rank := map[string]bool{"achieved_per_s": true, "p99_ms": true, "store_cpu_us": true, "store_bytes_written": true}
	shown := map[string]bool{"app_cpu_us": true, compare.KeyBusiest: true, "store_fsyncs": true, "store_memory_bytes": true}
	for _, f := range compare.Figures {
		if f.Key == "load_cpu_us" || strings.HasSuffix(f.Key, "_to_load") {
			continue // they show the load generator
		}
		if f.Key == "store_cpu_us" {
			list = append(list, sagaFigure{ranked("cpu_us", "CPU per saga of store and app", "µs", result.Lower), CPUPerSaga})
		}
		m := plain(f.Key, f.Name, f.Unit, result.Lower)
		if f.HigherIsBetter {
			m.Better = result.Higher
		}
		m.Ranked = rank[f.Key]
		m.Detail = !m.Ranked && !shown[f.Key]
		list = append(list, sagaFigure{m, f.Of})
	}
	return append(list,
		sagaFigure{ranked("memory_bytes", "memory of store and app", "bytes", result.Lower), memory},
		sagaFigure{
			plain("store_rss_bytes", "memory of the store's server", "bytes", result.Lower),
			func(s result.Summary) *float64 { return s.Resources.StoreRSSBytes },
		})
}()

var ofSaga = func() (list []Metric) {
	for _, f := range sagaFigures {
		list = append(list, f.Metric)
	}
	return list
}()

// CPUPerSaga returns the CPU time of store and app together, in µs, or nil if one of them is
// unknown.
func CPUPerSaga(s result.Summary) *float64 {
	return together(s, s.CostPerSaga.StoreCPUUS, s.CostPerSaga.AppCPUUS)
}

// memory returns the resident memory of store and app together.
func memory(s result.Summary) *float64 {
	return together(s, s.Resources.StoreRSSBytes, s.Resources.AppRSSBytes)
}

// together adds figures of store and app. An embedded store is a part of the app. It returns
// nil if one of them is unknown.
func together(s result.Summary, store, app *float64) *float64 {
	switch {
	case app == nil, store == nil && !s.Run.Store.Embedded():
		return nil
	case store == nil:
		return app
	}
	sum := *app + *store
	return &sum
}

// OfSaga returns the metrics of a run of bench run. slo is nil if none was asked for.
func OfSaga(s result.Summary, slo *result.SLO) map[string]float64 {
	metrics := map[string]float64{}
	for _, f := range sagaFigures {
		if x := f.of(s); x != nil {
			metrics[f.Key] = *x
		}
	}
	if slo != nil {
		if met, _ := slo.Judge(s.Measurement); met != nil {
			metrics["slo_met"] = 0
			if *met {
				metrics["slo_met"] = 1
			}
		}
	}
	return metrics
}

// AddBusiest makes one server comparable with a cluster: it is its own busiest master.
func AddBusiest(metrics map[string]float64, s result.Summary) {
	if cpu := s.CostPerSaga.OfBusiest(s.Run.Store); cpu != nil {
		metrics[compare.KeyBusiest] = *cpu
	}
}

// OfCapacity returns the metrics of a search, without those of a plan.
func OfCapacity(s result.CapacitySummary) map[string]float64 {
	metrics := map[string]float64{}
	set := func(key string, x *float64) {
		if x != nil {
			metrics[key] = *x
		}
	}
	switch held := s.Capacity.Held; {
	case held != nil:
		set("held_per_s", &held.RatePerS)
		set("held_p99_ms", held.LatencyMS.P99)
	case s.Capacity.CannotTell == "" && s.Capacity.Next != nil:
		metrics["held_per_s"] = 0 // not even the lowest rate
	}
	if next := s.Capacity.Next; next != nil {
		set("next_per_s", &next.RatePerS)
	}
	if main := (result.Result{Capacity: &s}).MainStep(); main != nil {
		set("held_cpu_us", CPUPerSaga(result.Summary{Envelope: s.Envelope, Measurement: main.Measurement}))
	}
	return metrics
}

// AddMachines adds the machines of a plan, without those that the search says nothing about: the
// store nodes for a rate that the store did not hold.
func AddMachines(metrics map[string]float64, lines []plan.Line) {
	for _, l := range lines {
		switch {
		case l.Value == nil, l.Extrapolated:
		case l.What == "app hosts":
			metrics["app_hosts"] = *l.Value
		case l.What == "store nodes":
			metrics["store_nodes"] = *l.Value
		}
	}
}
