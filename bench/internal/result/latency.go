package result

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The histograms of a run hold microseconds, to three significant digits. One
// hour is far beyond any timeout, so that next to nothing is ever clamped to
// it.
const (
	lowestUS          = 1
	HighestUS         = 3_600_000_000
	significantDigits = 3
)

// NewHistogram makes a histogram of microseconds, up to HighestUS.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(lowestUS, HighestUS, significantDigits)
}

// SamplesBeyond is how many samples have to lie above a percentile for it to
// be given. With 10, chance moves the count above by about a third (1/√10);
// with fewer, the number mostly tells which outliers the run happened to catch.
const SamplesBeyond = 10

// SamplesFor is how many samples the percentile 1-1/oneIn needs: p99 is one in
// 100, so 1,000.
func SamplesFor(oneIn int64) int64 { return SamplesBeyond * oneIn }

// LatencyOf reads the percentiles of a histogram of microseconds. A percentile
// with fewer than 10 samples beyond it is nil: p50 needs 20 samples, p99 1,000,
// p99.99 100,000. Without a histogram, all are nil.
func LatencyOf(h *hdrhistogram.Histogram) Latency {
	if h == nil || h.TotalCount() == 0 {
		return Latency{}
	}
	n := h.TotalCount()
	ms := func(us float64) *float64 { us = math.Round(us) / 1000; return &us }
	at := func(oneIn int64, quantile float64) *float64 {
		if n < SamplesFor(oneIn) {
			return nil
		}
		return ms(float64(h.ValueAtQuantile(quantile)))
	}
	return Latency{
		P50:   at(2, 50),
		P90:   at(10, 90),
		P95:   at(20, 95),
		P99:   at(100, 99),
		P999:  at(1_000, 99.9),
		P9999: at(10_000, 99.99),
		Max:   ms(float64(h.Max())),
		Mean:  ms(h.Mean()),
	}
}
