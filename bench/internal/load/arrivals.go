package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrival is how the requests of an open loop follow one another.
type Arrival string

// The arrivals.
const (
	// ArrivalConstant spaces them evenly.
	ArrivalConstant Arrival = "constant"
	// ArrivalPoisson lets them come independently of one another, as those of
	// many users do: the gaps are exponential, and so have bursts among them.
	ArrivalPoisson Arrival = "poisson"
)

// Validate checks that it is one of the above.
func (a Arrival) Validate() error {
	if a != ArrivalConstant && a != ArrivalPoisson {
		return fmt.Errorf("arrival: %q, must be %s or %s", a, ArrivalConstant, ArrivalPoisson)
	}
	return nil
}

// schedule says when the requests of a phase are due. It is the same every time
// that it is asked for its arrivals.
type schedule struct {
	profile Profile
	arrival Arrival
	seed    uint64
	planned time.Duration // length of the phase
}

func (c Config) schedule(profile Profile, planned time.Duration) *schedule {
	s := &schedule{profile, c.Arrival, c.Seed, planned}
	for s.seed == 0 {
		s.seed = rand.Uint64()
	}
	return s
}

// before is how many requests are due before a time of the phase.
func (s *schedule) before(at time.Duration) int64 {
	at = min(at, s.planned)
	a := s.arrivals()
	for a.at() < at {
		a.step()
	}
	return int64(a.next)
}

// offeredPerS is the mean rate until a time of the phase: of Poisson arrivals
// that of those which the seed made, which is what can be achieved.
func (s *schedule) offeredPerS(until time.Duration) float64 {
	requests := s.profile.until(until, s.planned)
	switch {
	case s.arrival == ArrivalPoisson:
		requests = float64(s.before(until))
	case until >= s.planned:
		return s.profile.Mean()
	}
	return math.Round(requests/until.Seconds()*1e6) / 1e6
}

// span is the time that the first n requests stand for, and the gap at its end:
// when the one after them is due, and how long after the last of them.
func (s *schedule) span(n int64) (span, gap time.Duration) {
	a := s.arrivals()
	for a.next+1 < uint64(n) {
		a.step()
	}
	last := a.at()
	a.step()
	return a.at(), a.at() - last
}

func (s *schedule) arrivals() *arrivals {
	a := &arrivals{schedule: s, passed: map[uint64]time.Duration{}}
	if s.arrival == ArrivalPoisson {
		a.random = rand.New(rand.NewPCG(s.seed, 0))
		a.position = a.random.ExpFloat64()
	}
	return a
}

// arrivals walks through a schedule. Poisson arrivals are those of rate 1, with
// the time stretched so that the profile comes out of it.
type arrivals struct {
	*schedule
	random   *rand.Rand // nil: evenly spaced
	next     uint64     // number of the request
	position float64    // of it: how many are due before it, on average

	passed map[uint64]time.Duration // due times that were passed and not asked for
}

// at is when the next request is due, from the start; after the last one, the
// end of the phase.
func (a *arrivals) at() time.Duration { return a.profile.reach(a.position, a.planned) }

func (a *arrivals) step() {
	a.next++
	if a.random != nil {
		a.position += a.random.ExpFloat64()
	} else {
		a.position = float64(a.next)
	}
}

// due is when request i is due. Each may be asked for once, in about their
// order: those that were passed are remembered until then.
func (a *arrivals) due(i uint64) time.Duration {
	if due, ok := a.passed[i]; ok {
		delete(a.passed, i)
		return due
	}
	for ; a.next < i; a.step() {
		a.passed[a.next] = a.at()
	}
	due := a.at()
	a.step()
	return due
}
