// Package plan turns measurements into how many machines it takes: so many app hosts
// and store nodes for a rate, a peak and a promised latency, with the memory, the
// disk and the network, and what breaks first when one of them is lost.
//
// What it guarantees:
//
//   - Each line names the measurement that it rests on. What was not measured is null,
//     never a guess; what lies beyond the measured rates is flagged as extrapolated.
//   - Cost per saga is taken at the rate that a machine would have, between the
//     measured rates: it falls as batches fill.
//   - A processor may be as busy as load, app and store kept the busiest one at the
//     highest rate that kept the promise, and no busier. That rate is found anew for the demanded promise,
//     from the measured percentiles and whatever was searched for.
//   - A rate that measured machines carried, and kept the promise, takes no more of them.
//   - An interval is what the next such machine would have, from repeats of the same
//     rate, with 95% confidence. Without repeats there is none.
//   - Results of unlike things are refused. With a result that is not valid the plan is
//     not; a step of a search that is not valid is left out.
//
// Results of three and more numbers of app hosts give the number of them by the law that
// is fitted to those (package usl), and no number beyond the measured ones. Else, that
// several hosts or masters carry as many times the load of one is an assumption here,
// and said where it is made. Making the measurements, and checking the plan by
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

	Law    *Law   `json:"law"` // over app hosts; null: results of one number of them
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
		Kept: s.edge.kept.rate, Usable: s.edge.usable, Law: s.law,
	}
	if s.edge.broken != nil {
		p.Broken = &s.edge.broken.rate
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

// size puts the demand beside what the results have measured, whose ids it returns: all
// of them, or of several numbers of app hosts those of the one that the plan rests on.
func size(d Demand, results []result.Result) (s sizing, ids []string, err error) {
	s = sizing{d: d, peak: d.RatePerS * d.Peak}
	if s.e, err = gather(results); err != nil {
		return s, nil, err
	}
	ids = s.e.ids
	if s.law, err = lawOf(results, d.SLO); err != nil {
		return s, nil, err
	}
	if s.law != nil {
		if s.e, err = gather(s.law.nearest(results, s.peak)); err != nil {
			return s, nil, err
		}
	}
	s.edge, err = s.e.edge(d.SLO)
	return s, ids, err
}
