// Package plan turns measurements into how many machines it takes: so many app hosts
// and store nodes for a rate, a peak and a promised latency, with the memory, the
// disk and the network, and what breaks first when one of them is lost.
//
// What it guarantees:
//
//   - Each line names the measurement that it is based on. What was not measured is null,
//     never a guess; what lies beyond the measured rates is flagged as extrapolated.
//   - Cost per saga is taken at the rate that a machine would have, between the
//     measured rates: it falls as batches fill.
//   - A processor may be as busy as the busiest one was at the highest rate that met the
//     service level. That rate is found from the measured percentiles, for the service
//     level of this plan.
//   - A rate that measured machines carried, and kept the promise, takes no more of them.
//   - An interval is what the next such machine would have, from repeats of the same
//     rate, with 95% confidence. Without repeats there is none.
//   - Results of different stores, sagas or machines are refused. With a result that is
//     not valid the plan is not; a step of a search that is not valid is left out.
//
// That several hosts or masters carry as many times the load of one is an assumption, and
// stated where it is made. Of results of several numbers of app hosts, those of the fewest
// that carried the peak are used. Making the measurements, and checking the plan by
// measuring the rate that [Predict] was asked for, is left to others.
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
	RatePerS  float64       // sagas, on average over the retention
	Peak      float64       // the highest rate, as a multiple of RatePerS; at least 1
	SLO       result.SLO    // kept at the peak, too
	Retention time.Duration // of finished sagas; 0: deleted at once
}

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

	Kept   float64  `json:"kept_per_s"`   // the highest measured rate that kept the demanded SLO
	Broken *float64 `json:"broken_per_s"` // the next that was measured, which did not; null: there is none
	Usable *float64 `json:"usable"`       // how busy a processor may be, a share; null: not known

	Lines  []Line `json:"lines"`
	Breaks string `json:"breaks_first"` // when one app host or one store node is lost
}

// Line is one thing that it takes. Value is null if it was not measured, Low and High
// if nothing was measured twice.
type Line struct {
	What         string   `json:"what"`
	Value        *float64 `json:"value"`
	Low          *float64 `json:"low"`
	High         *float64 `json:"high"`
	Unit         string   `json:"unit"`
	Basis        string   `json:"basis"`  // the measurement, in words, with its numbers
	Caveat       string   `json:"caveat"` // what has to hold besides; may be empty
	Extrapolated bool     `json:"extrapolated"`
}

// Make plans for the demand by what was measured. The plan is valid when all results are;
// their warnings are those of the plan, too. The error wraps ErrNoPlan and says what is
// missing.
func Make(d Demand, results []result.Result) (Plan, result.Validity, error) {
	if !(d.RatePerS > 0) || !(d.Peak >= 1) || d.Retention < 0 || len(d.SLO.Latencies) == 0 {
		return Plan{}, result.Validity{}, fmt.Errorf("%w: it takes a rate above 0, a peak of at least 1 and a latency to keep", ErrNoPlan)
	}
	s, ids, err := size(d, results)
	if err != nil {
		return Plan{}, result.Validity{}, err
	}
	p := Plan{
		RatePerS: d.RatePerS, PeakPerS: s.peak, SLO: d.SLO, RetentionS: d.Retention.Seconds(),
		From: ids, Store: s.e.store,
		Kept: s.highest.met.rate, Usable: s.highest.usable,
	}
	if s.highest.violated != nil {
		p.Broken = &s.highest.violated.rate
	}
	warnings := s.warnings()
	app, store := s.hosts(), s.nodes()
	held := s.held(app.each)
	memory := s.memoryEach(store, held)
	for _, l := range memory {
		if l.Caveat != "" {
			warnings = append(warnings, fmt.Sprintf("memory: a store node needs %s GB, %s", format.Number(*l.Value/1e9), l.Caveat))
		}
	}
	p.Lines = slices.Concat(app.lines, store.lines, held, memory, s.flows(app.each), app.headroom(), store.headroom())
	lost := []loss{s.storeLost(store), s.hostLost(app)}
	for _, l := range lost {
		p.Lines = append(p.Lines, l.line)
	}
	p.Breaks = first(lost)
	return p, judge(results, warnings), nil
}

// size puts the demand beside what the results have measured. Of results of several
// numbers of app hosts it takes those of the fewest that carried the peak and kept the
// promise, or of the most. It returns the ids of the results it takes.
func size(d Demand, results []result.Result) (s sizing, ids []string, err error) {
	if _, err := gather(results); err != nil {
		return s, nil, err
	}
	var numbers []int
	for _, r := range results {
		numbers = append(numbers, appHosts(r.Envelope().Run))
	}
	slices.Sort(numbers)
	tooFew := 0
	for _, n := range slices.Compact(numbers) {
		s = sizing{d: d, peak: d.RatePerS * d.Peak}
		if s.e, err = gather(slices.DeleteFunc(slices.Clone(results), func(r result.Result) bool { return appHosts(r.Envelope().Run) != n })); err != nil {
			continue
		}
		if s.highest, err = s.e.highestRate(d.SLO); err == nil && s.highest.met.rate >= s.peak {
			break
		}
		tooFew = n
	}
	s.least = tooFew + 1
	return s, s.e.ids, err
}
