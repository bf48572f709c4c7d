// Package stats is the little statistics that judging measurements takes: quantiles,
// the bootstrap, Student's t, and the ratio of two things that were measured in turns.
//
// Five runs of each side are the rule here, and an interval has to be honest with
// them. Resampling is not: five pairs can be drawn in 126 ways, and their signs
// flipped in 32, so nothing drawn from them speaks of a chance of one in a hundred,
// which is what judging ten metrics at once asks for; the 95% percentile bootstrap of
// five holds the truth in about 83 of 100. [RatioOf] therefore rests on a model:
// the logarithm of a measurement is that of its side, a steady drift over the time of
// the runs, and normal noise. Its interval is Student's. Taking out the drift instead
// of differencing pairs leaves seven degrees of freedom of ten runs, not four, so a
// small difference is found more often; noise that comes in phases longer than a run,
// outliers and drifts that are not steady all widen the interval, so they hide a
// difference rather than make one up. What is left to the caller is how many
// questions are asked at once: the level is for one.
//
// Everything is a pure function of its arguments: random draws have a seed.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a value with the ends of the interval it is believed to be in.
type Interval struct{ Value, Low, High float64 }

// Median of xs, which need not be sorted; NaN of none.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// Quantile of xs, which need not be sorted, for 0 ≤ q ≤ 1; between two values it is
// interpolated (Hyndman and Fan's type 7). NaN of none.
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

// Mean of xs; NaN of none.
func Mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Between is the span that holds the share level of xs and leaves out as much below
// it as above.
func Between(xs []float64, level float64) (low, high float64) {
	xs = sorted(xs)
	return ofSorted(xs, (1-level)/2), ofSorted(xs, (1+level)/2)
}

// Bootstrap draws as many samples as rounds says, each as long as xs and with
// replacement, and returns what statistic makes of each. The sample is only lent.
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
