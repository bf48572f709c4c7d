package result

import (
	"cmp"
	"slices"

	"sagabench/bench/internal/usl"
)

// CapacitySummary is the result of a search for the highest rate.
type CapacitySummary struct {
	Envelope
	Capacity Capacity `json:"capacity"`
}

// Capacity is the highest rate that meets a service level, and how it was found.
type Capacity struct {
	SLO SLO `json:"slo"`

	RatePerS *float64 `json:"rate_per_s"` // highest offered rate that meets the service level, sagas/s; null if none does
	LowPerS  *float64 `json:"low_per_s"`  // lower end of its 95% interval; null if no rate meets the service level
	HighPerS *float64 `json:"high_per_s"` // upper end; null if no rate violates the service level

	Limit Limit `json:"limit"`

	Steps   []Step `json:"steps"`   // open loop, in the order of measurement
	Scaling []Step `json:"scaling"` // closed loop, by rising number in flight

	// Repeats the step of scaling with the highest throughput at the end. A different
	// result shows that the machine or the store changed. Null if the search ended before.
	Recheck *Step `json:"again"`

	// Measures a rate in the middle of the range that was not measured before, to check
	// predicted. Null if the search ended before.
	Validation *Step       `json:"middle"`
	Predicted  []Predicted `json:"predicted"` // what the other measurements predict for that rate

	Fit   *usl.Fit `json:"fit"`    // scaling law fitted to scaling; null: see no_fit
	NoFit string   `json:"no_fit"` // why no law was fitted
}

// Predicted compares a predicted figure with the measured one.
type Predicted struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Expected float64 `json:"expected"`
	Measured float64 `json:"measured"`
}

// Step is one of many measurements on the same store.
type Step struct {
	StartS    float64 `json:"start_s"` // seconds since the start of the run
	DurationS float64 `json:"duration_s"`
	Measurement
	MeetsSLO *bool    `json:"kept"` // whether it met the service level; null: unknown
	Why      string   `json:"why"`  // what violated the service level, or made the step invalid
	Validity Validity `json:"validity"`
}

// Limit is the resource that keeps the rate from being higher.
type Limit struct {
	Resource string   `json:"resource"` // for example "store CPU"; empty: unknown
	Share    *float64 `json:"share"`    // used share of it near that rate; null: unknown
	Evidence string   `json:"evidence"` // in words, with figures
}

// ByRate returns the open-loop steps by rising offered rate.
func (c Capacity) ByRate() []Step {
	steps := slices.DeleteFunc(slices.Clone(c.Steps), func(m Step) bool { return m.Load.OfferedPerS == nil })
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(*a.Load.OfferedPerS, *b.Load.OfferedPerS) })
	return steps
}
