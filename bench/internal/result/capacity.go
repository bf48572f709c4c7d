package result

import (
	"cmp"
	"math"
	"slices"

	"sagabench/bench/internal/usl"
)

// CapacitySummary is the result of a search for the highest rate.
type CapacitySummary struct {
	Envelope
	Capacity Capacity `json:"capacity"`
}

// Capacity is the highest rate that was held at a service level, and how it was found.
type Capacity struct {
	SLO   SLO     `json:"slo"`
	HoldS float64 `json:"hold_s"` // length of a hold

	// The answer: that of the only search, or of the one with the median rate. It cannot
	// tell if most searches cannot.
	Search
	// Searches has the answer of each, and Spread how far those that can tell are apart;
	// null for less than two.
	Searches []Search `json:"searches"`
	Spread   *Spread  `json:"spread"`

	Limit Limit `json:"limit"` // at the held rate, or at the lowest that was not held

	Steps   []Step `json:"steps"`   // open loop, in the order of measurement
	Scaling []Step `json:"scaling"` // closed loop, by rising number in flight

	// Rechecks repeat the step of scaling with the highest throughput, before each rate
	// that was to be held. Different results show that the machine or the store changed.
	Rechecks []Step `json:"again"`

	// Measures a rate in the middle of the range that was not measured before, to check
	// predicted. Null if the search ended before.
	Validation *Step       `json:"middle"`
	Predicted  []Predicted `json:"predicted"` // what the other measurements predict for that rate

	Fit   *usl.Fit `json:"fit"`    // scaling law fitted to scaling; null: see no_fit
	NoFit string   `json:"no_fit"` // why no law was fitted
}

// Search is the answer of one search.
type Search struct {
	// Held is the highest rate that was held, and Next the next higher one that was to be
	// held and was not. They are null if there is none.
	Held *Held `json:"held"`
	Next *Next `json:"next"`
	// LimitS is the time limit that ended the search, in seconds; null if it ended by
	// itself. Then Held is what was held until then, perhaps once: the highest rate may be
	// higher.
	LimitS *float64 `json:"limit_s"`
	// CannotTell says why this machine gives no answer; empty if it does.
	CannotTell string `json:"cannot_tell"`
}

// CanTell returns the searches that give an answer.
func CanTell(searches []Search) []Search {
	return slices.DeleteFunc(slices.Clone(searches), func(s Search) bool { return s.CannotTell != "" })
}

// Spread is how far several searches are apart, in sagas/s. A search without a held rate
// counts as 0.
type Spread struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Held is a rate that met the service level for the whole of a hold.
type Held struct {
	RatePerS  float64 `json:"rate_per_s"` // offered, sagas/s
	DurationS float64 `json:"duration_s"`
	LatencyMS Latency `json:"latency_ms"` // from the due time, of the whole hold; of the requests that were answered

	// Interval is that of each latency of the service level, in its order: where it may be
	// by chance within this hold (block bootstrap). It says nothing of other holds.
	Interval []LatencyInterval `json:"interval"`

	OverLimitShare float64 `json:"over_limit_share"` // share of its seconds that by themselves violate the service level
	Errors         int64   `json:"errors"`           // requests that failed or were never sent
}

// LatencyInterval is the interval of a percentile, in milliseconds.
type LatencyInterval struct {
	Percentile float64 `json:"percentile"`
	LowMS      float64 `json:"low_ms"`
	HighMS     float64 `json:"high_ms"`
}

// Next is a rate that was not held.
type Next struct {
	RatePerS float64 `json:"rate_per_s"` // offered, sagas/s
	Why      string  `json:"why"`        // with its figures, how often it was tried, and what broke it
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
	RatePerS  float64 `json:"rate_per_s"` // that was to be offered; 0 in a closed loop
	Hold      bool    `json:"hold"`       // whether the rate was to be held: a short step only looks for it
	Measurement
	MeetsSLO *bool    `json:"kept"` // whether it met the service level; null: unknown
	Why      string   `json:"why"`  // what violated the service level, or made the step invalid
	Validity Validity `json:"validity"`
	// Seconds has the requests of each second, by when they were due, and how many of them
	// were over each of load.Config's limits.
	Seconds []Second `json:"-"`
}

// Limit is the resource that keeps the rate from being higher.
type Limit struct {
	Resource string   `json:"resource"` // for example "store CPU"; empty: unknown
	Share    *float64 `json:"share"`    // used share of it near that rate; null: unknown
	Evidence string   `json:"evidence"` // in words, with figures
}

// HeldSteps returns the holds of the held rate. Without one it returns those of the lowest
// rate that was to be held.
func (c Capacity) HeldSteps() []Step {
	switch {
	case c.Held != nil:
		return c.Holds(c.Held.RatePerS)
	case c.Next != nil:
		return c.Holds(c.Next.RatePerS)
	}
	return nil
}

// Holds returns the valid holds of a rate.
func (c Capacity) Holds(rate float64) (holds []Step) {
	for _, m := range c.Steps {
		if m.Hold && m.Validity.Valid && m.RatePerS == rate {
			holds = append(holds, m)
		}
	}
	return holds
}

// ByRate returns the open-loop steps by rising rate.
func (c Capacity) ByRate() []Step {
	steps := slices.Clone(c.Steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.RatePerS, b.RatePerS) })
	return steps
}

// SameRate is the relative distance up to which rates count as the same: near the capacity a
// search tries many that differ by less.
const SameRate = 0.05

// RatePoint is the latency at a rate.
type RatePoint struct {
	RatePerS float64 `json:"rate_per_s"` // offered, sagas/s
	P99MS    float64 `json:"p99_ms"`     // from the due time
}

// LatencyByRate returns the p99 of the valid steps whose rate the system followed, by rising
// rate. A hold replaces the short steps at its rate.
func (c Capacity) LatencyByRate() (points []RatePoint) {
	var steps []Step
	for _, m := range c.ByRate() {
		if p99 := m.LatencyMS.P99; p99 != nil && *p99 > 0 && m.Validity.Valid && !m.Load.Overloaded() {
			steps = append(steps, m)
		}
	}
	for _, m := range steps {
		held := slices.ContainsFunc(steps, func(h Step) bool {
			return h.Hold && math.Abs(h.RatePerS-m.RatePerS) < SameRate*m.RatePerS
		})
		if m.Hold || !held {
			points = append(points, RatePoint{m.RatePerS, *m.LatencyMS.P99})
		}
	}
	return points
}
