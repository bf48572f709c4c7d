// Package simserver is a server with a known latency, to test what measures latency. It
// has one queue and exponential service times, so with Poisson arrivals it is M/M/1. It
// can also stall, have bad seconds, and run on a machine whose speed wanders.
//
// It runs in virtual time, for exact and long runs, or as an HTTP server in real time,
// where timers add up to 2 ms. The seed determines the service times.
package simserver

import (
	"math"
	"math/rand/v2"
	"time"
)

// Law describes the server's service times.
type Law struct {
	// PerS is the capacity: the mean requests per second when the queue is never empty.
	PerS float64

	// The server stalls for StallFor at the beginning of every StallEvery; never, if
	// StallEvery is 0.
	StallEvery, StallFor time.Duration

	// BadShare of all seconds, independent of one another and of the load, are bad: those
	// who arrive in one wait for BadFor longer.
	BadShare float64
	BadFor   time.Duration

	// The speed wanders around PerS like an Ornstein-Uhlenbeck process, with this relative
	// standard deviation and correlation time. 0: it does not.
	WanderBy   float64
	WanderTime time.Duration
}

// Latency returns a quantile, 0 to 1, of the time from arrival to answer, for Poisson
// arrivals at a rate below PerS and without stalls. The latency is exponential with the
// rate PerS-perS (Kleinrock, Queueing Systems I, 3.2).
func (l Law) Latency(perS, quantile float64) time.Duration {
	return time.Duration(-math.Log(1-quantile) / (l.PerS - perS) * float64(time.Second))
}

// RateFor returns the rate of Poisson arrivals at which a quantile of the latency has the
// given value. It is the inverse of Latency.
func (l Law) RateFor(latency time.Duration, quantile float64) (perS float64) {
	return l.PerS + math.Log(1-quantile)/latency.Seconds()
}

// Queue is the server in virtual time, for one goroutine.
type Queue struct {
	law    Law
	seed   uint64
	random *rand.Rand
	free   time.Duration // when the last request so far is served

	wander *rand.Rand
	speeds []float64 // relative to law.PerS, in each tick so far
}

// NewQueue returns an idle server at time 0.
func (l Law) NewQueue(seed uint64) *Queue {
	return &Queue{law: l, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), wander: rand.New(rand.NewPCG(seed, 3))}
}

// Arrive returns when a request is answered that arrives at a time. Times must not
// decrease.
func (q *Queue) Arrive(at time.Duration) (answered time.Duration) {
	work := q.random.ExpFloat64() / q.law.PerS // seconds at the mean speed
	q.free = q.after(max(at, q.free), work)
	if q.law.BadShare > 0 && rand.New(rand.NewPCG(q.seed, uint64(at/time.Second))).Float64() < q.law.BadShare {
		return q.free + q.law.BadFor
	}
	return q.free
}

// after returns when work that begins at start ends.
func (q *Queue) after(start time.Duration, work float64) time.Duration {
	for {
		speed, until := q.speedAt(start)
		took := until
		if speed > 0 {
			took = start + time.Duration(work/speed*float64(time.Second))
		}
		if took < until {
			return took
		}
		work -= speed * (until - start).Seconds()
		start = until
	}
}

// tick is how long a wandering speed stays the same.
const tick = 10 * time.Millisecond

// slowest bounds a wandering speed.
const slowest = 0.05

// forever is later than any time of a simulation.
const forever = time.Duration(math.MaxInt64)

// speedAt returns the speed at a time, relative to the mean, and until when it lasts.
func (q *Queue) speedAt(at time.Duration) (speed float64, until time.Duration) {
	speed, until = 1, forever
	l := q.law
	if l.WanderBy > 0 {
		n := int(at / tick)
		for len(q.speeds) <= n {
			off := l.WanderBy * q.wander.NormFloat64()
			if last := len(q.speeds) - 1; last >= 0 {
				keep := math.Exp(-tick.Seconds() / l.WanderTime.Seconds())
				off = keep*(q.speeds[last]-1) + math.Sqrt(1-keep*keep)*off
			}
			q.speeds = append(q.speeds, 1+off)
		}
		speed, until = max(slowest, q.speeds[n]), time.Duration(n+1)*tick
	}
	if l.StallEvery > 0 {
		if into := at % l.StallEvery; into < l.StallFor {
			return 0, at + l.StallFor - into
		}
		until = min(until, at+l.StallEvery-at%l.StallEvery)
	}
	return speed, until
}

// Served has the times of an answered request.
type Served struct{ Arrived, Answered time.Duration }

// Latency returns the time from arrival to answer.
func (s Served) Latency() time.Duration { return s.Answered - s.Arrived }

// Simulate serves Poisson arrivals, perS per second, that arrive within the duration. It
// returns them in the order of their arrival.
func (l Law) Simulate(perS float64, duration time.Duration, seed uint64) []Served {
	var all []Served
	l.NewQueue(seed).Serve(perS, 0, duration, rand.New(rand.NewPCG(seed, 2)), func(s Served) bool {
		all = append(all, s)
		return true
	})
	return all
}

// Serve serves Poisson arrivals, perS per second, that arrive from a time on within the
// duration, and calls each with them in the order of their arrival until it returns false.
func (q *Queue) Serve(perS float64, from, duration time.Duration, random *rand.Rand, each func(Served) bool) {
	for at := 0.0; ; {
		at += random.ExpFloat64() / perS
		arrived := time.Duration(at * float64(time.Second))
		if arrived >= duration || !each(Served{from + arrived, q.Arrive(from + arrived)}) {
			return
		}
	}
}

// Saturate serves requests one after another without a pause, from a time on, and returns
// when each was answered. It is a closed loop; bad seconds do not show in it.
func (q *Queue) Saturate(from, duration time.Duration) []time.Duration {
	var answered []time.Duration
	for at := max(from, q.free); ; {
		q.Arrive(at)
		if at = q.free; at >= from+duration {
			return answered
		}
		answered = append(answered, at)
	}
}
