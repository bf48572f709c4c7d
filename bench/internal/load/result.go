package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// Result is what was measured, without the warm-up unless a comment says otherwise.
type Result struct {
	Began   time.Time
	Elapsed time.Duration // to the last answer
	// Incomplete says why the run ended early; it is empty when it did not.
	Incomplete string

	counts

	// Costed counts the sagas that were acknowledged between the end of Begin and End,
	// those of the warm-up included: what was used in that time is divided by it. The
	// counters are read during Begin, in some ms, so the error is as many ms of the
	// measured part.
	Costed int64

	// Open loop: requests that were due and not answered yet, when the measured part
	// began and when sending ended. More at the end is a growing backlog. The second
	// includes the dropped requests.
	UnansweredStart, UnansweredEnd int64

	// Seconds has the requests of each second of the measured part, by when they were due.
	Seconds []result.Second

	Delayed int64 // open loop: sent late because MaxInFlight requests were in flight
	Dropped int64 // open loop: due before the end and not sent

	// Of acknowledged sagas, in µs. They are equal in a closed loop, where a request is
	// due when it is sent.
	Latency *hdrhistogram.Histogram // from the due time
	Service *hdrhistogram.Histogram // from the send
	// How long after its due time each request was sent that was not Delayed: the load
	// generator's fault.
	Lateness *hdrhistogram.Histogram
	Clamped  int64 // latencies above result.HighestUS, recorded as that

	Intervals    []result.Interval // about one a second
	AchievedPerS float64           // see Load
	Acknowledged int64             // sagas in the list of acknowledged ones, warm-up included

	mode     string
	inFlight int
	offered  *float64
	profile  Profile // open loop
	arrival  Arrival // open loop
	seed     *uint64 // of random arrivals
}

// counts are the answers to requests.
type counts struct {
	Requests     int64 // sent; the sum of the next three
	Succeeded    int64 // sagas acknowledged as succeeded
	Failed       int64 // sagas acknowledged as rolled back
	Errors       int64
	ErrorsByKind map[string]int64
}

// Sagas returns how many sagas were acknowledged, with any outcome.
func (c counts) Sagas() int64 { return c.Succeeded + c.Failed }

func (c *counts) add(outcome store.Status, kind string) {
	c.Requests++
	switch {
	case kind != "":
		c.Errors++
		c.ErrorsByKind[kind]++
	case outcome == store.StatusSucceeded:
		c.Succeeded++
	default:
		c.Failed++
	}
}

// mostFrequent returns the most frequent kind of error.
func (c counts) mostFrequent() (kind string) {
	for k, n := range c.ErrorsByKind {
		if most := c.ErrorsByKind[kind]; n > most || n == most && k < kind {
			kind = k
		}
	}
	return kind
}

// Load returns the part of the summary that says what was sent.
//
// The achieved rate is the rate of acknowledgements, over the time of the first 99%. In
// an open loop it is the offered rate, times the scheduled time of those requests over
// the time that they took. So a system that keeps up achieves the offered rate, however
// that changes. Answers follow sends by the service time, so the shortest service time
// is subtracted from the time taken. Requests of the warm-up that are answered later count
// too, with the time in which they were due.
func (r Result) Load() result.Load {
	l := result.Load{
		Mode: r.mode, InFlight: r.inFlight, OfferedPerS: r.offered, AchievedPerS: r.AchievedPerS,
		Requests: r.Requests, Errors: r.Errors, ErrorsByKind: r.ErrorsByKind,
	}
	if r.mode == result.Open {
		late := result.LatencyOf(r.Lateness)
		l.LatenessMS, l.Delayed, l.Dropped = &late, &r.Delayed, &r.Dropped
		l.UnansweredStart, l.UnansweredEnd = &r.UnansweredStart, &r.UnansweredEnd
		l.Profile, l.Arrival, l.Seed = r.profile.String(), string(r.arrival), r.seed
	}
	return l
}

// first99 returns how many sagas are 99% of the acknowledged ones, and when the last of
// them was acknowledged, since the start. So a late answer at the end does not lower the
// rate.
func first99(intervals []result.Interval, began time.Time) (sagas float64, took time.Duration) {
	var total int64
	for _, i := range intervals {
		total += i.Acknowledged
	}
	sagas = math.Ceil(0.99 * float64(total))
	seen := 0.0
	for _, i := range intervals {
		n := float64(i.Acknowledged)
		if n > 0 && seen+n >= sagas {
			// Assumes that answers are evenly spread over the interval.
			return sagas, i.Start.Sub(began) + time.Duration((sagas-seen)/n*float64(i.Length))
		}
		seen += n
	}
	return 0, 0
}

// perSecond returns a rate, rounded to a thousandth, or 0 for no time.
func perSecond(n float64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return result.Round(n / in.Seconds())
}
