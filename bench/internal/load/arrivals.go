package load

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Arrival is the arrival process of an open loop: how the due times of requests follow
// one another.
type Arrival string

// The arrival processes.
const (
	// ArrivalConstant spaces requests evenly.
	ArrivalConstant Arrival = "constant"
	// ArrivalPoisson makes requests independent of one another, like those of many
	// users: the gaps are exponential, so that bursts occur.
	ArrivalPoisson Arrival = "poisson"
)

// processes draw the gap to the next request, with a mean of 1; nil: always 1. To add an
// arrival process, add its name above and its gaps here, and name it in the help of
// --arrival.
var processes = map[Arrival]func(*rand.Rand) float64{
	ArrivalConstant: nil,
	ArrivalPoisson:  (*rand.Rand).ExpFloat64,
}

// Validate returns an error unless a is one of the arrival processes.
func (a Arrival) Validate() error {
	if _, known := processes[a]; known {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(processes)) {
		names = append(names, string(name))
	}
	return fmt.Errorf("arrival: %q, must be %s", a, strings.Join(names, " or "))
}

// schedule says when the requests of a phase are due. All arrivals that it returns are
// the same.
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

// before returns how many requests are due before a time of the phase.
func (s *schedule) before(at time.Duration) int64 {
	at = min(at, s.planned)
	a := s.arrivals()
	for a.at() < at {
		a.step()
	}
	return int64(a.next)
}

// offeredPerS returns the mean rate until a time of the phase. With random gaps it is
// that of the requests which the seed made, since no more can be achieved.
func (s *schedule) offeredPerS(until time.Duration) float64 {
	requests := s.profile.until(until, s.planned)
	switch {
	case processes[s.arrival] != nil:
		requests = float64(s.before(until))
	case until >= s.planned:
		return s.profile.Mean()
	}
	return math.Round(requests/until.Seconds()*1e6) / 1e6
}

// span returns when request n, counted from 0, is due, and how long that is after the
// request before it: the first n requests stand for that time.
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
	a := &arrivals{schedule: s, gap: processes[s.arrival], skipped: map[uint64]time.Duration{}}
	if a.gap != nil {
		a.random = rand.New(rand.NewPCG(s.seed, 0))
		a.position = a.gap(a.random)
	}
	return a
}

// arrivals iterates over the due times of a schedule. They are those of an arrival
// process with rate 1, in a time that is stretched so that the rate follows the profile.
type arrivals struct {
	*schedule
	gap      func(*rand.Rand) float64 // nil: always 1
	random   *rand.Rand
	next     uint64  // number of the request
	position float64 // of it, in the time of rate 1

	skipped map[uint64]time.Duration // due times before next that due has not returned
}

// at returns when the next request is due, from the start of the phase. After the last
// request, it returns the end of the phase.
func (a *arrivals) at() time.Duration { return a.profile.reach(a.position, a.planned) }

func (a *arrivals) step() {
	a.next++
	if a.gap != nil {
		a.position += a.gap(a.random)
	} else {
		a.position = float64(a.next) // no sum of rounding errors
	}
}

// due returns when request i is due. It may be called once for each request, in about
// their order.
func (a *arrivals) due(i uint64) time.Duration {
	if due, ok := a.skipped[i]; ok {
		delete(a.skipped, i)
		return due
	}
	for ; a.next < i; a.step() {
		a.skipped[a.next] = a.at()
	}
	due := a.at()
	a.step()
	return due
}
