package microbench

import (
	"math"
	"slices"
)

// Figure is what the rounds say of one quantity.
type Figure struct {
	Median float64 `json:"median"`
	// Low and High hold the median that endless rounds would have, with a
	// confidence of 95%, of comparisons 99%: order statistics, whatever the
	// distribution. Of too few rounds they are the least and the most that was
	// seen, which says less.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"rounds"`
}

// The confidence of intervals: of one that stands for itself, and of those of
// which there are many side by side, where one in twenty would be wrong.
const (
	usual  = 0.95
	strict = 0.99
)

// figureOf is nil without samples.
func figureOf(samples []float64) *Figure { return figureAt(samples, usual) }

func figureAt(samples []float64, confidence float64) *Figure {
	if len(samples) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	f := &Figure{Median: sorted[n/2], N: n}
	if n%2 == 0 {
		f.Median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	k := outer(n, confidence)
	f.Low, f.High = sorted[k], sorted[n-1-k]
	return f
}

// outer is how many of n sorted samples may be left out at each end so that the
// rest still holds the median with the confidence, or 0: a sample is below the
// median as often as a coin falls heads.
func outer(n int, confidence float64) int {
	beyond := (1 - confidence) / 2
	exactly := math.Pow(0.5, float64(n)) // k heads, of n coins
	for k, orFewer := 0, exactly; ; k++ {
		exactly *= float64(n-k) / float64(k+1)
		if orFewer += exactly; orFewer > beyond {
			return k
		}
	}
}

// Spread is the width of the interval, as a share of the median.
func (f Figure) Spread() float64 {
	if f.Median == 0 {
		return 0
	}
	return (f.High - f.Low) / math.Abs(f.Median)
}
