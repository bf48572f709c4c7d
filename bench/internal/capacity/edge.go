package capacity

import (
	"math"

	"sagabench/bench/internal/report"
)

// Edge is the highest rate that keeps the service level, in requests per second,
// with its 95% interval. An end that was not seen is nil: Low when nothing was kept,
// High when nothing was broken; without either Rate is nil too.
type Edge struct{ Rate, Low, High *float64 }

// How a measurement relates to the edge. Near it, chance decides: at the edge a
// measurement is kept as often as broken, and softness is how far from it, as a
// share of the rate, that is nearly over. Anywhere, something that has nothing to do
// with the rate may break the service level for a moment, or rarely hide that it
// is.
const (
	softness    = 0.02
	brokenByBad = 0.15
	keptByLuck  = 0.03
)

// keeps is the chance that a rate keeps the service level when the edge is there.
func keeps(rate, edge float64) float64 {
	near := 1 / (1 + math.Exp(math.Log(rate/edge)/softness))
	return keptByLuck + (1-keptByLuck-brokenByBad)*near
}

// belief is how likely the edge is at each place of a grid, given what was measured
// (Bayes' rule). Searching at its median is probabilistic bisection (Horstein, 1963):
// unlike plain bisection it comes back from a measurement that told the wrong side.
type belief struct {
	rates  []float64 // rising
	weight []float64 // sums up to 1
}

// gridStep is the relative distance of neighbours.
const gridStep = 0.01

// newBelief knows nothing: the edge is somewhere from lowest to highest.
func newBelief(lowest, highest float64) *belief {
	b := &belief{}
	for rate := lowest; rate < highest*(1+gridStep); rate *= 1 + gridStep {
		b.rates = append(b.rates, rate)
	}
	for range b.rates {
		b.weight = append(b.weight, 1/float64(len(b.rates)))
	}
	return b
}

// learn takes a measurement into account.
func (b *belief) learn(rate float64, kept bool) {
	sum := 0.0
	for i, edge := range b.rates {
		p := keeps(rate, edge)
		if !kept {
			p = 1 - p
		}
		b.weight[i] *= p
		sum += b.weight[i]
	}
	for i := range b.weight {
		b.weight[i] /= sum
	}
}

// quantile is the rate below which the edge is with that likelihood.
func (b *belief) quantile(q float64) float64 {
	sum := 0.0
	for i, w := range b.weight {
		if sum += w; sum >= q {
			return b.rates[i]
		}
	}
	return b.rates[len(b.rates)-1]
}

// width is the relative width of the 95% interval.
func (b *belief) width() float64 { return b.quantile(0.975)/b.quantile(0.025) - 1 }

// FindEdge tells the edge from judged measurements. Those that are not judged are
// left out.
func FindEdge(steps []report.Measured) (e Edge) {
	lowest, highest := math.Inf(1), 0.0
	anyKept, anyBroken := false, false
	for _, m := range steps {
		if m.Kept != nil {
			lowest, highest = min(lowest, *m.Load.OfferedPerS), max(highest, *m.Load.OfferedPerS)
			anyKept, anyBroken = anyKept || *m.Kept, anyBroken || !*m.Kept
		}
	}
	if !anyKept {
		if anyBroken {
			e.High = &lowest
		}
		return e
	}
	b := newBelief(lowest, highest)
	for _, m := range steps {
		if m.Kept != nil {
			b.learn(*m.Load.OfferedPerS, *m.Kept)
		}
	}
	round := func(q float64) *float64 { x := digits(b.quantile(q)); return &x }
	e = Edge{Rate: round(0.5), Low: round(0.025), High: round(0.975)}
	if !anyBroken {
		e.Rate, e.High = &highest, nil
	}
	return e
}

// digits rounds to three.
func digits(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}
