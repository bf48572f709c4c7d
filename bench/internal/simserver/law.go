// Package simserver is a server with a known latency, to test what measures latency. It
// has one queue and exponential service times, so with Poisson arrivals it is M/M/1. It
// can also stall.
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
	random *rand.Rand
	free   time.Duration // when the last request so far is served
}

// NewQueue returns an idle server at time 0.
func (l Law) NewQueue(seed uint64) *Queue {
	return &Queue{law: l, random: rand.New(rand.NewPCG(seed, 1))}
}

// Arrive returns when a request is answered that arrives at a time. Times must not
// decrease.
func (q *Queue) Arrive(at time.Duration) (answered time.Duration) {
	work := time.Duration(q.random.ExpFloat64() / q.law.PerS * float64(time.Second))
	q.free = q.law.after(max(at, q.free), work)
	return q.free
}

// after returns when work that begins at start ends. Stalls interrupt it.
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

// Served has the times of an answered request.
type Served struct{ Arrived, Answered time.Duration }

// Latency returns the time from arrival to answer.
func (s Served) Latency() time.Duration { return s.Answered - s.Arrived }

// Simulate serves Poisson arrivals, perS per second, that arrive within the duration. It
// returns them in the order of their arrival.
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
