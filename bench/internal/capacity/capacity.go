// Package capacity finds the highest rate that meets a service level, and what limits it.
//
// It measures in five parts, on one store that goes on filling:
//
//   - Scaling: closed loops with 1 to 512 requests in flight. The highest throughput is
//     the first guess of the rate.
//   - First rates: open loops from a tenth of that guess upwards, until the service level
//     is violated.
//   - Search: open loops near the highest rate. A rate is alternately the 25th and the
//     75th percentile of the posterior, which is what all measurements until then say
//     about the highest rate. It allows for slow moments, which violate the service level
//     at any rate, and for a machine whose speed changes.
//   - Validation: one rate in the middle of the range, to compare with the prediction from
//     the other measurements.
//   - Recheck: the best point of the scaling curve once more.
//
// An open-loop measurement is long enough for a hundred requests beyond the highest
// percentile of the service level.
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
	SLO      result.SLO
	Step     time.Duration // shortest open-loop measurement
	LongStep time.Duration // longest: a low rate has to be judged from fewer requests
	Width    float64       // relative width of the 95% interval at which the search ends
	Budget   time.Duration // after which the search ends

	// Each point of the scaling curve is short: it shows a throughput and no percentile.
	ScalingStep, ScalingWarmup time.Duration

	Load    load.Config  // of each measurement, except its rate, requests in flight and length
	Batches int          // that the app may have in flight to the store; 0: unknown
	Status  func(string) // called with what is being done
}

// Default returns a search that ends at ±5% of the rate or after about three minutes.
func Default() Config {
	return Config{
		SLO:      result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: 20}}, Errors: result.DefaultErrorBudget},
		Step:     4 * time.Second,
		LongStep: 30 * time.Second,
		Width:    0.1,
		Budget:   150 * time.Second,

		ScalingStep:   2500 * time.Millisecond,
		ScalingWarmup: 500 * time.Millisecond,
	}
}

// WithStep returns the search with another shortest measurement and warm-up. The budget
// is scaled with it. LongStep does not shrink: at a low rate too few requests would lie
// beyond the percentile.
func (c Config) WithStep(step, warmup time.Duration) Config {
	c.Budget = time.Duration(float64(c.Budget) * float64(step) / float64(c.Step))
	c.Step, c.LongStep = step, max(c.LongStep, step)
	c.ScalingStep, c.ScalingWarmup = min(c.ScalingStep, step), min(c.ScalingWarmup, warmup)
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

// Run finds the highest rate that meets the service level, and closes m. A search that
// ends early is marked as incomplete. The error says that nothing was measured.
func Run(ctx context.Context, cfg Config, m Measurer) (result.CapacitySummary, error) {
	r := &run{cfg: cfg, measurer: m}
	r.found = result.Capacity{SLO: cfg.SLO, Steps: []result.Step{}, Scaling: []result.Step{}, Predicted: []result.Predicted{}}
	ended := r.measureAll(ctx)
	common, err := m.Close(ctx, ended)
	if err != nil {
		return result.CapacitySummary{}, err
	}
	c := r.found
	highest := HighestRate(c.Steps)
	c.RatePerS, c.LowPerS, c.HighPerS = highest.Rate, highest.Low, highest.High
	c.Limit = FindLimit(c.Steps, c.RatePerS, limit.Machine{Cores: common.Environment.Cores, Shared: common.Run.SharedHost, Batches: cfg.Batches})
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

// validationShare is the rate of the validation, as a share of the highest rate. It lies
// between two of the first rates.
const validationShare = 0.6

// measureAll makes all measurements. What was measured before an error is in r.found.
func (r *run) measureAll(ctx context.Context) (err error) {
	c := &r.found
	if c.Scaling, err = r.scaling(ctx); err != nil {
		return err
	}
	best := slices.MaxFunc(c.Scaling, func(a, b result.Step) int { return cmp.Compare(a.Load.AchievedPerS, b.Load.AchievedPerS) })
	if c.Steps, err = search(ctx, r.cfg, best.Load.AchievedPerS, r.open); err != nil {
		return err
	}
	if highest := HighestRate(c.Steps); highest.Rate != nil {
		validation, err := r.open(ctx, math.Round(validationShare**highest.Rate), r.cfg.Step)
		if validation.Load.Requests > 0 {
			c.Validation = &validation
		}
		if err != nil {
			return err
		}
	}
	r.cfg.Status("the best point of the scaling curve once more")
	recheck, err := r.closed(ctx, best.Load.InFlight, r.cfg.ScalingStep)
	if recheck.Load.Requests > 0 {
		c.Recheck = &recheck
	}
	return err
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
	m, err := r.measurer.Measure(ctx, shape)
	if err == nil {
		r.cfg.Status(fmt.Sprintf("%d in flight: %s/s", inFlight, format.Number(m.Load.AchievedPerS)))
	}
	return m, err
}

// open makes an open-loop measurement.
func (r *run) open(ctx context.Context, rate float64, length time.Duration) (result.Step, error) {
	shape := r.cfg.Load
	shape.Rate, shape.Duration = load.Constant(rate), length
	m, err := r.measurer.Measure(ctx, shape)
	if err == nil {
		r.cfg.Status(fmt.Sprintf("%s/s for %s s: %s", format.Number(rate), format.Number(length.Seconds()), verdict(m, r.cfg.SLO)))
	}
	return m, err
}

// verdict says in a few words whether a measurement met the service level.
func verdict(m result.Step, slo result.SLO) string {
	judge(&m, slo)
	switch {
	case m.MeetsSLO == nil:
		return "not judged: " + m.Why
	case !*m.MeetsSLO:
		return m.Why
	}
	var latencies []string
	for _, goal := range slo.Latencies {
		latencies = append(latencies, fmt.Sprintf("%s %s ms", goal.Name(), format.Number(*m.LatencyMS.At(goal.Percentile))))
	}
	return "met, " + strings.Join(latencies, ", ")
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
	for i, measured := range []*float64{r.LoadCores, r.AppCores, r.StoreCores, r.StoreFsyncsPerS} {
		if l := lines[i]; l.Value != nil && measured != nil {
			predicted = append(predicted, result.Predicted{What: l.What, Unit: l.Unit, Expected: *l.Value, Measured: *measured})
		}
	}
	return predicted
}
