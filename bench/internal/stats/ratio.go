package stats

import "math"

// Sample is one measurement of a variant. Its value is positive.
type Sample struct {
	Variant int     // from 0
	At      float64 // when it was made, in any unit and from any origin
	Value   float64
	Of      int // what was measured; only samples of the same are compared with each other
}

// Ratio compares variant 1, B, with variant 0, A.
type Ratio struct {
	BToA  Interval
	Drift Interval // of both, from the first sample to the last: 1.1 is a rise by 10%
}

// RatioOf estimates B divided by A, and the drift of both, from samples of these two. ok is as
// that of [FitVariants].
func RatioOf(samples []Sample, level float64) (r Ratio, ok bool) {
	f, ok := FitVariants(samples)
	if !ok {
		return r, false
	}
	return Ratio{BToA: f.Ratio(0, 1, level), Drift: f.drift(level)}, true
}

// Fit is what samples of several variants show.
type Fit struct {
	effects  []float64   // logarithms of the variants' ratios to the first, and of the drift
	inverse  [][]float64 // of the normal equations of the effects without the first, which is 0
	df       int
	variance float64   // of a run
	squares  []float64 // sum of the squared residuals of each variant
	runs     []float64 // of each variant
}

// FitVariants fits effects of all variants and their common drift. If several things were
// measured, the ratio of two variants is the geometric mean of those of the things, weighted by
// their samples. ok is false if the samples are not more than what is estimated, and if they
// do not separate the variants from each other or from the drift: only one variant, or each at
// one time.
func FitVariants(samples []Sample) (f Fit, ok bool) {
	columns, y, things := columns(samples)
	variants := len(columns)
	f.df = len(samples) - things - variants
	if variants < 2 || f.df < 1 {
		return f, false
	}
	// Ordinary least squares on centred columns.
	var normal [][]float64
	for _, a := range columns {
		var row []float64
		for _, b := range columns {
			row = append(row, dot(a, b))
		}
		normal = append(normal, row)
	}
	if f.inverse, ok = inverted(normal, 1e-9*float64(len(samples))); !ok {
		return f, false
	}
	f.effects = make([]float64, variants+1)
	for i, row := range f.inverse {
		for j, c := range columns {
			f.effects[i+1] += row[j] * dot(c, y)
		}
	}
	f.squares, f.runs = make([]float64, variants), make([]float64, variants)
	for i, s := range samples {
		e := y[i]
		for j, c := range columns {
			e -= f.effects[j+1] * c[i]
		}
		f.squares[s.Variant] += e * e
		f.runs[s.Variant]++
		f.variance += e * e / float64(f.df)
	}
	return f, true
}

// Ratio returns variant b divided by variant a, with an interval of this confidence level. All
// variants share the variance of their runs, unless the runs of these two vary more: so few
// runs of each show what many show together, and two that vary a lot are not told apart by the
// evenness of others.
func (f Fit) Ratio(a, b int, level float64) Interval {
	n := f.runs[a] + f.runs[b]
	all := float64(f.df) / sum(f.runs) // degrees of freedom of a run
	variance := max(f.variance, (f.squares[a]+f.squares[b])/(n*all))
	return f.interval(f.effects[b]-f.effects[a], variance*(f.at(a, a)+f.at(b, b)-2*f.at(a, b)), level)
}

func (f Fit) drift(level float64) Interval {
	last := len(f.effects) - 1
	return f.interval(f.effects[last], f.variance*f.at(last, last), level)
}

// at returns the covariance of two effects, as a multiple of the variance.
func (f Fit) at(i, j int) float64 {
	if i == 0 || j == 0 {
		return 0
	}
	return f.inverse[i-1][j-1]
}

func (f Fit) interval(effect, variance, level float64) Interval {
	half := Student(level, f.df) * math.Sqrt(variance)
	return Interval{math.Exp(effect), math.Exp(effect - half), math.Exp(effect + half)}
}

// columns returns the columns of the model, each shifted to a mean of 0 for each thing that
// was measured: one for each variant but the first, 1 for its samples and 0 for others; and
// the time, 0 to 1. y is the logarithm of the values, shifted likewise.
func columns(samples []Sample) (columns [][]float64, y []float64, things int) {
	first, last := math.Inf(1), math.Inf(-1)
	variants := 0
	of := map[int][]int{} // positions of the samples of each thing
	for i, s := range samples {
		first, last = min(first, s.At), max(last, s.At)
		variants = max(variants, s.Variant+1)
		of[s.Of] = append(of[s.Of], i)
	}
	for range variants {
		columns = append(columns, make([]float64, len(samples)))
	}
	for i, s := range samples {
		if s.Variant > 0 {
			columns[s.Variant-1][i] = 1
		}
		columns[variants-1][i] = (s.At - first) / max(last-first, math.SmallestNonzeroFloat64)
		y = append(y, math.Log(s.Value))
	}
	for _, positions := range of {
		centre(y, positions)
		for _, c := range columns {
			centre(c, positions)
		}
	}
	return columns, y, len(of)
}

func centre(xs []float64, positions []int) {
	mean := 0.0
	for _, i := range positions {
		mean += xs[i] / float64(len(positions))
	}
	for _, i := range positions {
		xs[i] -= mean
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func sum(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}

// inverted returns the inverse of a matrix of inner products, by Gauss and Jordan's
// elimination, and changes the matrix. ok is false if a pivot is below least.
func inverted(a [][]float64, least float64) (inverse [][]float64, ok bool) {
	for i := range a {
		inverse = append(inverse, make([]float64, len(a)))
		inverse[i][i] = 1
	}
	for k := range a {
		pivot := a[k][k]
		if pivot < least {
			return nil, false
		}
		for j := range a {
			a[k][j] /= pivot
			inverse[k][j] /= pivot
		}
		for i := range a {
			factor := a[i][k]
			for j := range a {
				if i != k {
					a[i][j] -= factor * a[k][j]
					inverse[i][j] -= factor * inverse[k][j]
				}
			}
		}
	}
	return inverse, true
}
