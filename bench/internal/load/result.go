package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sagabench/bench/internal/report"
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

	Intervals    []report.Interval // about one a second
	AchievedPerS float64           // see achieved
	Acknowledged int64             // sagas in the journal, warm-up included

	mode     string
	inFlight int
	offered  *float64
}

// Sagas is how many were acknowledged in the measured part, one way or the
// other: what the costs are divided by.
func (r Result) Sagas() int64 { return r.Succeeded + r.Failed }

// Load is the part of the summary that says what was sent.
func (r Result) Load() report.Load {
	l := report.Load{
		Mode:         r.mode,
		InFlight:     r.inFlight,
		OfferedPerS:  r.offered,
		AchievedPerS: r.AchievedPerS,
		Requests:     r.Requests,
		Errors:       r.Errors,
		ErrorsByKind: r.ErrorsByKind,
	}
	if r.mode == report.Open {
		l.Late, l.Dropped = &r.Late, &r.Dropped
	}
	return l
}

// achieved is the rate at which sagas were acknowledged, in sagas per second:
// the time is that which the first 99% took, so that a straggler at the end
// does not count as a lower rate. In an open loop the answers trail the sends by
// the service time, so the shortest one is taken off: a slow system that keeps
// up has achieved what was offered.
func achieved(intervals []report.Interval, began time.Time, openRate float64, shortest time.Duration) float64 {
	var total int64
	for _, i := range intervals {
		total += i.Acknowledged
	}
	if total == 0 {
		return 0
	}
	wanted := math.Ceil(0.99 * float64(total))
	seen := 0.0
	for _, i := range intervals {
		n := float64(i.Acknowledged)
		if seen+n < wanted {
			seen += n
			continue
		}
		// Within its interval the answer's time is taken to be proportional.
		took := i.Start.Sub(began) + time.Duration((wanted-seen)/n*float64(i.Length))
		if openRate > 0 {
			// Of n requests the first is due at 0 and the last n-1 intervals
			// later, so one more is the time that they stand for.
			took += time.Duration(float64(time.Second)/openRate) - shortest
		}
		return math.Round(wanted/took.Seconds()*1000) / 1000
	}
	return 0
}
