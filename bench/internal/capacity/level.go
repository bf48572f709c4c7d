package capacity

import (
	"fmt"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// level is all that was measured at one rate in a row. It is judged as a whole: a rate
// that breaks the service level is tried again at once, and one bad moment in both
// together decides nothing that it would not decide in the long run.
type level struct {
	rate  float64
	steps []result.Step // valid ones
	late  []result.Step // invalid ones, which show the load generator
}

// maxAttempts is how often a rate is measured that breaks the service level, and how often
// one at which the load generator is late.
const maxAttempts = 2

func (l level) seconds() (all []result.Second) {
	for _, m := range l.steps {
		all = append(all, m.Seconds...)
	}
	return all
}

func (l level) duration() (sum float64) {
	for _, m := range l.steps {
		sum += m.DurationS
	}
	return sum
}

// judge reports whether the rate met the service level, over all its steps together, and
// why not. Requests that failed or were never sent are over each limit.
func (l level) judge(slo result.SLO) (met bool, why string) {
	if len(l.steps) == 0 {
		return false, strings.Join(l.late[len(l.late)-1].Validity.Because, "; ")
	}
	seconds := l.seconds()
	due, failed := int64(0), int64(0)
	for _, s := range seconds {
		due += s.Due
		failed += s.Errors + s.Dropped
	}
	failedShare := float64(failed) / float64(due)
	for _, goal := range slo.Latencies {
		over, bad := int64(0), 0
		for _, s := range seconds {
			over += s.Over(goal.MS)
			if !goal.Allows(s.Over(goal.MS), s.Due) {
				bad++
			}
		}
		if !goal.Allows(over, due) && goal.Allows(over-failed, due) && failedShare > slo.Errors {
			break // by the failed ones alone: they are the reason
		}
		if !goal.Allows(over, due) {
			return false, fmt.Sprintf("%s of the requests took longer than %s ms or failed, in %d of %d seconds",
				format.Percent(float64(over)/float64(due)), format.Short(goal.MS), bad, len(seconds))
		}
	}
	if failedShare > slo.Errors {
		return false, fmt.Sprintf("errors: %s of the requests failed or were never sent", format.Percent(failedShare))
	}
	for _, m := range l.steps {
		if !m.Hold {
			continue // in a few seconds chance decides
		}
		if m.Load.Overloaded() {
			return false, fmt.Sprintf("overloaded: %s/s achieved of %s/s", format.Number(m.Load.AchievedPerS), format.Number(*m.Load.OfferedPerS))
		}
		if start, end, growing := backlog(m, slo); growing {
			return false, fmt.Sprintf("growing backlog: %s waited for an answer at the beginning and %s at the end", format.Plural(start, "request"), format.Count(end))
		}
	}
	return true, ""
}

// growingShare of the requests of a step are more than a stable queue grows by.
const growingShare = 0.005

// backlog returns how many requests waited for an answer at the beginning and at the end of
// a step. They are growing if more were added than are due within a limit of the latency.
func backlog(m result.Step, slo result.SLO) (start, end int64, growing bool) {
	if m.Load.UnansweredStart == nil || m.Load.UnansweredEnd == nil {
		return 0, 0, false
	}
	start, end = *m.Load.UnansweredStart, *m.Load.UnansweredEnd
	most := growingShare * float64(m.Load.Requests)
	for _, goal := range slo.Latencies {
		most = max(most, m.RatePerS*goal.MS/1000)
	}
	return start, end, float64(end-start) > most
}

// held describes a level that was held.
func (l level) held(slo result.SLO) *result.Held {
	seconds := l.seconds()
	h := &result.Held{RatePerS: l.rate, DurationS: result.Round(l.duration())}
	latencies, bad := result.NewHistogram(), 0
	for _, s := range seconds {
		h.Errors += s.Errors + s.Dropped
		for _, us := range s.LatencyUS {
			_ = latencies.RecordValue(min(int64(us), result.HighestUS)) // in the histogram's range
		}
		for _, goal := range slo.Latencies {
			if !goal.Allows(s.Over(goal.MS), s.Due) {
				bad++
				break
			}
		}
	}
	h.LatencyMS = result.LatencyOf(latencies)
	h.OverLimitShare = result.Round(float64(bad) / float64(len(seconds)))
	h.Interval = intervals(seconds, slo)
	return h
}

// next describes a level that was not held.
func (l level) next(slo result.SLO) *result.Next {
	_, why := l.judge(slo)
	steps := l.steps
	if len(steps) == 0 {
		steps = l.late
	}
	why += fmt.Sprintf("; %s, %s s in all", format.Plural(int64(len(steps)), "attempt"), format.Number(level{steps: steps}.duration()))
	return &result.Next{RatePerS: l.rate, Why: why}
}

// left returns how many more requests of a level may be over the limit of a goal, if all its
// attempts have this length. Below 0 it is certain that the level will not be met.
func (l level) left(goal result.LatencyGoal, length time.Duration) float64 {
	left := l.rate * length.Seconds() * maxAttempts * goal.Allowed()
	for _, s := range l.seconds() {
		left -= float64(s.Over(goal.MS))
	}
	return left
}

// most returns after how many requests over a limit the next step ends, because another
// attempt could not make up for them.
func (l level) most(slo result.SLO, length time.Duration) (limits []result.OverLimit) {
	for _, goal := range slo.Latencies {
		limits = append(limits, result.OverLimit{MS: goal.MS, Most: int64(max(0, l.left(goal, length)))})
	}
	return limits
}

// decided reports whether another attempt could not make up for what is over the limits.
func (l level) decided(slo result.SLO, length time.Duration) bool {
	for _, goal := range slo.Latencies {
		if l.left(goal, length) < 0 {
			return true
		}
	}
	return false
}
