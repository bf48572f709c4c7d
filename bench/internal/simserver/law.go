// Package simserver is a server whose latency is known beforehand, to test what
// measures latency: one queue before one server with exponential service times,
// which with Poisson arrivals is M/M/1, and which can be made to stall.
//
// It runs in virtual time, for exact and long runs, or as an HTTP server in real
// time, where timers add up to a millisecond or two. The seed makes the service
// times the same every time in either.
package simserver

import (
	"math"
	"math/rand/v2"
	"time"
)

// Law is how the server takes its time.
type Law struct {
	// PerS is its capacity: how many requests it serves per second on average when
	// there is always one. The service times are exponential.
	PerS float64

	// StallFor is how long it does nothing at the beginning of every StallEvery.
	// Without StallEvery it never stalls.
	StallEvery, StallFor time.Duration
}

// Latency is the quantile, 0 to 1, of the time from arrival to answer of
// Poisson arrivals at a rate below PerS, without stalls: it is exponential with
// the rate PerS-perS (Kleinrock, Queueing Systems I, 3.2).
func (l Law) Latency(perS, quantile float64) time.Duration {
	return time.Duration(-math.Log(1-quantile) / (l.PerS - perS) * float64(time.Second))
}

// RateFor is the rate of Poisson arrivals at which the quantile of the latency is
// as given, without stalls: the inverse of Latency.
func (l Law) RateFor(latency time.Duration, quantile float64) (perS float64) {
	return l.PerS + math.Log(1-quantile)/latency.Seconds()
}

// Queue is the server in virtual time, for one goroutine.
type Queue struct {
	law    Law
	random *rand.Rand
	free   time.Duration // when the last of those that came is served
}

// NewQueue is an idle server at time 0.
func (l Law) NewQueue(seed uint64) *Queue {
	return &Queue{law: l, random: rand.New(rand.NewPCG(seed, 1))}
}

// Arrive says when a request is answered that arrives at a time, not before those
// that came before it.
func (q *Queue) Arrive(at time.Duration) (answered time.Duration) {
	work := time.Duration(q.random.ExpFloat64() / q.law.PerS * float64(time.Second))
	q.free = q.law.after(max(at, q.free), work)
	return q.free
}

// after is when work is done that begins at start: stalls interrupt it.
func (l Law) after(start, work time.Duration) time.Duration {
	if l.StallEvery <= 0 {
		return start + work
	}
	for {
		if into := start % l.StallEvery; into < l.StallFor {
			start += l.StallFor - into
		}
		left := l.StallEvery - start%l.StallEvery
		if work < left {
			return start + work
		}
		start, work = start+left, work-left
	}
}

// Served is a request that has been answered.
type Served struct{ Arrived, Answered time.Duration }

// Latency is the time between the two.
func (s Served) Latency() time.Duration { return s.Answered - s.Arrived }

// Simulate serves Poisson arrivals, perS per second, until no more arrive after
// the duration. Those that came are in the order in which they did.
func (l Law) Simulate(perS float64, duration time.Duration, seed uint64) []Served {
	q, random := l.NewQueue(seed), rand.New(rand.NewPCG(seed, 2))
	var all []Served
	for at := 0.0; ; {
		at += random.ExpFloat64() / perS
		arrived := time.Duration(at * float64(time.Second))
		if arrived >= duration {
			return all
		}
		all = append(all, Served{arrived, q.Arrive(arrived)})
	}
}
