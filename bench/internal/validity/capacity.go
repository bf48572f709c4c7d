package validity

import (
	"math"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// JudgeStep decides whether one measurement of a sweep is valid. Overload and failed
// requests do not make it invalid: a sweep is to find them. shared reports whether load,
// app or store share a machine.
func JudgeStep(m result.Step, e Evidence, shared bool) result.Validity {
	s := result.Summary{Measurement: m.Measurement}
	s.Run.SharedHost = shared
	s.Run.DurationS = m.DurationS
	j := newJudgement(s, e)
	j.complete()
	j.generator()
	j.samples()
	j.others()
	return j.Validity
}

// JudgeSweep decides on what the measurements of a sweep have in common: store and machine.
// The summary's Load needs the sums of Requests and Errors only.
func JudgeSweep(s result.Summary, e Evidence) result.Validity {
	j := newJudgement(s, e)
	j.complete()
	j.outcomes()
	j.counted()
	j.settings()
	j.surroundings()
	return j.Validity
}

// The thresholds of JudgeCapacity.
const (
	lateStepsShare  = 0.25 // of the measurements below the found rate that may be late
	nearShare       = 0.10 // of the found rate: within it a measurement is near, and the interval narrow
	predictedShare  = 0.15 // between a predicted and a measured figure
	unevenShare     = 0.25 // between the lowest and the highest CPU per saga of the load generator
	fallShare       = 0.20 // by which a median is higher at a lower rate
	fallLeastMS     = 0.2
	fallLeastFactor = 2.0 // minimum ratio of the two rates for this warning
)

// JudgeCapacity adds to the validity of a sweep what its measurements show together.
func JudgeCapacity(base result.Validity, c result.Capacity) result.Validity {
	j := judgement{Validity: base}
	j.precision(c)
	j.unevenMachine(c)
	j.stepWarnings(c)
	j.fallingLatency(c.Steps)
	j.recheck(c)
	j.predictions(c)
	return j.Validity
}

// precision says how well the rate is known. An invalid step shows the load generator: if
// one violated the service level, the found rate is not the system's capacity.
func (j *judgement) precision(c result.Capacity) {
	rate, low, high := c.RatePerS, c.LowPerS, c.HighPerS
	met := 0.0 // the highest rate at which the generator was certainly in time
	for _, m := range c.Steps {
		if m.MeetsSLO != nil && *m.MeetsSLO {
			met = max(met, *m.Load.OfferedPerS)
		}
	}
	near, late := 0, 0 // only up to the rate: above it a full machine also delays the generator
	for _, m := range c.Steps {
		if rate != nil && *m.Load.OfferedPerS >= *rate*(1+nearShare) {
			continue
		}
		if near++; m.Validity.Valid || !strings.HasPrefix(m.Why, lateGenerator) {
			continue
		}
		if late++; m.MeetsSLO != nil && *m.Load.OfferedPerS > met {
			j.refuse("at %s/s: %s; the capacity may be higher", format.Number(*m.Load.OfferedPerS), m.Why)
		}
	}
	if float64(late) > lateStepsShare*float64(near) {
		j.refuse("busy machine: the load generator was late in %d of the %d measurements below the found rate; use another machine for it", late, near)
	}
	switch {
	case rate == nil:
	case high == nil:
		j.warn("no upper bound: the service level was met at the highest tried rate, %s/s", format.Number(*rate))
	case *low < *rate*(1-nearShare) || *high > *rate*(1+nearShare):
		j.warn("repeats disagree: the same rates met and violated the service level; the capacity is between %s/s and %s/s", format.Number(*low), format.Number(*high))
	}
}

// nearCapacity returns the measurements within nearShare of the found rate.
func nearCapacity(c result.Capacity) (near []result.Step) {
	for _, m := range c.Steps {
		if c.RatePerS != nil && math.Abs(*m.Load.OfferedPerS / *c.RatePerS - 1) <= nearShare {
			near = append(near, m)
		}
	}
	return near
}

// unevenMachine warns if the machine's speed changed. The load generator does the same work
// for each saga, so its CPU per saga near the capacity shows the speed.
func (j *judgement) unevenMachine(c result.Capacity) {
	least, most := math.Inf(1), 0.0
	for _, m := range nearCapacity(c) {
		if cost := m.CostPerSaga.LoadCPUUS; cost != nil {
			least, most = min(least, *cost), max(most, *cost)
		}
	}
	if most > least*(1+unevenShare) {
		j.warn("uneven machine: near the capacity a saga cost the load generator %s to %s µs of CPU; another search may differ as much",
			format.Number(least), format.Number(most))
	}
}

// stepWarnings adds the first warning of each kind of the measurements near the capacity.
func (j *judgement) stepWarnings(c result.Capacity) {
	seen := map[string]bool{}
	for _, m := range nearCapacity(c) {
		if !m.Validity.Valid {
			continue
		}
		for _, warning := range m.Validity.Warnings {
			kind, _, _ := strings.Cut(warning, ":")
			if !seen[kind] {
				seen[kind] = true
				j.warn("at %s/s: %s", format.Number(*m.Load.OfferedPerS), warning)
			}
		}
	}
}

// fallingLatency warns if the median is higher at a much lower rate: processors that save
// power and sleeping threads need time to wake.
func (j *judgement) fallingLatency(steps []result.Step) {
	var worst, than *result.Step
	for i, low := range steps {
		for k, high := range steps {
			if low.LatencyMS.P50 == nil || high.LatencyMS.P50 == nil || *high.Load.OfferedPerS < fallLeastFactor**low.Load.OfferedPerS {
				continue
			}
			if by := *low.LatencyMS.P50 - *high.LatencyMS.P50; by > fallLeastMS && by > fallShare**high.LatencyMS.P50 &&
				(worst == nil || by > *worst.LatencyMS.P50-*than.LatencyMS.P50) {
				worst, than = &steps[i], &steps[k]
			}
		}
	}
	if worst != nil {
		j.warn("latency falls as load rises: p50 is %s ms at %s/s and %s ms at %s/s (power saving, or sleeping threads)",
			format.Number(*worst.LatencyMS.P50), format.Number(*worst.Load.OfferedPerS), format.Number(*than.LatencyMS.P50), format.Number(*than.Load.OfferedPerS))
	}
}

// recheck compares the same load at the beginning and at the end.
func (j *judgement) recheck(c result.Capacity) {
	if c.Recheck == nil {
		return
	}
	for _, m := range c.Scaling {
		if m.Load.InFlight != c.Recheck.Load.InFlight {
			continue
		}
		first, last := m.Load.AchievedPerS, c.Recheck.Load.AchievedPerS
		if math.Abs(last-first) > driftShare*max(first, last) {
			j.warn("not steady: %s/s with %d in flight at the beginning, %s/s at the end: the machine or the store changed",
				format.Number(first), m.Load.InFlight, format.Number(last))
		}
	}
}

// predictions warns of wrong predictions: a plan based on these measurements is wrong by as
// much.
func (j *judgement) predictions(c result.Capacity) {
	for _, p := range c.Predicted {
		if math.Abs(p.Measured-p.Expected) > predictedShare*p.Expected {
			j.warn("plan: at %s/s the predicted %s is %s %s, the measured %s", format.Number(*c.Validation.Load.OfferedPerS), p.What, format.Number(p.Expected), p.Unit, format.Number(p.Measured))
		}
	}
}
