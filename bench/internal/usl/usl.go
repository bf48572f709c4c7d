// Package usl fits the Universal Scalability Law to measured throughput (Gunther,
// Guerrilla Capacity Planning, 2007): X(n) = λn / (1 + σ(n-1) + κn(n-1)).
//
// It refuses to fit points that do not support a fit (see [FitPoints]), and does not
// extrapolate. Each number of a fit has an interval, from bootstrapping the residuals.
// The points themselves are not bootstrapped: their n were chosen, and a sample often
// lacks one end of the range, which is necessary to separate contention from coherence.
// Residuals are smaller than the noise, because the law is fitted to them, and few of
// them determine it badly, so they are widened for both.
package usl

// Point is one measurement: throughput x, per second, at n in flight (or hosts, or
// nodes).
type Point struct {
	N float64 `json:"n"`
	X float64 `json:"x"`
}

// Estimate is a value with the ends of its 95% interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Fit is X(n) = λn / (1 + σ(n-1) + κn(n-1)) over the measured range of n.
type Fit struct {
	Lambda    Estimate  `json:"lambda"` // throughput per second of one alone
	Sigma     Estimate  `json:"sigma"`  // contention: the serial share
	Kappa     Estimate  `json:"kappa"`  // coherence: the cost of each pair
	R2        float64   `json:"r2"`
	Residuals []float64 `json:"residuals"` // (measured - fitted) / measured, as the points
	From      float64   `json:"from"`      // the measured range of n
	To        float64   `json:"to"`
	Curve     []Place   `json:"curve"` // the fitted throughput over that range
}

// Place is a point of the fitted curve.
type Place struct {
	N float64  `json:"n"`
	X Estimate `json:"x"`
}
