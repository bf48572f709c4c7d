// Package usl fits the Universal Scalability Law to measured throughput (Gunther,
// Guerrilla Capacity Planning, 2007): X(n) = λn / (1 + σ(n-1) + κn(n-1)).
//
// It fits nothing that the points do not carry, see [FitPoints], and says nothing of
// an n beyond them. Where a fit is given, each of its numbers has an interval, from
// bootstrapping the residuals: the n were chosen and not drawn, and a sample of the
// points themselves often lacks one end of the range, without which contention and
// coherence cannot be told apart. Residuals shrink by what the law fits away, and few
// of them say little of the noise, so they are widened for both before they are drawn.
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
	Sigma     Estimate  `json:"sigma"`  // contention: the share that is done one after another
	Kappa     Estimate  `json:"kappa"`  // coherence: what each pair costs
	R2        float64   `json:"r2"`
	Residuals []float64 `json:"residuals"` // (measured - fitted) / measured, as the points
	From      float64   `json:"from"`      // the measured range of n
	To        float64   `json:"to"`
	Curve     []Place   `json:"curve"` // the fitted throughput over that range
}

// Place is what the law has at n.
type Place struct {
	N float64  `json:"n"`
	X Estimate `json:"x"`
}
