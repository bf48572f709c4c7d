package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
)

// Result is what was measured, without the warm-up unless a comment says otherwise.
type Result struct {
	Began   time.Time
	Elapsed time.Duration // to the last answer
	// Incomplete says why the run ended early; it is empty when it did not.
	Incomplete string

	Requests     int64 // sent; the sum of the next three
	Succeeded    int64 // sagas acknowledged as succeeded
	Failed       int64 // sagas acknowledged as rolled back
	Errors       int64
	ErrorsByKind map[string]int64

	Late    int64 // open loop: sent more than result.LateAfter after they were due
	LateOwn int64 // late, but not because of MaxInFlight: the load generator's fault
	Dropped int64 // open loop: due before the end and not sent

	// Of acknowledged sagas, in µs. They are equal in a closed loop, where a request is
	// due when it is sent.
	Latency *hdrhistogram.Histogram // from the due time
	Service *hdrhistogram.Histogram // from the send
	Clamped int64                   // latencies above result.HighestUS, recorded as that

	Intervals    []result.Interval // about one a second
	AchievedPerS float64           // see Load
	Acknowledged int64             // sagas in the list of acknowledged ones, warm-up included

	mode     string
	inFlight int
	offered  *float64
	profile  Profile // open loop
	arrival  Arrival // open loop
}

// Sagas returns how many sagas were acknowledged in the measured part, with any outcome.
// Costs are divided by it.
func (r Result) Sagas() int64 { return r.Succeeded + r.Failed }

// Load returns the part of the summary that says what was sent.
//
// The achieved rate is the rate of acknowledgements, over the time of the first 99%. In
// an open loop it is the offered rate, times the scheduled time of those requests over
// the time that they took. So a system that keeps up achieves the offered rate, however
// that changes. Answers follow sends by the service time, so the shortest service time
// is subtracted from the time taken.
func (r Result) Load() result.Load {
	l := result.Load{
		Mode: r.mode, InFlight: r.inFlight, OfferedPerS: r.offered, AchievedPerS: r.AchievedPerS,
		Requests: r.Requests, Errors: r.Errors, ErrorsByKind: r.ErrorsByKind,
	}
	if r.mode == result.Open {
		l.Late, l.Dropped = &r.Late, &r.Dropped
		l.Profile, l.Arrival = r.profile.String(), string(r.arrival)
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
