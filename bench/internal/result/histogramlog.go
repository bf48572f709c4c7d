package result

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// serviceTag marks the line of a histogram log with the service times of the whole run. Lines
// without a tag have the latencies of one interval each.
const serviceTag = "service"

// Interval is a part of the measured time, about a second long.
type Interval struct {
	Start        time.Time // to the millisecond
	Length       time.Duration
	Acknowledged int64
	Errors       int64         // failed requests; a histogram log does not have them
	P50, P99     time.Duration // of the latency; 0 if nothing was acknowledged
}

// NewInterval describes h, the latencies of the sagas acknowledged between start and end.
func NewInterval(h *hdrhistogram.Histogram, start, end time.Time) Interval {
	i := Interval{Start: start, Length: end.Sub(start), Acknowledged: h.TotalCount()}
	if i.Acknowledged > 0 {
		i.P50 = time.Duration(h.ValueAtQuantile(50)) * time.Microsecond
		i.P99 = time.Duration(h.ValueAtQuantile(99)) * time.Microsecond
	}
	return i
}

// PerS is the rate at which sagas were acknowledged.
func (i Interval) PerS() float64 {
	if i.Length <= 0 {
		return 0
	}
	return float64(i.Acknowledged) / i.Length.Seconds()
}

// HistogramLog writes a .hlog file, which HdrHistogram's tools read and merge. Its values are
// microseconds. The tools expect nanoseconds, so their column of maxima shows seconds.
type HistogramLog struct {
	w *hdrhistogram.HistogramLogWriter
}

// NewHistogramLog starts a log of a run that began at began.
func NewHistogramLog(w io.Writer, began time.Time) (*HistogramLog, error) {
	l := &HistogramLog{hdrhistogram.NewHistogramLogWriter(w)}
	for _, write := range []func() error{
		func() error { return l.w.OutputComment("[Latencies of acknowledged sagas in microseconds]") },
		l.w.OutputLogFormatVersion,
		func() error { return l.w.OutputStartTime(began.UnixMilli()) },
		l.w.OutputLegend,
	} {
		if err := write(); err != nil {
			return nil, fmt.Errorf("start the histogram log: %w", err)
		}
	}
	return l, nil
}

// Interval adds the latencies of one interval.
func (l *HistogramLog) Interval(h *hdrhistogram.Histogram, start, end time.Time) error {
	return l.add(h, "", start, end)
}

// Service adds the service times of the whole run.
func (l *HistogramLog) Service(h *hdrhistogram.Histogram, start, end time.Time) error {
	return l.add(h, serviceTag, start, end)
}

func (l *HistogramLog) add(h *hdrhistogram.Histogram, tag string, start, end time.Time) error {
	h.SetTag(tag)
	h.SetStartTimeMs(start.UnixMilli())
	h.SetEndTimeMs(end.UnixMilli())
	if err := l.w.OutputIntervalHistogram(h); err != nil {
		return fmt.Errorf("write the histogram log: %w", err)
	}
	return nil
}

// Recording is the contents of a histogram log.
type Recording struct {
	Latency   *hdrhistogram.Histogram // of all intervals
	Service   *hdrhistogram.Histogram
	Intervals []Interval
}

// ReadHistogramLog reads one or more concatenated logs. Concatenating the logs of several
// hosts merges them.
func ReadHistogramLog(r io.Reader) (Recording, error) {
	rec := Recording{Latency: NewHistogram(), Service: NewHistogram()}
	for log := hdrhistogram.NewHistogramLogReader(r); ; {
		h, err := log.NextIntervalHistogram()
		if err != nil {
			return Recording{}, fmt.Errorf("read the histogram log: %w", err)
		}
		if h == nil {
			return rec, nil
		}
		into := rec.Latency
		if h.Tag() == serviceTag {
			into = rec.Service
		} else {
			rec.Intervals = append(rec.Intervals,
				NewInterval(h, time.UnixMilli(h.StartTimeMs()), time.UnixMilli(h.EndTimeMs())))
		}
		if dropped := into.Merge(h); dropped > 0 {
			return Recording{}, fmt.Errorf("read the histogram log: %d values beyond %d µs", dropped, int64(HighestUS))
		}
	}
}
