package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// The rates that are tried are best·gridRatio^k for whole k, where best is the highest
// throughput of the closed loops.
const (
	gridRatio = 0.975
	firstK    = 14  // 0.70 of best
	highestK  = -7  // 1.2 of best: a closed loop may have been unlucky
	lowestK   = 155 // 0.02 of best
	// holds is how often the answer is held.
	holds = 2
	// limitHolds is after how many holds, with their warm-ups, a search begins no other
	// measurement. On an even machine it takes about 7.
	limitHolds = 12
	// backRatio of the highest rate that met the service level in one hold is the first
	// rate to be held: that one may have been lucky.
	backRatio = 0.95
)

// searcher is one search for the highest rate that is held.
type searcher struct {
	cfg     Config
	best    float64 // sagas/s
	open    func(ctx context.Context, rate float64, length time.Duration, hold bool, most []result.OverLimit) (result.Step, error)
	recheck func(ctx context.Context) (result.Step, error)
	paces   []float64 // throughput of each recheck
	broken  *level    // the lowest rate that was to be held and was not
	lastMet *level    // the last rate that met the service level for a whole hold
	until   time.Time // its limit
}

// errTimeLimit ends a search that takes too long.
var errTimeLimit = errors.New("time limit")

// timeLimit is how long a search may take: on a machine whose speed changes it could go on for
// long, and then has no answer.
func (c Config) timeLimit() time.Duration { return limitHolds * (c.Hold + c.Load.Warmup) }

// search returns the highest rate that is held. After its time limit it returns the last rate
// that met the service level for a hold, unless a lower one did not. After an error it returns
// nothing.
func (s *searcher) search(ctx context.Context) (found result.Search, err error) {
	s.until = time.Now().Add(s.cfg.timeLimit())
	answer, err := s.find(ctx)
	if errors.Is(err, errTimeLimit) {
		limit := s.cfg.timeLimit().Seconds()
		found.LimitS, err = &limit, nil
		if s.lastMet != nil && (s.broken == nil || s.lastMet.rate < s.broken.rate) {
			answer = s.lastMet
		}
	}
	if err != nil {
		return found, err
	}
	if answer != nil {
		found.Held = answer.held(s.cfg.SLO)
	}
	if s.broken != nil {
		found.Next = s.broken.next(s.cfg.SLO)
	}
	return s.doubt(found), nil
}

// find returns the highest rate that is held twice, or nil if none is.
func (s *searcher) find(ctx context.Context) (*level, error) {
	k, ok, err := walk(firstK, func(k int) (bool, error) { return s.met(ctx, k, false) })
	if !ok {
		k = firstK // a whole hold may bear what no short step did
	}
	if err == nil {
		k, ok, err = walk(k, func(k int) (bool, error) { return s.met(ctx, k, true) })
	}
	if err != nil || !ok {
		return nil, err
	}
	answer, ok, err := s.hold(ctx, k)
	if err != nil || !ok {
		return nil, err
	}
	return &answer, nil
}

// rate returns a rate of the grid, in requests per second.
func (s *searcher) rate(k int) float64 { return threeDigits(s.best * math.Pow(gridRatio, float64(k))) }

// walk finds a k that is met while k-1 is not: from k on by steps that double, up or down,
// and then by bisection. ok is false if none is met.
func walk(k int, met func(int) (bool, error)) (found int, ok bool, err error) {
	good, bad := lowestK+1, highestK-1 // met and broken; at first out of bounds
	next := k
	for step := 1; ; {
		if ok, err = met(next); err != nil {
			return next, false, err
		}
		if ok {
			good = next
		} else {
			bad = next
		}
		switch {
		case bad < highestK: // all are met until now
			next = max(good-step, highestK)
			step *= 2
		case good > lowestK: // none is
			next = min(bad+step, lowestK)
			step *= 2
		default:
			next = (good + bad) / 2
		}
		if next == good || next == bad {
			return good, good <= lowestK, nil
		}
	}
}

// hold returns the highest rate that is held twice, from a little below k on downwards. A
// single hold may be lucky where the speed of the system wanders.
func (s *searcher) hold(ctx context.Context, k int) (held level, ok bool, err error) {
	for down := 1; k <= lowestK; down *= 2 {
		held = level{}
		for range holds {
			var l level
			if l, ok, err = s.measure(ctx, threeDigits(backRatio*s.rate(k)), true); err != nil {
				return held, false, err
			}
			if !ok {
				break
			}
			held.rate, held.steps = l.rate, append(held.steps, l.steps...)
		}
		if ok {
			return held, true, nil
		}
		k += down
	}
	return held, false, nil
}

func (s *searcher) met(ctx context.Context, k int, hold bool) (bool, error) {
	_, met, err := s.measure(ctx, s.rate(k), hold)
	return met, err
}

// measure reports whether a rate meets the service level, for a whole hold or a short
// step.
func (s *searcher) measure(ctx context.Context, rate float64, hold bool) (l level, met bool, err error) {
	l.rate = rate
	length := s.cfg.stepLength(rate)
	if hold {
		if length = s.cfg.Hold; rate*length.Seconds() < samples(s.cfg.SLO) {
			return l, false, nil // too few to tell
		}
		pace, err := s.recheck(ctx)
		if err != nil {
			return l, false, err
		}
		s.paces = append(s.paces, medianPerS(pace))
	}
	for len(l.steps) < maxAttempts && len(l.late) < maxAttempts {
		if time.Now().After(s.until) {
			err = errTimeLimit
			break
		}
		m, err := s.open(ctx, rate, length, hold, l.most(s.cfg.SLO, length))
		if err != nil {
			return l, false, err
		}
		if !m.Validity.Valid {
			l.late = append(l.late, m)
			continue
		}
		l.steps = append(l.steps, m)
		if met, _ = l.judge(s.cfg.SLO); met {
			if hold {
				s.lastMet = &l
			}
			return l, true, nil
		}
		if l.decided(s.cfg.SLO, length) {
			break
		}
	}
	tried := len(l.steps)+len(l.late) > 0
	if hold && tried && (s.broken == nil || rate <= s.broken.rate) {
		s.broken = &l
	}
	return l, false, err
}

// unevenRatio is how far the throughputs of the same closed loop may be apart in a search
// that is to answer alone. Of several, the spread shows what an uneven machine does.
const (
	unevenRatio   = 1.5
	leastSearches = 3
)

// uneven returns how far the throughputs of the same closed loop were apart, as a ratio.
func (s *searcher) uneven() float64 {
	if len(s.paces) == 0 {
		return 1
	}
	return slices.Max(s.paces) / max(1, slices.Min(s.paces))
}

// doubt takes the answer back if the machine is too uneven for one.
func (s *searcher) doubt(found result.Search) result.Search {
	switch {
	case s.cfg.Repeat < leastSearches && s.uneven() > unevenRatio:
		found.CannotTell = fmt.Sprintf("the same closed loop carried %s/s to %s/s during the search: the speed of the machine or the store changes too much for one search: repeat it to see the spread",
			format.Number(slices.Min(s.paces)), format.Number(slices.Max(s.paces)))
	case found.Held == nil && found.LimitS != nil:
		found.CannotTell = fmt.Sprintf("its time limit of %d holds, %s s, ended the search before a rate was held", limitHolds, format.Number(*found.LimitS))
	case found.Held == nil && s.broken != nil && len(s.broken.steps) == 0:
		found.CannotTell = "the load generator was late at each rate that was to be held"
	case found.Held == nil && s.broken == nil:
		found.CannotTell = fmt.Sprintf("no rate was high enough for %s requests in a hold of %s s; lengthen it with --hold, or with hold in a variant file", format.Number(samples(s.cfg.SLO)), format.Number(s.cfg.Hold.Seconds()))
	default:
		return found
	}
	found.Held = nil
	return found
}

// medianPerS is the median throughput of the whole seconds of a closed loop: a stall in
// one of them does not change it.
func medianPerS(m result.Step) float64 {
	var perS []float64
	for i, s := range m.Seconds {
		if float64(i+1) <= m.DurationS {
			perS = append(perS, float64(s.Due))
		}
	}
	if len(perS) == 0 {
		return m.Load.AchievedPerS
	}
	slices.Sort(perS)
	return perS[len(perS)/2]
}

// samples returns how many requests the highest percentile of the service level takes.
func samples(slo result.SLO) (n float64) {
	for _, goal := range slo.Latencies {
		n = max(n, float64(result.SamplesFor(goal.Percentile)))
	}
	return n
}

// stepLength returns the length of a short step: as many requests as the percentile takes.
func (c Config) stepLength(rate float64) time.Duration {
	wanted := time.Duration(samples(c.SLO) / rate * float64(time.Second))
	return min(max(wanted, c.Step), c.Hold)
}

const (
	// recheckLength is the length of a recheck, as a multiple of that of a point of the
	// curve: its median second is compared.
	recheckLength = 2
	// A slow store is rechecked for longer in a short search: by chance alone, the
	// throughputs of a few hundred requests differ by more than unevenRatio.
	recheckRequests = 2000
	recheckMost     = 5 * time.Second
)

// recheckFor returns the length of a recheck of a closed loop with this throughput.
func (c Config) recheckFor(perS float64) time.Duration {
	wanted := time.Duration(recheckRequests / perS * float64(time.Second))
	return max(recheckLength*c.ScalingStep, min(wanted, recheckMost, c.Hold))
}

// threeDigits rounds to three significant digits.
func threeDigits(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}
