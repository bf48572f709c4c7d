// Package stats has the statistics for judging measurements: quantiles, the bootstrap,
// Student's t, and the ratios of variants measured in interleaved runs.
//
// Five runs of each variant are usual, and an interval must be honest with so few.
// Resampling is not. Five pairs can be drawn in 126 ways and their signs flipped in 32,
// so no resampling shows a chance of 1 in 100, which judging ten metrics at once needs.
// The 95% percentile bootstrap of five contains the truth in about 83 of 100 cases.
//
// [FitVariants] therefore uses a model: the logarithm of a measurement is a constant of its
// variant, plus a linear drift over time, plus normal noise. Its intervals are Student's.
// Fitting the drift, instead of taking differences of pairs, leaves seven degrees of
// freedom of ten runs, not four, so it finds smaller differences. Noise in phases longer
// than a run, outliers and other drifts widen the interval: they hide a difference and do
// not invent one. The level is for one question; a caller with several must raise it.
//
// All functions are pure: random draws have a seed.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate with the ends of its confidence interval.
type Interval struct{ Value, Low, High float64 }

// Median returns the median of xs, which need not be sorted, or NaN for none.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// MedianInterval returns the median and the order statistics that enclose the true one with
// a confidence of level, for any distribution; with too few values for that, the lowest and
// the highest. This is the sign test: a value is below the median as often as a coin shows
// heads.
func MedianInterval(xs []float64, level float64) Interval {
	all := sorted(xs)
	n := len(all)
	exactly := math.Pow(0.5, float64(n)) // the probability of k heads in n tosses
	for k, atMost := 0, exactly; ; k++ {
		exactly *= float64(n-k) / float64(k+1)
		if atMost += exactly; atMost > (1-level)/2 {
			return Interval{Median(all), all[k], all[n-1-k]}
		}
	}
}

// Quantile returns the q-quantile of xs, 0 ≤ q ≤ 1, or NaN for none. xs need not be
// sorted. Between two values, it interpolates (Hyndman and Fan's type 7).
func Quantile(xs []float64, q float64) float64 {
	return ofSorted(sorted(xs), q)
}

func sorted(xs []float64) []float64 {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return xs
}

func ofSorted(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	at := q * float64(len(xs)-1)
	below := int(at)
	above := min(below+1, len(xs)-1)
	return xs[below] + (at-float64(below))*(xs[above]-xs[below])
}

// Mean returns the mean of xs, or NaN for none.
func Mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Between returns the central range of xs that contains the share level of them.
func Between(xs []float64, level float64) (low, high float64) {
	xs = sorted(xs)
	return ofSorted(xs, (1-level)/2), ofSorted(xs, (1+level)/2)
}

// Bootstrap draws samples of xs with replacement, each as long as xs, and returns the
// statistic of each. The statistic must not keep the sample.
func Bootstrap[T any](xs []float64, seed uint64, rounds int, statistic func(sample []float64) T) []T {
	rng := rand.New(rand.NewPCG(seed, uint64(len(xs))))
	sample := make([]float64, len(xs))
	values := make([]T, rounds)
	for r := range values {
		for i := range sample {
			sample[i] = xs[rng.IntN(len(xs))]
		}
		values[r] = statistic(sample)
	}
	return values
}

// BlockBootstrap draws samples of n positions in time, each made of blocks of consecutive
// positions that begin anywhere and wrap around at the end. So what depends on its
// neighbours in time stays together (circular block bootstrap, Politis and Romano, 1992).
// It returns the statistic of each sample, which must not keep the positions.
func BlockBootstrap(n, block int, seed uint64, rounds int, statistic func(positions []int) float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	positions := make([]int, n)
	values := make([]float64, rounds)
	for r := range values {
		start := 0
		for i := range positions {
			if i%block == 0 {
				start = rng.IntN(n)
			}
			positions[i] = (start + i%block) % n
		}
		values[r] = statistic(positions)
	}
	return values
}
