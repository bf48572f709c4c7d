package stats

import "math"

// Sample is one measurement of A or of B. Its value is positive.
type Sample struct {
	OfB   bool
	At    float64 // when it was made, in any unit and from any origin
	Value float64
	Of    int // what was measured; only samples of the same are compared with each other
}

// Ratio compares B with A.
type Ratio struct {
	BToA  Interval
	Drift Interval // of both, from the first sample to the last: 1.1 is a rise by 10%
}

// RatioOf estimates B divided by A, and the drift of both. If several things were measured,
// it is the geometric mean of their ratios, weighted by their samples. Each interval has
// confidence level. ok is false for fewer than four samples of one thing, and if the samples
// do not separate the ratio from the drift: only one side, or each side at one time.
func RatioOf(samples []Sample, level float64) (r Ratio, ok bool) {
	n := float64(len(samples))
	side, at, y, things := columns(samples)
	df := len(samples) - things - 2
	if df < 1 {
		return Ratio{}, false
	}
	// Ordinary least squares on centred columns: y = effect·side + drift·at.
	ss, tt, st := dot(side, side), dot(at, at), dot(side, at)
	determinant := ss*tt - st*st
	if determinant < 1e-9*n*n {
		return Ratio{}, false
	}
	sy, ty := dot(side, y), dot(at, y)
	effect := (tt*sy - st*ty) / determinant
	drift := (ss*ty - st*sy) / determinant
	left := 0.0
	for i := range y {
		e := y[i] - effect*side[i] - drift*at[i]
		left += e * e
	}
	variance := left / float64(df)
	t := Student(level, df)
	return Ratio{
		BToA:  exponential(effect, t*math.Sqrt(variance*tt/determinant)),
		Drift: exponential(drift, t*math.Sqrt(variance*ss/determinant)),
	}, true
}

// columns returns the columns of the model, each shifted to a mean of 0 for each thing that
// was measured: the side, 0 for A and 1 for B; the time, 0 to 1; the logarithm of the value.
func columns(samples []Sample) (side, at, y []float64, things int) {
	first, last := math.Inf(1), math.Inf(-1)
	of := map[int][]int{} // positions of the samples of each thing
	for i, s := range samples {
		first, last = min(first, s.At), max(last, s.At)
		of[s.Of] = append(of[s.Of], i)
	}
	for _, s := range samples {
		b := 0.0
		if s.OfB {
			b = 1
		}
		side = append(side, b)
		at = append(at, (s.At-first)/max(last-first, math.SmallestNonzeroFloat64))
		y = append(y, math.Log(s.Value))
	}
	for _, positions := range of {
		centre(side, positions)
		centre(at, positions)
		centre(y, positions)
	}
	return side, at, y, len(of)
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

func exponential(x, half float64) Interval {
	return Interval{math.Exp(x), math.Exp(x - half), math.Exp(x + half)}
}
