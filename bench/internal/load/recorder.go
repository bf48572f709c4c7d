package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// recorder turns vegeta's results into a Result. One goroutine uses it.
type recorder struct {
	res      Result
	schedule *schedule            // nil in a closed loop
	arrivals *arrivals            // of it
	shortest time.Duration        // shortest service time of an acknowledged saga
	last     time.Time            // time of the last answer
	log      *result.HistogramLog // of the intervals; nil in the warm-up

	// The current interval: its latencies, which are added to res.Latency at its end,
	// and its start.
	interval *hdrhistogram.Histogram
	from     time.Time
}

// newRecorder records requests that are sent from began on, in a closed loop or, with a
// schedule, an open one.
func newRecorder(inFlight int, began time.Time, s *schedule) *recorder {
	m := &recorder{
		res: Result{
			Began: began, ErrorsByKind: map[string]int64{}, Latency: result.NewHistogram(), Service: result.NewHistogram(),
			mode: result.Closed, inFlight: inFlight,
		},
		last: began, interval: result.NewHistogram(), from: began,
	}
	if s != nil {
		m.res.mode, m.schedule, m.arrivals = result.Open, s, s.arrivals()
		m.res.profile, m.res.arrival = s.profile, s.arrival
	}
	return m
}

// add records one result and returns how late its request was sent. kind is empty for an
// acknowledged saga.
func (m *recorder) add(r *vegeta.Result, outcome store.Status, kind string) (late time.Duration) {
	m.res.Requests++
	if end := r.End(); end.After(m.last) {
		m.last = end
	}
	late = m.late(r)
	if late > result.LateAfter {
		m.res.Late++
	}
	switch {
	case kind != "":
		m.res.Errors++
		m.res.ErrorsByKind[kind]++
		return late
	case outcome == store.StatusSucceeded:
		m.res.Succeeded++
	default:
		m.res.Failed++
	}
	if m.shortest == 0 || r.Latency < m.shortest {
		m.shortest = r.Latency
	}
	if clamped := record(m.interval, r.Latency+late); clamped {
		m.res.Clamped++
	}
	record(m.res.Service, r.Latency)
	return late
}

// late returns how long after its due time a request was sent.
func (m *recorder) late(r *vegeta.Result) time.Duration {
	if m.arrivals == nil {
		return 0
	}
	return max(0, r.Timestamp.Sub(m.res.Began)-m.arrivals.due(r.Seq))
}

func record(h *hdrhistogram.Histogram, d time.Duration) (clamped bool) {
	us := max(1, d.Round(time.Microsecond).Microseconds())
	if us > result.HighestUS {
		us, clamped = result.HighestUS, true
	}
	// It cannot fail: the value is in the histogram's range.
	_ = h.RecordValue(us)
	return clamped
}

// endInterval ends the interval and begins the next. It returns errors of the log.
func (m *recorder) endInterval(now time.Time) (result.Interval, error) {
	i := result.NewInterval(m.interval, m.from, now)
	m.res.Intervals = append(m.res.Intervals, i)
	m.res.Latency.Merge(m.interval)
	var err error
	if m.log != nil {
		err = m.log.Interval(m.interval, m.from, now)
	}
	m.interval.Reset()
	m.from = now
	return i, err
}

// finish completes the result. Sending ended at stopped, since the start. The limit of
// requests in flight has delayed lateFull requests.
func (m *recorder) finish(stopped time.Duration, lateFull int64) {
	m.res.Elapsed = m.last.Sub(m.res.Began)
	acknowledged, took := first99(m.res.Intervals, m.res.Began)
	if m.schedule == nil {
		m.res.AchievedPerS = perSecond(acknowledged, took)
		return
	}
	offered := m.schedule.offeredPerS(stopped)
	m.res.offered = &offered
	m.res.LateOwn = max(0, m.res.Late-lateFull)
	m.res.Dropped = max(0, m.schedule.before(stopped)-m.res.Requests)
	if acknowledged > 0 {
		share := float64(m.res.Sagas()) / float64(m.res.Requests)
		span, gap := m.schedule.span(int64(math.Round(acknowledged / share)))
		m.res.AchievedPerS = perSecond(offered*share*span.Seconds(), took+gap-m.shortest)
	}
}

// mostFrequent returns the most frequent kind of error.
func (m *recorder) mostFrequent() (kind string) {
	for k, n := range m.res.ErrorsByKind {
		if most := m.res.ErrorsByKind[kind]; n > most || n == most && k < kind {
			kind = k
		}
	}
	return kind
}
