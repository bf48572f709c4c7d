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

// schedule says when requests are due, as times of the measured part. Those of the
// warm-up are negative; the arrival process goes on from one to the other. All arrivals
// that it returns are the same.
type schedule struct {
	profile Profile
	arrival Arrival
	seed    uint64
	planned time.Duration // length of the measured part
	warmup  float64       // requests of the warm-up, on average
}

func (c Config) schedule() *schedule {
	s := &schedule{profile: c.Rate, arrival: c.Arrival, seed: c.Seed, planned: c.Duration}
	if c.Warmup > 0 {
		// A whole number, so that a measured part of constant gaps begins with a request.
		s.warmup = max(1, math.Round(s.profile.first()*c.Warmup.Seconds()))
	}
	for s.seed == 0 {
		s.seed = rand.Uint64() >> 11 // a number of JSON holds 53 bits
	}
	return s
}

// reach returns when so many requests are due, on average, the warm-up's included.
func (s *schedule) reach(requests float64) time.Duration {
	if requests < s.warmup {
		return time.Duration((requests - s.warmup) / s.profile.first() * float64(time.Second))
	}
	return s.profile.reach(requests-s.warmup, s.planned)
}

// perSecond returns how many requests are due in each second of the measured part, up to
// a time.
func (s *schedule) perSecond(until time.Duration) (due []int64) {
	until = min(until, s.planned)
	a := s.measured()
	for at := a.at(); at < until; at = a.at() {
		for len(due) <= secondOf(at) {
			due = append(due, 0)
		}
		due[secondOf(at)]++
		a.step()
	}
	return due
}

// before returns how many requests of the measured part are due before a time.
func (s *schedule) before(at time.Duration) (n int64) {
	for _, due := range s.perSecond(at) {
		n += due
	}
	return n
}

func secondOf(at time.Duration) int { return int(at / time.Second) }

// offeredPerS returns the mean rate until a time of the measured part. With random gaps
// it is that of the requests which the seed made, since no more can be achieved.
func (s *schedule) offeredPerS(until time.Duration) float64 {
	requests := s.profile.until(until, s.planned)
	switch {
	case until <= 0:
		return s.profile.first()
	case processes[s.arrival] != nil:
		requests = float64(s.before(until))
	case until >= s.planned:
		return s.profile.Mean()
	}
	return math.Round(requests/until.Seconds()*1e6) / 1e6
}

// span returns when request n of the measured part, counted from 0, is due, and how long
// that is after the request before it: the first n requests stand for that time.
func (s *schedule) span(n int64) (span, gap time.Duration) {
	a := s.measured()
	for ; n > 1; n-- {
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

// measured returns the arrivals of the measured part.
func (s *schedule) measured() *arrivals {
	a := s.arrivals()
	for a.at() < 0 {
		a.step()
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

// at returns when the next request is due. After the last one, it returns the end of the
// measured part.
func (a *arrivals) at() time.Duration { return a.reach(a.position) }

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
