package usl

import (
	"math"
	"sort"
)

// At returns the fitted throughput at n. known is false outside of From and To: the law
// is not extrapolated.
func (f Fit) At(n float64) (x Estimate, known bool) {
	if !(n >= f.From) || n > f.To || len(f.Curve) == 0 {
		return Estimate{}, false
	}
	above := sort.Search(len(f.Curve), func(i int) bool { return f.Curve[i].N >= n })
	above = min(max(above, 1), len(f.Curve)-1)
	a, b := f.Curve[above-1], f.Curve[above]
	share := math.Log(n/a.N) / math.Log(b.N/a.N)
	value := f.law().at(n)
	between := func(low, high float64) float64 { return low * math.Pow(high/low, share) }
	return Estimate{
		Value: value,
		Low:   min(value, between(a.X.Low, b.X.Low)),
		High:  max(value, between(a.X.High, b.X.High)),
	}, true
}

// Peak returns the n with the highest throughput, and that throughput. known is false if
// throughput still rises at the end of the measured range.
func (f Fit) Peak() (n float64, x Estimate, known bool) {
	n = f.law().peak()
	x, known = f.At(n)
	if !known {
		return 0, Estimate{}, false
	}
	return n, x, true
}

func (f Fit) law() law {
	alone := 1 / f.Lambda.Value
	return law{alone, f.Sigma.Value * alone, f.Kappa.Value * alone}
}
