// Package plan turns measurements into how many machines it takes: so many app hosts
// and store nodes for a rate, a peak and a service level, with the memory, the disk and
// the network, and what breaks first when one of them is lost.
//
// What it guarantees:
//
//   - It stands on the highest rate that was held: that of a search, as the search says, or
//     that of a run which met the service level. For another service level than the
//     search's the holds are judged again.
//   - Each line names the measurement that it is based on. What was not measured is null,
//     never a guess.
//   - Costs of a saga are those near the rate that a machine would have, half of it to one
//     and a half. If there are none, those of the nearest rate are marked as extrapolated.
//   - A processor may be as busy as it was at the highest held rate.
//   - From and to are the lowest and the highest that were measured, and say of what: within
//     one search, or between several.
//   - Results of different stores, sagas or machines are refused. With a result that is
//     not valid the plan is not; a step of a search that is not valid is left out.
//
// That several hosts carry as many times the load of one is an assumption, and stated where
// it is made. Of results of several numbers of app hosts, those of the fewest that held the
// peak are used. Making the measurements, and checking the plan by measuring the rate that
// [Predict] was asked for, is left to others.
package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// ErrNoPlan is of measurements that carry no plan, or of a demand that makes no sense.
var ErrNoPlan = errors.New("no plan")

// Demand is what is to be carried.
type Demand struct {
	RatePerS      float64        // sagas, on average over the retention
	Peak          float64        // the highest rate, as a multiple of RatePerS; at least 1
	SLO           result.SLO     // met at the peak, too
	Retention     *time.Duration // of finished sagas, 0: deleted at once; nil: that of the measured app, or else DefaultRetention
	BranchLatency time.Duration  // of each step, beyond the measured one
}

// mostPerS is the highest peak: figures of no use, and beyond integers, are behind it.
const mostPerS = 1e12

// DefaultRetention is assumed if neither the demand nor the results say one.
const DefaultRetention = 24 * time.Hour

// Result is summary.json of bench plan. But for what names the plan itself, its Run is
// that of the first measured result.
type Result struct {
	result.Envelope
	Plan Plan `json:"plan"`
}

// Plan is what the demand takes.
type Plan struct {
	RatePerS   float64      `json:"rate_per_s"`
	PeakPerS   float64      `json:"peak_per_s"`
	SLO        result.SLO   `json:"slo"`
	RetentionS float64      `json:"retention_s"`
	From       []string     `json:"from"` // ids of the results
	Store      result.Store `json:"store"`

	Held  float64  `json:"held_per_s"` // highest measured rate that was held at this service level, sagas/s
	HeldS float64  `json:"held_s"`     // for how long, in seconds
	Next  *float64 `json:"next_per_s"` // a higher one, which was not held; null: there is none

	Impossible string   `json:"impossible"` // why no number of store nodes carries the peak; empty: one may
	Because    []string `json:"because"`    // why the plan is more than was measured, or stands on what is not valid; empty: it is neither

	Lines  []Line `json:"lines"`
	Breaks string `json:"breaks_first"` // when one app host or one store node is lost
}

// Line is one thing that it takes. Value is null if it was not measured, Low and High if it
// was not measured often enough.
type Line struct {
	What         string   `json:"what"`
	Value        *float64 `json:"value"`
	Low          *float64 `json:"low"`
	High         *float64 `json:"high"`
	Spans        string   `json:"spans"` // what Low and High are the lowest and the highest of; empty without them
	Unit         string   `json:"unit"`
	Basis        string   `json:"basis"`  // the measurement, in words, with its numbers
	Caveat       string   `json:"caveat"` // what has to hold besides; may be empty
	Extrapolated bool     `json:"extrapolated"`
}

// Make plans for the demand by what was measured. The plan is valid when all results are;
// their warnings are those of the plan, too. The error wraps ErrNoPlan and says what is
// missing.
func Make(d Demand, results []result.Result) (Plan, result.Validity, error) {
	if peak := d.RatePerS * d.Peak; peak > mostPerS {
		return Plan{}, result.Validity{}, fmt.Errorf("%w: a peak of %.3g sagas/s, at most %.0g can be planned for", ErrNoPlan, peak, float64(mostPerS))
	}
	if !(d.RatePerS > 0) || !(d.Peak >= 1) || d.Retention != nil && *d.Retention < 0 || d.BranchLatency < 0 || len(d.SLO.Latencies) == 0 {
		return Plan{}, result.Validity{}, fmt.Errorf("%w: it takes a rate above 0, a peak of at least 1 and a latency to meet", ErrNoPlan)
	}
	s, err := size(d, results)
	if err != nil {
		return Plan{}, result.Validity{}, err
	}
	warnings := s.warnings()
	app, store := s.hosts(), s.nodes()
	storeRate := store.each
	if s.e.store.Embedded() {
		storeRate = app.each
	}
	sagas := s.sagas()
	memory := s.memoryOfRedis(sagas, store.n)
	if n := len(memory) - 1; n >= 0 && memory[n].Caveat != "" {
		warnings = append(warnings, fmt.Sprintf("memory: the store needs %s GB, %s", format.Number(*memory[n].Value/1e9), memory[n].Caveat))
	}
	hostLost, storeLost := s.hostLost(app), s.storeLost(store)
	p := Plan{
		RatePerS: d.RatePerS, PeakPerS: s.peak, SLO: d.SLO, RetentionS: s.retention.Seconds(),
		From: s.e.ids, Store: s.e.store,
		Held: s.held.rate, HeldS: s.held.seconds, Next: s.held.next,
		Impossible: s.impossible(),
		Lines: slices.Concat([]Line{s.held.line(s.e)}, app.lines, store.lines, sagas, memory, s.flows(storeRate),
			app.headroom(), store.headroom(), []Line{storeLost.line, hostLost.line}),
		Breaks: first(storeLost, hostLost),
	}
	v := judge(results, warnings)
	p.Because = s.because(results, p.Lines)
	return p, v, nil
}

// size puts the demand beside what the results have measured. Of results of several numbers
// of app hosts it takes those of the fewest that held the peak, or of the most.
func size(d Demand, results []result.Result) (s sizing, err error) {
	if _, err := gather(results); err != nil {
		return s, err
	}
	var numbers []int
	for _, r := range results {
		numbers = append(numbers, appHosts(r.Envelope().Run))
	}
	slices.Sort(numbers)
	var found *sizing
	tooFew := 0
	for _, n := range slices.Compact(numbers) {
		one := sizing{d: d, peak: d.RatePerS * d.Peak}
		if one.e, err = gather(slices.DeleteFunc(slices.Clone(results), func(r result.Result) bool { return appHosts(r.Envelope().Run) != n })); err != nil {
			continue
		}
		if one.held, err = one.e.held(d.SLO); err == nil {
			if found = &one; one.held.rate >= one.peak {
				break
			}
		}
		tooFew = n
	}
	if found == nil {
		return s, err
	}
	found.least = tooFew + 1
	found.retention = found.e.keptFor(d.Retention)
	return *found, nil
}

// keptFor is how long finished sagas are kept.
func (e evidence) keptFor(demanded *time.Duration) time.Duration {
	switch {
	case demanded != nil:
		return *demanded
	case len(e.retention) > 0 && slices.Min(e.retention) == slices.Max(e.retention):
		return time.Duration(e.retention[0]) * time.Second
	}
	return DefaultRetention
}
