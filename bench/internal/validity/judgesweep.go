package validity

import (
	"math"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// JudgeMeasured says whether one measurement of a sweep may be believed. That the
// system could not follow the rate, or failed requests, is what a sweep is to find
// out, and no fault of the measurement. shared: load, app or store share a machine.
func JudgeStep(m result.Step, e Evidence, shared bool) result.Validity {
	s := result.Summary{Measurement: m.Measurement}
	s.Run.SharedHost = shared
	s.Run.DurationS = m.DurationS
	j := judgement{s: s, e: e, valid: true, warnings: []string{}}
	j.complete()
	j.generator()
	j.samples()
	j.others()
	return result.Validity{Valid: j.valid, Warnings: j.warnings}
}

// JudgeSweep judges what the measurements of a sweep have in common: their store
// and the machine. The summary's Load needs Requests and Errors only, their sums.
func JudgeSweep(s result.Summary, e Evidence) result.Validity {
	j := judgement{s: s, e: e, valid: true, warnings: []string{}}
	j.complete()
	j.outcomes()
	j.counted()
	j.settings()
	j.surroundings()
	return result.Validity{Valid: j.valid, Warnings: j.warnings}
}

// The thresholds of JudgeCapacity.
const (
	busyShare    = 0.25 // of the measurements up to the edge that are not valid: too many to trust the others
	edgeShare    = 0.10 // between the ends of the interval and the rate found
	offShare     = 0.15 // between what was expected of the middle of the range and what was measured
	unevenShare  = 0.25 // between what a saga costs the load generator at the most and at the least, near the edge
	fallShare    = 0.20 // of a median that is higher at a lower rate
	fallLeastMS  = 0.2
	lowerAtLeast = 2.0 // that the rates are apart of which that is said
)

// JudgeCapacity adds to the judgement of a sweep what its measurements show
// together.
func JudgeCapacity(base result.Validity, c result.Capacity) result.Validity {
	j := judgement{valid: base.Valid, warnings: base.Warnings}
	j.edge(c)
	j.uneven(c)
	j.elsewhere(c)
	j.falling(c.Steps)
	j.again(c)
	j.predicted(c)
	return result.Validity{Valid: j.valid, Warnings: j.warnings}
}

// edge says how well the rate is known. Steps that are not valid show the load
// generator: when one is what broke the service level, it is not the system's edge.
func (j *judgement) edge(c result.Capacity) {
	rate, low, high := c.RatePerS, c.LowPerS, c.HighPerS
	sent := 0.0 // what the generator was in time for, without a doubt
	for _, m := range c.Steps {
		if m.MeetsSLO != nil && *m.MeetsSLO {
			sent = max(sent, *m.Load.OfferedPerS)
		}
	}
	near, late := 0, 0 // beyond the edge a machine that is shared has no time for the generator either
	for _, m := range c.Steps {
		if rate != nil && *m.Load.OfferedPerS >= *rate*(1+edgeShare) {
			continue
		}
		if near++; m.Validity.Valid || !strings.HasPrefix(m.Why, lateGenerator) {
			continue
		}
		if late++; m.MeetsSLO != nil && *m.Load.OfferedPerS > sent {
			j.refuse("at %s/s: %s; the system may carry more than was found", format.Number(*m.Load.OfferedPerS), m.Why)
		}
	}
	if float64(late) > busyShare*float64(near) {
		j.refuse("busy machine: the load generator was late in %d of the %d measurements up to the edge; give it a machine that does nothing else", late, near)
	}
	switch {
	case rate == nil:
	case high == nil:
		j.warn("no edge: the service level was kept at the highest rate that was tried, %s/s", format.Number(*rate))
	case *low < *rate*(1-edgeShare) || *high > *rate*(1+edgeShare):
		j.warn("repeats disagree: the same rates kept the service level and broke it, so that the edge is only known to be from %s/s to %s/s", format.Number(*low), format.Number(*high))
	}
}

// nearEdge are the measurements within edgeShare of the rate that was found.
func nearEdge(c result.Capacity) (near []result.Step) {
	for _, m := range c.Steps {
		if c.RatePerS != nil && math.Abs(*m.Load.OfferedPerS / *c.RatePerS - 1) <= edgeShare {
			near = append(near, m)
		}
	}
	return near
}

// uneven says that the machine's speed changed. The load generator does the same for each
// saga, so what that costs near the edge tells it.
func (j *judgement) uneven(c result.Capacity) {
	least, most := math.Inf(1), 0.0
	for _, m := range nearEdge(c) {
		if cost := m.CostPerSaga.LoadCPUUS; cost != nil {
			least, most = min(least, *cost), max(most, *cost)
		}
	}
	if most > least*(1+unevenShare) {
		j.warn("uneven machine: near the edge the same saga cost the load generator %s to %s µs of CPU, so the machine was quicker now and slower then; what another search finds may differ as much",
			format.Number(least), format.Number(most))
	}
}

// elsewhere passes on what was said of measurements next to the edge.
func (j *judgement) elsewhere(c result.Capacity) {
	said := map[string]bool{}
	for _, m := range nearEdge(c) {
		if !m.Validity.Valid {
			continue
		}
		for _, warning := range m.Validity.Warnings {
			kind, _, _ := strings.Cut(warning, ":")
			if !said[kind] {
				said[kind] = true
				j.warn("at %s/s: %s", format.Number(*m.Load.OfferedPerS), warning)
			}
		}
	}
}

// falling looks for a median that is higher at a much lower rate: processors that
// save power, and threads that have gone to sleep, take a while to begin.
func (j *judgement) falling(steps []result.Step) {
	var worst, than *result.Step
	for i, low := range steps {
		for k, high := range steps {
			if low.LatencyMS.P50 == nil || high.LatencyMS.P50 == nil || *high.Load.OfferedPerS < lowerAtLeast**low.Load.OfferedPerS {
				continue
			}
			if by := *low.LatencyMS.P50 - *high.LatencyMS.P50; by > fallLeastMS && by > fallShare**high.LatencyMS.P50 &&
				(worst == nil || by > *worst.LatencyMS.P50-*than.LatencyMS.P50) {
				worst, than = &steps[i], &steps[k]
			}
		}
	}
	if worst != nil {
		j.warn("latency falls as load rises: p50 is %s ms at %s/s and %s ms at %s/s (power saving, or threads that have to be woken)",
			format.Number(*worst.LatencyMS.P50), format.Number(*worst.Load.OfferedPerS), format.Number(*than.LatencyMS.P50), format.Number(*than.Load.OfferedPerS))
	}
}

// again compares the same load at the beginning and at the end.
func (j *judgement) again(c result.Capacity) {
	if c.Recheck == nil {
		return
	}
	for _, m := range c.Scaling {
		if m.Load.InFlight != c.Recheck.Load.InFlight {
			continue
		}
		first, last := m.Load.AchievedPerS, c.Recheck.Load.AchievedPerS
		if math.Abs(last-first) > driftShare*max(first, last) {
			j.warn("not steady: %s/s with %d in flight at the beginning, %s/s at the end: the machine or the store has changed meanwhile",
				format.Number(first), m.Load.InFlight, format.Number(last))
		}
	}
}

// predicted says where the middle of the range was not as the other measurements have
// it: a plan that rests on them is off by as much.
func (j *judgement) predicted(c result.Capacity) {
	for _, p := range c.Predicted {
		if math.Abs(p.Measured-p.Expected) > offShare*p.Expected {
			j.warn("plan: at %s/s %s was expected to be %s %s, and was %s", format.Number(*c.Validation.Load.OfferedPerS), p.What, format.Number(p.Expected), p.Unit, format.Number(p.Measured))
		}
	}
}
