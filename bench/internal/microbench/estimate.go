package microbench

import (
	"fmt"
	"math"

	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// Estimate is a median over rounds with a confidence interval.
type Estimate struct {
	Median float64 `json:"median"`
	// Low and High enclose the true median with 95% confidence, in comparisons 99%: see
	// stats.MedianInterval.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"rounds"`
}

// Levels of confidence. Comparisons show many intervals side by side, of which one in
// twenty would mislead at the usual level.
const (
	usual  = 0.95
	strict = 0.99
)

// estimate returns nil without samples.
func estimate(samples []float64, confidence float64) *Estimate {
	if len(samples) == 0 {
		return nil
	}
	median := stats.MedianInterval(samples, confidence)
	return &Estimate{Median: median.Value, Low: median.Low, High: median.High, N: len(samples)}
}

// known reports whether there were enough rounds for the interval.
func (e Estimate) known() bool { return e.N >= minRounds }

// cells returns the median and the ends of the interval, without the ends if there were too
// few rounds for them.
func (e Estimate) cells() []string {
	switch {
	case e.N == 0:
		return []string{format.Unknown, format.Unknown, format.Unknown}
	case !e.known():
		return []string{format.Number(e.Median), format.Unknown, format.Unknown}
	}
	return []string{format.Number(e.Median), format.Number(e.Low), format.Number(e.High)}
}

// String returns the median with its interval.
func (e Estimate) String() string {
	if !e.known() {
		return fmt.Sprintf("%s (%s: too few for an interval)", format.Number(e.Median), format.Plural(e.N, "round"))
	}
	return fmt.Sprintf("%s (%s to %s)", format.Number(e.Median), format.Number(e.Low), format.Number(e.High))
}

// Spread returns the width of the interval as a share of the median.
func (e Estimate) Spread() float64 {
	if e.Median == 0 {
		return 0
	}
	return (e.High - e.Low) / math.Abs(e.Median)
}
