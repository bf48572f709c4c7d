package result

import (
	"cmp"
	"slices"
	"strings"

	"sagabench/bench/internal/usl"
	"sagabench/internal/format"
)

// CapacitySummary is summary.json of bench capacity: the parts of a Summary that
// many measurements on one store have in common, and its own.
type CapacitySummary struct {
	Schema      int         `json:"schema"`
	Run         Run         `json:"run"`
	Check       Check       `json:"check"`
	Validity    Validity    `json:"validity"`
	Environment Environment `json:"environment"`
	Capacity    Capacity    `json:"capacity"`
}

// Capacity is the highest rate that kept a service level, and how it was found.
type Capacity struct {
	SLO SLO `json:"slo"`

	// RatePerS is the highest offered rate at which the service level is kept, with
	// its 95% interval. Null: RatePerS and LowPerS when it was kept at none, HighPerS
	// when it was broken at none.
	RatePerS *float64 `json:"rate_per_s"`
	LowPerS  *float64 `json:"low_per_s"`
	HighPerS *float64 `json:"high_per_s"`

	Limit Limit `json:"limit"`

	Steps   []Measured `json:"steps"`   // open loop, in the order in which they were made
	Scaling []Measured `json:"scaling"` // closed loop, in flight rising

	// Again is one of Scaling, that with the highest throughput, at the end of it all:
	// it shows whether the machine and the store were still the same. Null: it was
	// not come to.
	Again *Measured `json:"again"`

	// Middle is at a rate in the middle of the range, which was not measured before; it
	// checks what follows from the other measurements for it: Predicted. Null: it was
	// not come to.
	Middle    *Measured   `json:"middle"`
	Predicted []Predicted `json:"predicted"`

	Fit   *usl.Fit `json:"fit"`    // over Scaling; null: see NoFit
	NoFit string   `json:"no_fit"` // why nothing was fitted
}

// Predicted is what a rate was expected to use, and what it did.
type Predicted struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Expected float64 `json:"expected"`
	Measured float64 `json:"measured"`
}

// SLO is a service level: what was promised.
type SLO struct {
	Latencies []LatencyGoal `json:"latencies"` // each is to be kept
	Errors    float64       `json:"errors"`    // share of the requests that may fail
}

// LatencyGoal bounds one percentile of the latency from the due time.
type LatencyGoal struct {
	Percentile float64 `json:"percentile"` // as 99 or 99.9
	MS         float64 `json:"ms"`
}

// Measured is one of many measurements on the same store.
type Measured struct {
	StartS      float64   `json:"start_s"` // since the beginning of the run
	DurationS   float64   `json:"duration_s"`
	Load        Load      `json:"load"`
	LatencyMS   Latency   `json:"latency_ms"`
	ServiceMS   Latency   `json:"service_ms"`
	CostPerSaga Cost      `json:"cost_per_saga"`
	Resources   Resources `json:"resources"`
	Kept        *bool     `json:"kept"` // the service level; null: not judged
	Why         string    `json:"why"`  // what broke it
	Validity    Validity  `json:"validity"`
}

// Resources is what was used on average during a measurement. What is null was
// not measured.
type Resources struct {
	LoadCores  *float64 `json:"load_cores"` // CPU, in cores kept busy
	AppCores   *float64 `json:"app_cores"`
	StoreCores *float64 `json:"store_cores"`
	// AppCoresUsable is how many the app servers may use, wherever they run.
	AppCoresUsable *float64 `json:"app_cores_usable"`
	// StoreOneCore: the store's server runs its commands on one core.
	StoreOneCore bool `json:"store_one_core"`

	// Shares of the load generator's machine: of all cores, of the busiest one,
	// and what its hypervisor took.
	HostBusy    *float64 `json:"host_busy"`
	BusiestCore *float64 `json:"busiest_core"`
	HostSteal   *float64 `json:"host_steal"`

	StoreFsyncsPerS  *float64 `json:"store_fsyncs_per_s"`
	StoreCallsBusy   *float64 `json:"store_calls_busy"`    // calls of the app to the store that were under way
	StoreLockWaits   *float64 `json:"store_lock_waits"`    // waits for row locks that were under way
	AppKeptOut       *float64 `json:"app_kept_out"`        // app servers that turned clients away: all connections that they accept were in use
	StoreConns       *float64 `json:"store_conns"`         // connections that the app may have to the store's server
	StoreConnWaits   *float64 `json:"store_conn_waits"`    // calls under way that waited for one of them
	StoreServerConns *float64 `json:"store_server_conns"`  // of all that the server allows, the share that was open at the end
	NetworkBytesPerS *float64 `json:"network_bytes_per_s"` // both ways, between machines, on the load generator's
	NetworkShare     *float64 `json:"network_share"`       // of its slowest used link; null: its speed is not known
}

// Limit is what keeps the rate from being higher.
type Limit struct {
	Resource string   `json:"resource"` // as "store CPU"; empty: not known
	Share    *float64 `json:"share"`    // how much of it was used at the edge; null: it has no measure
	Evidence string   `json:"evidence"` // in words, with the numbers
}

// String is the service level in words.
func (o SLO) String() string {
	var all []string
	for _, l := range o.Latencies {
		all = append(all, l.String())
	}
	return strings.Join(append(all, "errors ≤ "+format.Short(100*o.Errors)+"%"), ", ")
}

// String is the goal as "p99 ≤ 20 ms".
func (g LatencyGoal) String() string { return g.Name() + " ≤ " + format.Short(g.MS) + " ms" }

// Name is that of the percentile, as "p99.9".
func (g LatencyGoal) Name() string { return "p" + format.Short(g.Percentile) }

// LatencyLimits is the service level without that of the errors.
func (o SLO) LatencyLimits() string {
	var all []string
	for _, l := range o.Latencies {
		all = append(all, l.String())
	}
	return strings.Join(all, ", ")
}

// ByRate are the open-loop steps by their offered rate.
func (c Capacity) ByRate() []Measured {
	steps := slices.DeleteFunc(slices.Clone(c.Steps), func(m Measured) bool { return m.Load.OfferedPerS == nil })
	slices.SortStableFunc(steps, func(a, b Measured) int { return cmp.Compare(*a.Load.OfferedPerS, *b.Load.OfferedPerS) })
	return steps
}
