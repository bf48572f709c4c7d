package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/report"
	"sagabench/store"
)

// meter turns results into numbers. It is used by one goroutine.
type meter struct {
	res      Result
	pacer    *openPacer           // nil in a closed loop
	shortest time.Duration        // service time of an acknowledged saga
	last     time.Time            // answer
	log      *report.HistogramLog // of the intervals; nil while warming up

	// The interval under way: its latencies, which res.Latency gets when it
	// ends, and when it began.
	interval *hdrhistogram.Histogram
	from     time.Time
}

func newMeter(cfg Config, began time.Time, pacer *openPacer) *meter {
	m := &meter{
		res: Result{
			Began:        began,
			ErrorsByKind: map[string]int64{},
			Latency:      report.NewHistogram(),
			Service:      report.NewHistogram(),
			mode:         report.Closed,
			inFlight:     cfg.workers(),
		},
		pacer:    pacer,
		last:     began,
		interval: report.NewHistogram(),
		from:     began,
	}
	if cfg.open() {
		m.res.mode, m.res.offered = report.Open, &cfg.Rate
	}
	return m
}

// add counts one result; kind is empty for an acknowledged saga.
func (m *meter) add(r *vegeta.Result, outcome store.Status, kind string) {
	m.res.Requests++
	if end := r.End(); end.After(m.last) {
		m.last = end
	}
	late := m.late(r)
	if late > report.LateAfter {
		m.res.Late++
	}
	switch {
	case kind != "":
		m.res.Errors++
		m.res.ErrorsByKind[kind]++
		return
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
}

// late is how long after it was due a request was sent.
func (m *meter) late(r *vegeta.Result) time.Duration {
	if m.pacer == nil {
		return 0
	}
	return max(0, r.Timestamp.Sub(m.res.Began)-m.pacer.due(r.Seq))
}

func record(h *hdrhistogram.Histogram, d time.Duration) (clamped bool) {
	us := max(1, d.Round(time.Microsecond).Microseconds())
	if us > report.HighestUS {
		us, clamped = report.HighestUS, true
	}
	// It cannot fail: the value is within the histogram's range.
	_ = h.RecordValue(us)
	return clamped
}

// endInterval closes the interval at now and begins the next. Its error is that
// of the log.
func (m *meter) endInterval(now time.Time) (report.Interval, error) {
	i := report.NewInterval(m.interval, m.from, now)
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

// finish completes the result. Sending went on until stopped, from the start.
func (m *meter) finish(cfg Config, stopped time.Duration) Result {
	m.res.Elapsed = m.last.Sub(m.res.Began)
	m.res.AchievedPerS = achieved(m.res.Intervals, m.res.Began, cfg.Rate, m.shortest)
	if m.pacer != nil {
		m.res.LateOwn = max(0, m.res.Late-m.pacer.lateFull)
		m.res.Dropped = max(0, m.pacer.scheduled(stopped)-m.res.Requests)
	}
	return m.res
}

// mostFrequent is the kind of error that came most often.
func (m *meter) mostFrequent() (kind string) {
	for k, n := range m.res.ErrorsByKind {
		if most := m.res.ErrorsByKind[kind]; n > most || n == most && k < kind {
			kind = k
		}
	}
	return kind
}
