package result

import (
	"cmp"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is in milliseconds, of the acknowledged sagas. A percentile is null if fewer
// than SamplesBeyond samples lie above it.
type Latency struct {
	P50   *float64 `json:"p50" label:"p50" percentile:"50"`
	P90   *float64 `json:"p90" label:"p90" percentile:"90"`
	P95   *float64 `json:"p95" label:"p95" percentile:"95"`
	P99   *float64 `json:"p99" label:"p99" percentile:"99"`
	P999  *float64 `json:"p999" label:"p99.9" percentile:"99.9"`
	P9999 *float64 `json:"p9999" label:"p99.99" percentile:"99.99"`
	Max   *float64 `json:"max" label:"max"`
	Mean  *float64 `json:"mean" label:"mean"`
}

// LatencyFields lists the figures of a Latency.
var LatencyFields = fieldsOf[Latency]()

// At returns the latency at a percentile such as 99 or 99.9, in milliseconds. It returns
// nil if there are too few samples, or if the percentile is not one of LatencyFields.
func (l Latency) At(percentile float64) *float64 {
	for _, f := range LatencyFields {
		if f.Percentile == percentile {
			return f.Of(l)
		}
	}
	return nil
}

// HasPercentile reports whether percentile is one of LatencyFields.
func HasPercentile(percentile float64) bool {
	for _, f := range LatencyFields {
		if percentile > 0 && f.Percentile == percentile {
			return true
		}
	}
	return false
}

// Worst returns the higher of each figure of two load generators, because percentiles
// cannot be added. Either may be nil: unknown.
func (l *Latency) Worst(of *Latency) *Latency {
	if l == nil || of == nil {
		return cmp.Or(l, of)
	}
	worst := *l
	for _, f := range LatencyFields {
		if a, b := f.Of(*l), f.Of(*of); a == nil || b != nil && *b > *a {
			f.Set(&worst, b)
		}
	}
	return &worst
}

// The histograms of a run hold microseconds with three significant digits. The highest value
// is one hour, far above any timeout.
const (
	lowestUS          = 1
	HighestUS         = 3_600_000_000
	significantDigits = 3
)

// NewHistogram makes a histogram of microseconds, up to HighestUS.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(lowestUS, HighestUS, significantDigits)
}

// SamplesBeyond is the least number of samples above a percentile for it to be known. With
// 10, chance changes that number by about a third (1/√10). With fewer, a percentile mostly
// shows which outliers the run happened to have.
const SamplesBeyond = 10

// SamplesFor returns how many samples a percentile below 100 needs: p99 needs 1,000.
func SamplesFor(percentile float64) int64 {
	return int64(math.Round(SamplesBeyond / (1 - percentile/100)))
}

// LatencyOf reads the percentiles of a histogram of microseconds. Without a histogram,
// all are nil.
func LatencyOf(h *hdrhistogram.Histogram) (l Latency) {
	if h == nil || h.TotalCount() == 0 {
		return l
	}
	ms := func(us float64) *float64 { us = math.Round(us) / 1000; return &us }
	for _, f := range LatencyFields {
		if f.Percentile > 0 && h.TotalCount() >= SamplesFor(f.Percentile) {
			f.Set(&l, ms(float64(h.ValueAtQuantile(f.Percentile))))
		}
	}
	l.Max, l.Mean = ms(float64(h.Max())), ms(h.Mean())
	return l
}
