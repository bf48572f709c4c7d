package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxRate is the highest rate of a Profile, in requests per second. One load generator
// cannot send nearly as many.
const MaxRate = 1e6

// Profile is the rate of an open loop over time. It has parts of equal length. In each,
// the rate is constant or changes linearly. The zero Profile means a closed loop.
type Profile struct{ parts []part }

// part is a linear change of the rate, in requests per second.
type part struct{ from, to float64 }

// Constant returns a profile of one rate, in requests per second.
func Constant(perS float64) Profile { return Steps(perS) }

// Steps returns a profile of several rates, in requests per second, each for an equal
// part of the time.
func Steps(perS ...float64) Profile {
	var p Profile
	for _, rate := range perS {
		p.parts = append(p.parts, part{rate, rate})
	}
	return p
}

// Ramp returns a profile that changes linearly between two rates, in requests per second.
func Ramp(from, to float64) Profile { return Profile{[]part{{from, to}}} }

// IsOpen reports whether there is a rate.
func (p Profile) IsOpen() bool { return len(p.parts) > 0 }

// Mean returns the mean rate, in requests per second; 0 for the zero Profile.
func (p Profile) Mean() float64 {
	if !p.IsOpen() {
		return 0
	}
	sum := 0.0
	for _, part := range p.parts {
		sum += part.mean()
	}
	return sum / float64(len(p.parts))
}

// String returns the profile in the syntax of --rate: 500/s, 100/s,200/s or 100/s..2000/s.
func (p Profile) String() string {
	perS := func(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) + "/s" }
	texts := make([]string, len(p.parts))
	for i, part := range p.parts {
		texts[i] = perS(part.from)
		if part.to != part.from {
			texts[i] += ".." + perS(part.to)
		}
	}
	return strings.Join(texts, ",")
}

// Validate checks the rates.
func (p Profile) Validate() error {
	for _, part := range p.parts {
		for _, rate := range []float64{part.from, part.to} {
			if !(rate > 0 && rate <= MaxRate) { // refuses NaN, too
				return fmt.Errorf("rate %v/s: must be more than 0 and at most %v", rate, MaxRate)
			}
		}
	}
	return nil
}

// first returns the rate with which the profile begins.
func (p Profile) first() float64 { return p.parts[0].from }

// rate returns the rate at a time of the planned length.
func (p Profile) rate(at, planned time.Duration) float64 {
	whole := at.Seconds() / planned.Seconds() * float64(len(p.parts))
	k := max(0, min(int(whole), len(p.parts)-1))
	return p.parts[k].from + (p.parts[k].to-p.parts[k].from)*min(1, whole-float64(k))
}

// reach returns when so many requests are due, on average, in a phase of the planned
// length. If there are fewer, it returns the end of the phase.
func (p Profile) reach(requests float64, planned time.Duration) time.Duration {
	length := planned.Seconds() / float64(len(p.parts))
	for k, part := range p.parts {
		n := part.mean() * length
		if requests < n {
			return min(planned, time.Duration((float64(k)*length+part.reach(requests, length))*float64(time.Second)))
		}
		requests -= n
	}
	return planned
}

// until returns how many requests are due before a time, on average.
func (p Profile) until(at, planned time.Duration) (requests float64) {
	length := planned.Seconds() / float64(len(p.parts))
	for k, part := range p.parts {
		t := max(0, min(at.Seconds()-float64(k)*length, length))
		requests += part.from*t + (part.to-part.from)*t*t/(2*length)
	}
	return requests
}

func (p part) mean() float64 { return (p.from + p.to) / 2 }

// reach solves from·t + (to−from)·t²/(2·length) = requests for t, in seconds,
// in the form that is exact for a constant rate.
func (p part) reach(requests, length float64) float64 {
	return 2 * requests / (p.from + math.Sqrt(p.from*p.from+2*(p.to-p.from)*requests/length))
}
