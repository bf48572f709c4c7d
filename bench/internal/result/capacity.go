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

	Steps   []Step `json:"steps"`   // open loop, in the order in which they were made
	Scaling []Step `json:"scaling"` // closed loop, in flight rising

	// Recheck is one of Scaling, that with the highest throughput, at the end of it all:
	// it shows whether the machine and the store were still the same. Null: it was
	// not come to.
	Recheck *Step `json:"again"`

	// Validation is at a rate in the middle of the range, which was not measured before; it
	// checks what follows from the other measurements for it: Predicted. Null: it was
	// not come to.
	Validation *Step       `json:"middle"`
	Predicted  []Predicted `json:"predicted"`

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

// Step is one of many measurements on the same store.
type Step struct {
	StartS    float64 `json:"start_s"` // since the beginning of the run
	DurationS float64 `json:"duration_s"`
	Measurement
	MeetsSLO *bool    `json:"kept"` // the service level; null: not judged
	Why      string   `json:"why"`  // what broke it
	Validity Validity `json:"validity"`
}

// Limit is what keeps the rate from being higher.
type Limit struct {
	Resource string   `json:"resource"` // as "store CPU"; empty: not known
	Share    *float64 `json:"share"`    // how much of it was used at the edge; null: it has no measure
	Evidence string   `json:"evidence"` // in words, with the numbers
}

// ByRate are the open-loop steps by their offered rate.
func (c Capacity) ByRate() []Step {
	steps := slices.DeleteFunc(slices.Clone(c.Steps), func(m Step) bool { return m.Load.OfferedPerS == nil })
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(*a.Load.OfferedPerS, *b.Load.OfferedPerS) })
	return steps
}
