package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/result"
)

// Result is what was measured, the warm-up left out unless said otherwise.
type Result struct {
	Began   time.Time
	Elapsed time.Duration // to the last answer
	// Incomplete says why the run ended early; it is empty when it did not.
	Incomplete string

	Requests     int64 // sent; each was answered or is an error
	Succeeded    int64 // sagas that were acknowledged as such
	Failed       int64 // sagas that were rolled back, and acknowledged as such
	Errors       int64
	ErrorsByKind map[string]int64

	Late    int64 // open loop: sent more than report.LateAfter after they were due
	LateOwn int64 // of those, how many not for want of a free place in flight: the load generator's own doing
	Dropped int64 // open loop: due before the end and never sent

	// Of acknowledged sagas, in µs. In a closed loop a request is due when it
	// is sent, and both are the same.
	Latency *hdrhistogram.Histogram // from the due time
	Service *hdrhistogram.Histogram // from the send
	Clamped int64                   // latencies beyond report.HighestUS, recorded as that

	Intervals    []result.Interval // about one a second
	AchievedPerS float64           // see Load
	Acknowledged int64             // sagas in the journal, warm-up included

	mode     string
	inFlight int
	offered  *float64
	profile  Profile // open loop
	arrival  Arrival // likewise
}

// Sagas is how many were acknowledged in the measured part, one way or the
// other: what the costs are divided by.
func (r Result) Sagas() int64 { return r.Succeeded + r.Failed }

// Load is the part of the summary that says what was sent.
//
// The achieved rate is that at which sagas were acknowledged, over the time that
// the first 99% took. In an open loop it is the offered rate, less by as much as
// those took longer than they were scheduled for, so that a system that keeps up
// has achieved what was offered, however the rate changes. The answers trail the
// sends by the service time, which does not count as longer: the shortest one is
// taken off.
func (r Result) Load() result.Load {
	l := result.Load{
		Mode:         r.mode,
		InFlight:     r.inFlight,
		OfferedPerS:  r.offered,
		AchievedPerS: r.AchievedPerS,
		Requests:     r.Requests,
		Errors:       r.Errors,
		ErrorsByKind: r.ErrorsByKind,
	}
	if r.mode == result.Open {
		l.Late, l.Dropped = &r.Late, &r.Dropped
		l.Profile, l.Arrival = r.profile.String(), string(r.arrival)
	}
	return l
}

// most is how many sagas 99% of those acknowledged were, and when the last of
// them was, from the start: a straggler at the end is not to count as a lower
// rate.
func most(intervals []result.Interval, began time.Time) (sagas float64, took time.Duration) {
	var total int64
	for _, i := range intervals {
		total += i.Acknowledged
	}
	sagas = math.Ceil(0.99 * float64(total))
	seen := 0.0
	for _, i := range intervals {
		n := float64(i.Acknowledged)
		if n > 0 && seen+n >= sagas {
			// Within its interval the answer's time is taken to be proportional.
			return sagas, i.Start.Sub(began) + time.Duration((sagas-seen)/n*float64(i.Length))
		}
		seen += n
	}
	return 0, 0
}

// perSecond is a rate to a thousandth; 0 in no time.
func perSecond(n float64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return math.Round(n/in.Seconds()*1000) / 1000
}
