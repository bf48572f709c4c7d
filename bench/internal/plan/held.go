package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// held is the highest rate that met the service level for the whole of a hold or a run.
type held struct {
	rate      float64
	seconds   float64
	steps     []result.Step // at that rate
	next      *float64      // a higher rate that was tried and not held; nil: there is none
	why       string        // the same was not
	low, high *float64      // of several searches
	spans     string        // that they are of
}

// held finds that rate in all results. Of several searches it is the lower median; a search
// that held none counts as 0. A run of a higher rate that met the service level has held it.
func (e evidence) held(slo result.SLO) (held, error) {
	for _, goal := range slo.Latencies {
		if !result.HasPercentile(goal.Percentile) {
			return held{}, fmt.Errorf("%w: p%v is not measured; p50, p90, p95, p99, p99.9 and p99.99 are", ErrNoPlan, goal.Percentile)
		}
	}
	var searched []held
	var rates []float64 // of each search, also of those repeated in one result
	var found, run held
	why := "no rate was tried for long enough"
	for _, s := range e.sources {
		h, reason := s.held(slo)
		if why = cmp.Or(reason, why); s.search != nil {
			searched = append(searched, h)
			rates = append(rates, s.rates(slo, h)...)
		} else {
			run = h
		}
	}
	if n := len(searched); n > 0 {
		slices.SortFunc(searched, func(a, b held) int { return cmp.Compare(a.rate, b.rate) })
		found = searched[(n-1)/2]
		if len(rates) > 1 {
			low, high := slices.Min(rates), slices.Max(rates)
			found.low, found.high, found.spans = &low, &high, between(len(rates))
		}
	}
	if run.rate > found.rate {
		found = run
	}
	if found.rate == 0 {
		return held{}, fmt.Errorf("%w: no rate was held at %s: %s", ErrNoPlan, slo.LatencyLimits(), why)
	}
	return found, nil
}

// held is what the search says for its own service level. For another one, and of runs,
// it judges each try again. It returns why if no rate was held.
func (s source) held(slo result.SLO) (h held, why string) {
	tries := s.tried
	if c := s.search; c != nil {
		tries = slices.DeleteFunc(slices.Clone(tries), func(m result.Step) bool { return !m.Hold })
		if reflect.DeepEqual(c.SLO, slo) {
			if c.Held == nil {
				return h, cmp.Or(cannotTell(c), "the search held none")
			}
			h = held{rate: c.Held.RatePerS, seconds: c.Held.DurationS}
			if c.Next != nil {
				h.next, h.why = &c.Next.RatePerS, c.Next.Why
			}
			h.steps = c.HeldSteps()
			return h, ""
		}
	}
	whole := 0.0 // a search ends a hold early that is broken for certain; what was left may have met another level
	if s.search != nil {
		whole = wholeShare * s.search.HoldS
	}
	groups := byRate(tries)
	for i := len(groups) - 1; i >= 0; i-- {
		offered := intended(groups[i][0])
		var met []result.Step
		reason := ""
		for _, m := range groups[i] {
			switch ok, because := slo.Judge(m.Measurement); {
			case !yes(ok):
				reason = because
			case m.DurationS < whole:
				reason = fmt.Sprintf("its hold ended after %s s", format.Number(m.DurationS))
			default:
				met = append(met, m)
			}
		}
		if 2*len(met) > len(groups[i]) {
			h.rate, h.steps = offered, met
			for _, m := range met {
				h.seconds = max(h.seconds, m.DurationS)
			}
			return h, ""
		}
		h.next, h.why, why = &offered, reason, fmt.Sprintf("not even %s/s (%s)", format.Number(offered), reason)
	}
	if s.search != nil {
		why = cmp.Or(why, cannotTell(s.search))
	}
	return h, cmp.Or(why, "the search held no rate long enough to judge it again")
}

// cannotTell says why a search has no answer; empty if it has one.
func cannotTell(c *result.Capacity) string {
	switch {
	case c.CannotTell != "":
		return "the search cannot tell: " + c.CannotTell
	case len(c.Searches) == 0:
		return "the search did not end"
	}
	return ""
}

// rates are those that each search of a result that can tell held, 0 for none. For another
// service level there is one: h.
func (s source) rates(slo result.SLO, h held) (rates []float64) {
	if len(result.CanTell(s.search.Searches)) == 0 || !reflect.DeepEqual(s.search.SLO, slo) {
		return []float64{h.rate}
	}
	for _, one := range result.CanTell(s.search.Searches) {
		rate := 0.0
		if one.Held != nil {
			rate = one.Held.RatePerS
		}
		rates = append(rates, rate)
	}
	return rates
}

// A hold of wholeShare of its planned length is a whole one: some end early by chance.
const wholeShare = 0.9

func yes(met *bool) bool { return met != nil && *met }

// line is what the plan stands on.
func (h held) line(e evidence) Line {
	l := Line{
		What: "highest held rate", Value: &h.rate, Low: h.low, High: h.high, Spans: h.spans, Unit: "sagas/s",
		Basis: fmt.Sprintf("it met the service level for %s s (%s)", format.Number(h.seconds), e.names()),
	}
	if h.next != nil {
		l.Basis += fmt.Sprintf("; %s/s did not: %s", format.Number(*h.next), h.why)
	}
	return l
}

// processor is one whose use may show how busy it may be.
type processor struct {
	name string
	busy measure
}

// usable is how busy the busiest of some processors was at the held rate, and which it was.
func (h held) usable(of ...processor) (share float64, which string) {
	for _, p := range of {
		if x := mean(h.steps, p.busy); x != nil && min(1, *x) > share {
			share, which = min(1, *x), p.name
		}
	}
	return share, which
}
