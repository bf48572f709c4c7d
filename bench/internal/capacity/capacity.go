// Package capacity finds the highest rate that a service level holds at, and what limits it.
//
// It measures on one store that goes on filling:
//
//   - Scaling: closed loops with 1 to 512 requests in flight. The highest throughput is
//     where the search begins.
//   - Search: short open loops find the neighbourhood of the rate, holds of a minute the
//     highest rate that meets the service level. That one may have been lucky: the rate 5%
//     below it is held twice, or the next lower one that holds. After twelve holds a search
//     ends with what was held until then.
//   - Validation: one rate in the middle of the range, to compare with the prediction from
//     the other measurements.
//
// What is printed was measured: a rate was held if all requests of its hold together, from
// their due times, met the service level, failed and unsent ones counted as over the
// limit. A rate that breaks it is tried again at once, and both are judged as one. Before
// each hold the best closed loop is repeated; if that differs too much, the machine is too
// uneven for an answer.
//
// Sending load is left to a [Measurer], judging the whole to package validity, the law of
// scaling to package usl, and predictions to package plan.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/usl"
	"sagabench/bench/internal/validity"
	"sagabench/internal/format"
)

// Config of a search.
type Config struct {
	SLO    result.SLO
	Hold   time.Duration // how long a rate is held
	Step   time.Duration // shortest step that looks for the neighbourhood
	Repeat int           // number of searches

	// Each point of the scaling curve is short: it shows a throughput and no percentile.
	ScalingStep, ScalingWarmup time.Duration

	Load    load.Config  // of each measurement, except its rate, requests in flight and length
	Batches int          // that the app may have in flight to the store; 0: unknown
	Status  func(string) // called with what is being done
}

// Default returns one search with holds of a minute.
func Default() Config {
	return Config{
		SLO:    result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: result.DefaultErrorBudget},
		Repeat: 1,
	}.WithHold(time.Minute)
}

// shortestStep shows a few hundred requests.
const shortestStep = 500 * time.Millisecond

// WithHold returns the search with holds of another length, and the other measurements in
// proportion.
func (c Config) WithHold(hold time.Duration) Config {
	c.Hold = hold
	c.Step = min(hold, max(hold/15, shortestStep))
	c.ScalingStep = min(hold, max(hold/24, shortestStep))
	c.ScalingWarmup = c.ScalingStep / 5
	return c
}

// Measurer makes measurements on the same servers, one after another. A session.Session
// is one.
type Measurer interface {
	// Measure sends load of this shape. After an error it returns what was measured
	// until then, which may be nothing.
	Measure(ctx context.Context, shape load.Config) (result.Step, error)
	// Close ends the measurements and returns what they have in common. ended is why
	// they ended early, or nil. If nothing was measured then, Close returns ended.
	Close(ctx context.Context, ended error) (result.Summary, error)
}

// Run finds the highest rate that the service level holds at, and closes m. A search that
// ends early is marked as incomplete. The error says that nothing was measured.
func Run(ctx context.Context, cfg Config, m Measurer) (result.CapacitySummary, error) {
	r := &run{cfg: cfg, measurer: m}
	r.found = result.Capacity{
		SLO: cfg.SLO, HoldS: cfg.Hold.Seconds(),
		Searches: []result.Search{}, Steps: []result.Step{}, Scaling: []result.Step{}, Rechecks: []result.Step{}, Predicted: []result.Predicted{},
	}
	ended := r.measureAll(ctx)
	common, err := m.Close(ctx, ended)
	if err != nil {
		return result.CapacitySummary{}, err
	}
	c := r.found
	machine := limit.Machine{Shared: common.Run.SharedHost, Batches: cfg.Batches}
	c.Limit = limitOf(c.HeldSteps(), machine)
	blame(c, machine)
	if fit, err := fitScaling(c.Scaling); err != nil {
		c.NoFit = err.Error()
	} else {
		c.Fit = &fit
	}
	s := result.CapacitySummary{Envelope: common.Envelope, Capacity: c}
	s.Kind = result.KindCapacity
	s.Capacity.Predicted = append(s.Capacity.Predicted, predict(s)...)
	s.Validity = validity.JudgeCapacity(common.Validity, s.Capacity)
	return s, nil
}

// run is a search and what it has measured until now.
type run struct {
	cfg      Config
	measurer Measurer
	found    result.Capacity
}

const (
	// validationShare is the rate of the validation, as a share of the held rate. It lies
	// between rates that were measured.
	validationShare = 0.6
	// validationLength is its length, as a share of a hold.
	validationLength = 0.25
)

// measureAll makes all measurements. What was measured before an error is in r.found.
func (r *run) measureAll(ctx context.Context) (err error) {
	c := &r.found
	if c.Scaling, err = r.scaling(ctx); err != nil {
		return err
	}
	best := slices.MaxFunc(c.Scaling, func(a, b result.Step) int { return cmp.Compare(a.Load.AchievedPerS, b.Load.AchievedPerS) }).Load
	for n := range r.cfg.Repeat {
		if r.cfg.Repeat > 1 {
			r.cfg.Status(fmt.Sprintf("search %d of %d", n+1, r.cfg.Repeat))
		}
		s := searcher{cfg: r.cfg, best: best.AchievedPerS, open: r.open}
		s.recheck = func(ctx context.Context) (result.Step, error) { return r.recheck(ctx, best) }
		found, err := s.search(ctx)
		if err != nil {
			return err
		}
		r.answer(found)
	}
	if c.Held == nil {
		return nil
	}
	validation, err := r.open(ctx, math.Round(validationShare*c.Held.RatePerS), time.Duration(validationLength*float64(r.cfg.Hold)), false, nil)
	if validation.DurationS > 0 {
		c.Steps = c.Steps[:len(c.Steps)-1] // it is to check the others
		c.Validation = &validation
	}
	return err
}

// answer adds the answer of a search. That of all is the one with the median rate, unless
// most searches cannot tell.
func (r *run) answer(found result.Search) {
	c := &r.found
	c.Searches = append(c.Searches, found)
	told := result.CanTell(c.Searches)
	n := len(told)
	if n <= len(c.Searches)/2 {
		c.Search, c.Spread = c.Searches[slices.IndexFunc(c.Searches, func(s result.Search) bool { return s.CannotTell != "" })], nil
		return
	}
	slices.SortStableFunc(told, func(a, b result.Search) int { return cmp.Compare(heldPerS(a), heldPerS(b)) })
	c.Search = told[(n-1)/2]
	if n > 1 {
		c.Spread = &result.Spread{Low: heldPerS(told[0]), Median: heldPerS(c.Search), High: heldPerS(told[n-1])}
	}
}

func heldPerS(s result.Search) float64 {
	if s.Held == nil {
		return 0
	}
	return s.Held.RatePerS
}

// mostInFlight is where the scaling curve ends.
const mostInFlight = 512

// scaling measures the throughput with 1, 2, 4, … 512 requests in flight.
func (r *run) scaling(ctx context.Context) ([]result.Step, error) {
	r.cfg.Status(fmt.Sprintf("closed loops with 1 to %d in flight", mostInFlight))
	points := []result.Step{}
	acknowledged := false
	for n := 1; n <= mostInFlight; n *= 2 {
		m, err := r.closed(ctx, n, r.cfg.ScalingStep)
		if err == nil {
			r.cfg.Status(fmt.Sprintf("%d in flight: %s/s", n, format.Number(m.Load.AchievedPerS)))
		}
		if m.Load.Requests > 0 {
			points = append(points, m)
		}
		if err != nil {
			return points, err
		}
		acknowledged = acknowledged || m.Load.AchievedPerS > 0
	}
	if !acknowledged {
		return points, fmt.Errorf("no saga was acknowledged with up to %d in flight", mostInFlight)
	}
	return points, nil
}

// closed makes a closed-loop measurement.
func (r *run) closed(ctx context.Context, inFlight int, length time.Duration) (result.Step, error) {
	shape := r.cfg.Load
	shape.InFlight, shape.Rate, shape.Duration, shape.Warmup = inFlight, load.Profile{}, length, r.cfg.ScalingWarmup
	return r.measurer.Measure(ctx, shape)
}

// recheck repeats the best closed loop.
func (r *run) recheck(ctx context.Context, best result.Load) (result.Step, error) {
	m, err := r.closed(ctx, best.InFlight, r.cfg.recheckFor(best.AchievedPerS))
	if err == nil {
		r.cfg.Status(fmt.Sprintf("%d in flight again: %s/s in its median second", best.InFlight, format.Number(medianPerS(m))))
	}
	if m.Load.Requests > 0 {
		r.found.Rechecks = append(r.found.Rechecks, m)
	}
	return m, err
}

// open makes an open-loop measurement, which ends early with more requests over a limit
// than most; nil: it does not.
func (r *run) open(ctx context.Context, rate float64, length time.Duration, hold bool, most []result.OverLimit) (result.Step, error) {
	if most == nil {
		for _, goal := range r.cfg.SLO.Latencies {
			most = append(most, result.OverLimit{MS: goal.MS, Most: math.MaxInt64})
		}
	}
	shape := r.cfg.Load
	shape.Rate, shape.Duration, shape.Limits = load.Constant(rate), length, most
	m, err := r.measurer.Measure(ctx, shape)
	if m.DurationS == 0 {
		return m, err
	}
	m.RatePerS, m.Hold = rate, hold
	if m.Validity.Valid {
		met, why := level{rate: rate, steps: []result.Step{m}}.judge(r.cfg.SLO)
		m.MeetsSLO, m.Why = &met, why
	} else {
		m.Why = strings.Join(m.Validity.Because, "; ")
	}
	r.found.Steps = append(r.found.Steps, m)
	r.cfg.Status(status(m, r.cfg.SLO))
	return m, err
}

// status says in a line how a step went.
func status(m result.Step, slo result.SLO) string {
	what := "for"
	if m.Hold {
		what = "held for"
	}
	text := fmt.Sprintf("%s/s %s %s s: ", format.Number(m.RatePerS), what, format.Number(m.DurationS))
	if m.MeetsSLO == nil || !*m.MeetsSLO {
		return text + cmp.Or(m.Why, "not judged")
	}
	text += "met"
	for _, goal := range slo.Latencies {
		if ms := m.LatencyMS.At(goal.Percentile); ms != nil { // too few requests in a short step have none
			text += ", " + goal.Name() + " " + format.Number(*ms) + " ms"
		}
	}
	return text
}

// fitScaling fits the law of scaling to the valid points.
func fitScaling(scaling []result.Step) (usl.Fit, error) {
	var points []usl.Point
	for _, m := range scaling {
		if m.Validity.Valid {
			points = append(points, usl.Point{N: float64(m.Load.InFlight), X: m.Load.AchievedPerS})
		}
	}
	return usl.FitPoints(points, 1)
}

// predict returns what the other measurements predict for the validation, beside what was
// measured. It returns nothing if they are too few for a plan, or the validation is not
// valid.
func predict(s result.CapacitySummary) (predicted []result.Predicted) {
	v := s.Capacity.Validation
	if v == nil || !v.Validity.Valid {
		return nil
	}
	lines, err := plan.Predict(v.Load.AchievedPerS, []result.Result{{Capacity: &s}})
	if err != nil {
		return nil
	}
	r := v.Resources
	measured := map[string]*float64{
		"load CPU": r.LoadCores, "app CPU": r.AppCores, "store CPU": r.StoreCores, "store fsyncs": r.StoreFsyncsPerS,
	}
	if x := v.CostPerSaga.StoreBytesWritten; x != nil {
		perS := *x * v.Load.AchievedPerS
		measured["written to disk"] = &perS
	}
	for _, l := range lines {
		if measured := measured[l.What]; l.Value != nil && measured != nil {
			predicted = append(predicted, result.Predicted{What: l.What, Unit: l.Unit, Expected: *l.Value, Measured: *measured})
		}
	}
	return predicted
}
