package result

import "sagabench/internal/format"

// CostField is one of the costs of a saga, by its name.
type CostField struct {
	Name, Unit string
	Of         func(Cost) *float64
}

func CostFields() []CostField {
	return []CostField{
		{"store CPU", " µs", func(c Cost) *float64 { return c.StoreCPUUS }},
		{"app CPU", " µs", func(c Cost) *float64 { return c.AppCPUUS }},
		{"load CPU", " µs", func(c Cost) *float64 { return c.LoadCPUUS }},
		{"to the store", " bytes", func(c Cost) *float64 { return c.StoreBytesIn }},
		{"from the store", " bytes", func(c Cost) *float64 { return c.StoreBytesOut }},
		{"kept in the store", " bytes", func(c Cost) *float64 { return c.StoreMemoryBytes }},
		{"store calls", "", func(c Cost) *float64 { return c.StoreCalls }},
		{"store round trips", "", func(c Cost) *float64 { return c.StoreRoundTrips }},
		{"store fsyncs", "", func(c Cost) *float64 { return c.StoreFsyncs }},
	}
}

// CheckField is one of the audit's counts, by its name.
type CheckField struct {
	Name string
	Of   func(Check) *int64
}

func CheckFields() []CheckField {
	return []CheckField{
		{"acknowledged", func(c Check) *int64 { return &c.Acknowledged }},
		{"terminal", func(c Check) *int64 { return c.Terminal }},
		{"lost", func(c Check) *int64 { return c.Lost }},
		{"both outcomes", func(c Check) *int64 { return c.BothOutcomes }},
		{"uncompensated", func(c Check) *int64 { return c.Uncompensated }},
		{"unfinished", func(c Check) *int64 { return c.Unfinished }},
	}
}

// LatencyField is one of the latencies that are kept, by its name.
type LatencyField struct {
	Name string
	Of   func(Latency) *float64
}

func LatencyFields() []LatencyField {
	return []LatencyField{
		{"p50", func(l Latency) *float64 { return l.P50 }},
		{"p90", func(l Latency) *float64 { return l.P90 }},
		{"p95", func(l Latency) *float64 { return l.P95 }},
		{"p99", func(l Latency) *float64 { return l.P99 }},
		{"p99.9", func(l Latency) *float64 { return l.P999 }},
		{"p99.99", func(l Latency) *float64 { return l.P9999 }},
		{"max", func(l Latency) *float64 { return l.Max }},
		{"mean", func(l Latency) *float64 { return l.Mean }},
	}
}

// ResourceField is one of the resources, by its name.
type ResourceField struct {
	Name  string
	Of    func(Resources) *float64
	Share bool
}

func (i ResourceField) Text(r Resources) string {
	x := i.Of(r)
	if x != nil && i.Share {
		return format.Percent(*x)
	}
	return format.Optional(x, format.Number)
}

func ResourceFields() []ResourceField {
	return []ResourceField{
		{"load", func(r Resources) *float64 { return r.LoadCores }, false},
		{"app", func(r Resources) *float64 { return r.AppCores }, false},
		{"store", func(r Resources) *float64 { return r.StoreCores }, false},
		{"machine", func(r Resources) *float64 { return r.HostBusy }, true},
		{"busiest core", func(r Resources) *float64 { return r.BusiestCore }, true},
		{"fsyncs/s", func(r Resources) *float64 { return r.StoreFsyncsPerS }, false},
		{"calls under way", func(r Resources) *float64 { return r.StoreCallsBusy }, false},
		{"lock waits", func(r Resources) *float64 { return r.StoreLockWaits }, false},
		{"apps that turn clients away", func(r Resources) *float64 { return r.AppKeptOut }, false},
		{"connection waits", func(r Resources) *float64 { return r.StoreConnWaits }, false},
		{"server's connections", func(r Resources) *float64 { return r.StoreServerConns }, true},
		{"network, bytes/s", func(r Resources) *float64 { return r.NetworkBytesPerS }, false},
		{"network", func(r Resources) *float64 { return r.NetworkShare }, true},
	}
}

// Spender is who spends CPU on a saga.
type Spender struct {
	Name string
	Of   func(Cost) *float64
}

func Spenders() []Spender {
	return []Spender{
		{"load", func(c Cost) *float64 { return c.LoadCPUUS }},
		{"app", func(c Cost) *float64 { return c.AppCPUUS }},
		{"store", func(c Cost) *float64 { return c.StoreCPUUS }},
	}
}
