package validity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
	"sagabench/store"
)

// JudgeStep decides whether one measurement of a sweep is valid. Overload and failed
// requests do not make it invalid: a sweep is to find them. run is that of the sweep.
func JudgeStep(m result.Step, e Evidence, run result.Run) result.Validity {
	run.DurationS = m.DurationS
	s := result.Summary{Measurement: m.Measurement, Envelope: result.Envelope{Run: run}}
	j := newJudgement(s, e)
	j.complete()
	j.generator()
	j.delayed()
	j.samples()
	j.omission()
	j.costs()
	j.others()
	j.taken()
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
	j.slowFsyncs()
	return j.Validity
}

// slowFsyncs warns of a disk that by itself may violate the service level of a store that
// waits for its fsyncs.
func (j *judgement) slowFsyncs() {
	d, disk := store.D0, j.s.Environment.StoreDisk
	if class, ok := store.ParseDurability(j.s.Run.Store.Durability); ok {
		d = class
	}
	if d < store.D3 || disk == nil || disk.FsyncMaxMS == nil {
		return
	}
	for _, goal := range j.e.SLO.Latencies {
		if *disk.FsyncMaxMS > goal.MS {
			j.warn("slow fsyncs: before the load, one on the store's disk took %s ms, half of them at most %s ms; every saga that waits for such a one takes longer than %s ms",
				format.Number(*disk.FsyncMaxMS), format.Number(*disk.FsyncP50MS), format.Short(goal.MS))
			return
		}
	}
}

// The thresholds of JudgeCapacity.
const (
	belowShare      = 0.50 // of the highest throughput of the closed loops: a held rate below it is explained
	nearShare       = 0.10 // of the held rate: within it a measurement is near
	predictedShare  = 0.15 // between a predicted and a measured figure
	predictedCores  = 0.05 // smaller differences between cores are no warning
	predictedPerS   = 1.0  // smaller differences between rates of fsyncs are none
	unevenShare     = 0.25 // between the lowest and the highest CPU per saga of the load generator
	fallShare       = 0.20 // by which a median is higher at a lower rate
	fallLeastMS     = 0.2
	fallLeastFactor = 2.0 // minimum ratio of the two rates for this warning
)

// JudgeCapacity adds to the validity of a sweep what its measurements show together.
func JudgeCapacity(base result.Validity, c result.Capacity) result.Validity {
	j := judgement{Validity: base}
	j.answer(c)
	j.unevenMachine(c)
	j.stepFindings(c)
	j.fallingLatency(c.Steps)
	j.predictions(c)
	return j.Validity
}

// answer says how far the answer may be relied on.
func (j *judgement) answer(c result.Capacity) {
	if c.CannotTell != "" {
		j.refuse("cannot tell here: %s", c.CannotTell)
	} else if n := len(c.Searches) - len(result.CanTell(c.Searches)); n > 0 {
		i := slices.IndexFunc(c.Searches, func(s result.Search) bool { return s.CannotTell != "" })
		j.warn("%d of %d searches cannot tell: %s", n, len(c.Searches), c.Searches[i].CannotTell)
	}
	if c.Held == nil {
		return
	}
	if c.LimitS != nil {
		j.warn("time limit: a search was ended after %s s; at least %s/s was held", format.Number(*c.LimitS), format.Number(c.Held.RatePerS))
	}
	switch {
	case c.Next == nil && c.LimitS != nil: // it is said
	case c.Next == nil:
		j.warn("no upper bound: no higher rate was tried for a whole hold that was not held, too")
	case strings.HasPrefix(c.Next.Why, lateGenerator):
		j.refuse("at %s/s: %s; the capacity may be higher", format.Number(c.Next.RatePerS), c.Next.Why)
	}
	best := result.Load{}
	for _, m := range c.Scaling {
		if m.Load.AchievedPerS > best.AchievedPerS {
			best = m.Load
		}
	}
	if c.Held.RatePerS >= belowShare*best.AchievedPerS {
		return
	}
	broken, tried := 0, 0
	for _, m := range c.Steps {
		if m.RatePerS > c.Held.RatePerS && m.MeetsSLO != nil {
			tried++
			if !*m.MeetsSLO {
				broken++
			}
		}
	}
	text := fmt.Sprintf("far below the closed loops: %s/s were held, and with %d in flight %s/s were carried; %d of %d measurements at higher rates broke the service level",
		format.Number(c.Held.RatePerS), best.InFlight, format.Number(best.AchievedPerS), broken, tried)
	if c.Next != nil {
		text += fmt.Sprintf(", at %s/s: %s", format.Number(c.Next.RatePerS), c.Next.Why)
	}
	j.warn("%s", text)
}

// usable reports whether the system, and nothing else, shows in a measurement's figures.
func usable(m result.Step) bool { return m.Validity.Valid && !m.Load.Overloaded() }

// nearCapacity returns the usable measurements within nearShare of the held rate.
func nearCapacity(c result.Capacity) (near []result.Step) {
	for _, m := range c.Steps {
		if usable(m) && c.Held != nil && math.Abs(m.RatePerS/c.Held.RatePerS-1) <= nearShare {
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

// stepFindings adds the first finding of each kind of the measurements near the capacity;
// without an answer, of those of the rate that Next names.
func (j *judgement) stepFindings(c result.Capacity) {
	seen := map[string]bool{}
	first := func(list []string) (new []string) {
		for _, finding := range list {
			if kind, _, _ := strings.Cut(finding, ":"); !seen[kind] {
				seen[kind] = true
				new = append(new, finding)
			}
		}
		return new
	}
	near := nearCapacity(c)
	if c.Held == nil {
		near = c.HeldSteps()
	}
	for _, m := range near {
		j.Include("at "+format.Number(m.RatePerS)+"/s", result.Validity{
			Valid: true, Warnings: first(m.Validity.Warnings), Notes: first(m.Validity.Notes),
		})
	}
}

// fallingLatency notes that the median is higher at a much lower rate: processors that
// save power and sleeping threads need time to wake. It compares the lowest median near the
// lower rate with the highest near the higher one, so repeats that differ say nothing.
func (j *judgement) fallingLatency(steps []result.Step) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(m result.Step) bool {
		return !usable(m) || m.MeetsSLO != nil && !*m.MeetsSLO || m.LatencyMS.P50 == nil
	})
	near := func(rate float64) (medians []float64) {
		for _, m := range steps {
			if math.Abs(*m.Load.OfferedPerS/rate-1) <= nearShare {
				medians = append(medians, *m.LatencyMS.P50)
			}
		}
		return medians
	}
	most, text := 0.0, ""
	for _, a := range steps {
		for _, b := range steps {
			low, high := *a.Load.OfferedPerS, *b.Load.OfferedPerS
			if high < fallLeastFactor*low {
				continue
			}
			slow, fast := slices.Min(near(low)), slices.Max(near(high))
			if by := slow - fast; by > fallLeastMS && by > fallShare*fast && by > most {
				most, text = by, fmt.Sprintf("p50 is %s ms at %s/s and %s ms at %s/s", format.Number(slow), format.Number(low), format.Number(fast), format.Number(high))
			}
		}
	}
	if text != "" {
		j.note("latency falls as load rises: %s (power saving, or sleeping threads)", text)
	}
}

// predictions warns of wrong predictions: a plan based on these measurements is wrong by as
// much.
func (j *judgement) predictions(c result.Capacity) {
	for _, p := range c.Predicted {
		least := predictedCores
		if p.Unit == "/s" {
			least = predictedPerS
		}
		if math.Abs(p.Measured-p.Expected) > max(least, predictedShare*p.Expected) {
			j.warn("plan: at %s/s the predicted %s is %s %s, the measured %s", format.Number(*c.Validation.Load.OfferedPerS), p.What, format.Number(p.Expected), p.Unit, format.Number(p.Measured))
		}
	}
}
