package load

import (
	"errors"
	"fmt"
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
	warm     counts // of the warm-up
	limits   []result.OverLimit
	over     []int64              // requests of the measured part that are over each
	schedule *schedule            // nil in a closed loop
	arrivals *arrivals            // of it
	delayed  *delayed             // nil: none was
	firstSeq uint64               // lowest sequence number of a measured request so far
	shortest time.Duration        // shortest service time of an acknowledged saga
	last     time.Time            // time of the last answer
	log      *result.HistogramLog // of the intervals; may be nil

	// The current interval: its latencies, which are added to res.Latency at its end, its
	// errors, and its start.
	measuring bool
	interval  *hdrhistogram.Histogram
	errors    int64
	from      time.Time
}

// newRecorder records requests that are sent in a closed loop or, with a schedule, an
// open one. The measured part begins at began.
func newRecorder(cfg Config, began time.Time, s *schedule) *recorder {
	m := &recorder{
		res: Result{
			Began: began, counts: counts{ErrorsByKind: map[string]int64{}}, Latency: result.NewHistogram(), Service: result.NewHistogram(), Lateness: result.NewHistogram(),
			mode: result.Closed, inFlight: cfg.workers(),
		},
		warm: counts{ErrorsByKind: map[string]int64{}}, limits: cfg.Limits, over: make([]int64, len(cfg.Limits)), firstSeq: math.MaxUint64,
		last: began, interval: result.NewHistogram(), from: began.Add(-cfg.Warmup),
	}
	if s != nil {
		m.res.mode, m.schedule, m.arrivals = result.Open, s, s.arrivals()
		m.res.profile, m.res.arrival = s.profile, s.arrival
		if processes[s.arrival] != nil {
			m.res.seed = &s.seed
		}
	}
	return m
}

// due returns when the request of a result was due: in a closed loop, when it was sent. It
// is negative in the warm-up.
func (m *recorder) due(r *vegeta.Result) time.Duration {
	if m.arrivals == nil {
		return r.Timestamp.Sub(m.res.Began)
	}
	return m.arrivals.due(r.Seq)
}

// begin ends the warm-up.
func (m *recorder) begin() {
	m.measuring = true
	m.interval.Reset()
	m.from = m.res.Began
}

// add records the result of a request that was due at a time, and returns how late it was
// sent. kind is empty for an acknowledged saga. Sending ends at stopped.
func (m *recorder) add(r *vegeta.Result, due, stopped time.Duration, outcome store.Status, kind string) (late time.Duration) {
	late = max(0, r.Timestamp.Sub(m.res.Began)-due)
	latency := late + r.Latency
	answered := due + latency
	byLimit := m.delayed != nil && m.delayed.take(r.Seq)
	if answered > stopped {
		m.res.UnansweredEnd++
	}
	if due < 0 {
		m.warm.add(outcome, kind)
		if answered > 0 {
			m.res.UnansweredStart++
		}
		if kind == "" && !m.measuring {
			record(m.interval, latency) // for the progress
		}
		return late
	}
	m.res.add(outcome, kind)
	m.firstSeq = min(m.firstSeq, r.Seq)
	if end := r.End(); end.After(m.last) {
		m.last = end
	}
	if byLimit {
		m.res.Delayed++
	} else {
		record(m.res.Lateness, late)
	}
	second := m.second(secondOf(due))
	second.Due++
	for i, limit := range m.limits {
		if kind != "" || latency.Seconds()*1000 > limit.MS {
			m.over[i]++
		}
	}
	if kind != "" {
		second.Errors++
		m.errors++
		return late
	}
	if m.shortest == 0 || r.Latency < m.shortest {
		m.shortest = r.Latency
	}
	if clamped := record(m.interval, latency); clamped {
		m.res.Clamped++
	}
	if len(m.limits) > 0 {
		second.LatencyUS = append(second.LatencyUS, uint32(min(latency.Microseconds(), result.HighestUS)))
	}
	record(m.res.Service, r.Latency)
	return late
}

// tooMany reports whether more requests are over a limit than it bears.
func (m *recorder) tooMany() bool {
	for i, limit := range m.limits {
		if m.over[i] > limit.Most {
			return true
		}
	}
	return false
}

// second returns a second of the measured part.
func (m *recorder) second(n int) *result.Second {
	for len(m.res.Seconds) <= n {
		m.res.Seconds = append(m.res.Seconds, result.Second{})
	}
	return &m.res.Seconds[n]
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
	i.Errors, m.errors = m.errors, 0
	var err error
	if m.measuring {
		m.res.Intervals = append(m.res.Intervals, i)
		m.res.Latency.Merge(m.interval)
		if m.log != nil {
			err = m.log.Interval(m.interval, m.from, now)
		}
	}
	m.interval.Reset()
	m.from = now
	return i, err
}

// finish completes the result. Sending ended at stopped.
func (m *recorder) finish(stopped time.Duration) {
	m.res.Elapsed = m.last.Sub(m.res.Began)
	acknowledged, took := first99(m.res.Intervals, m.res.Began)
	if m.schedule == nil {
		m.res.AchievedPerS = perSecond(acknowledged, took)
		return
	}
	offered := m.schedule.offeredPerS(stopped)
	m.res.offered = &offered
	for n, due := range m.schedule.perSecond(stopped) {
		second := m.second(n)
		dropped := max(0, due-second.Due)
		second.Due += dropped
		second.Dropped = dropped
		m.res.Dropped += dropped
	}
	m.res.UnansweredEnd += m.res.Dropped
	if m.res.Requests == 0 && m.res.Dropped > 0 {
		m.res.Elapsed = stopped // none was sent in that time, which was measured
	}
	if acknowledged > 0 {
		share := float64(m.res.Sagas()) / float64(m.res.Requests)
		span, gap := m.schedule.span(int64(math.Round(acknowledged / share)))
		// The rest of the warm-up was answered in that time, too.
		backlog := time.Duration(float64(m.res.UnansweredStart) / m.schedule.profile.first() * float64(time.Second))
		span += max(0, backlog-m.shortest)
		m.res.AchievedPerS = perSecond(offered*share*span.Seconds(), took+gap-m.shortest)
	}
}

var errAllFailed = errors.New("no saga was acknowledged")

// allFailed returns an error if all requests of the warm-up were answered with an error.
// ended says that there are no more answers.
func (m *recorder) allFailed(ended bool) error {
	w := m.warm
	if w.Errors == 0 || w.Errors < w.Requests || !ended && uint64(w.Errors) < m.firstSeq {
		return nil
	}
	return fmt.Errorf("%w: all %d requests of the warm-up failed (%s)", errAllFailed, w.Errors, w.mostFrequent())
}
