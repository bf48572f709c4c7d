package stats

import "math"

// Student returns the half width, in standard errors, of the central interval with
// probability level of Student's t distribution, with df ≥ 1 degrees of freedom. It is
// 2.571 for 0.95 and 5.
func Student(level float64, df int) float64 {
	low, high := 0.0, 1.0
	for within(high, df) < level {
		low, high = high, 2*high
	}
	for range 60 {
		middle := (low + high) / 2
		if within(middle, df) < level {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// within returns the probability of the interval from -t to t, by the finite series of
// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
func within(t float64, df int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(df)))
	sin, cos := math.Sincos(angle)
	if df == 1 {
		return 2 / math.Pi * angle
	}
	odd := df%2 == 1
	term, k := 1.0, 1
	if odd {
		term, k = cos, 2
	}
	sum := term
	for ; k <= df-3; k += 2 {
		term *= cos * cos * float64(k) / float64(k+1)
		sum += term
	}
	if odd {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}
