package capacity

import (
	"math"
	"slices"

	"sagabench/bench/internal/result"
)

// Edge is the highest rate that keeps the service level, in requests per second,
// with its 95% interval. An end that was not seen is nil: Low when nothing was kept,
// High when nothing was broken; without either Rate is nil too.
type Edge struct{ Rate, Low, High *float64 }

// How a measurement relates to the edge. Near it, chance decides: at the edge a
// measurement is kept as often as broken. Anywhere, something that has nothing to do
// with the rate may break the service level for a moment, or rarely hide that it is.
const (
	brokenByBad = 0.15
	keptByLuck  = 0.03
)

// softness is how far from the edge, as a share of the rate, chance is nearly over: on
// a quiet machine soon, on one whose speed changes from one measurement to the next
// only where all of them agree again. Which one it is, the measurements tell as well.
var softness = []float64{0.015, 0.03, 0.06, 0.12}

// keeps is the chance that a rate keeps the service level when the edge is there and
// so soft.
func keeps(rate, edge, soft float64) float64 {
	near := 1 / (1 + math.Exp(math.Log(rate/edge)/soft))
	return keptByLuck + (1-keptByLuck-brokenByBad)*near
}

// belief is how likely the edge is at each place of a grid, and that soft, given what
// was measured (Bayes' rule). Searching by it is probabilistic bisection (Horstein,
// 1963): unlike plain bisection it comes back from a measurement that told the wrong
// side.
type belief struct {
	rates  []float64   // rising
	weight [][]float64 // by softness, then by rate; sums up to 1
}

// gridStep is the relative distance of neighbours.
const gridStep = 0.01

// newBelief knows nothing: the edge is somewhere from lowest to highest, and the less
// likely so soft the softer, as nothing is known of a scale (Jeffreys).
func newBelief(lowest, highest float64) *belief {
	b := &belief{}
	for rate := lowest; rate < highest*(1+gridStep); rate *= 1 + gridStep {
		b.rates = append(b.rates, rate)
	}
	for _, soft := range softness {
		b.weight = append(b.weight, slices.Repeat([]float64{1 / soft}, len(b.rates)))
	}
	b.normalize()
	return b
}

// learn takes a measurement into account.
func (b *belief) learn(rate float64, kept bool) {
	for s, weight := range b.weight {
		for i, edge := range b.rates {
			p := keeps(rate, edge, softness[s])
			if !kept {
				p = 1 - p
			}
			weight[i] *= p
		}
	}
	b.normalize()
}

func (b *belief) normalize() {
	sum := 0.0
	for _, weight := range b.weight {
		for _, w := range weight {
			sum += w
		}
	}
	for _, weight := range b.weight {
		for i := range weight {
			weight[i] /= sum
		}
	}
}

// quantile is the rate below which the edge is with that likelihood.
func (b *belief) quantile(q float64) float64 {
	sum := 0.0
	for i, rate := range b.rates {
		for _, weight := range b.weight {
			sum += weight[i]
		}
		if sum >= q {
			return rate
		}
	}
	return b.rates[len(b.rates)-1]
}

// width is the relative width of the 95% interval.
func (b *belief) width() float64 { return b.quantile(0.975)/b.quantile(0.025) - 1 }

// FindEdge tells the edge from judged measurements. Those that are not judged are
// left out.
func FindEdge(steps []result.Step) (e Edge) {
	lowest, highest := math.Inf(1), 0.0
	anyKept, anyBroken := false, false
	for _, m := range steps {
		if m.MeetsSLO != nil {
			lowest, highest = min(lowest, *m.Load.OfferedPerS), max(highest, *m.Load.OfferedPerS)
			anyKept, anyBroken = anyKept || *m.MeetsSLO, anyBroken || !*m.MeetsSLO
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
		if m.MeetsSLO != nil {
			b.learn(*m.Load.OfferedPerS, *m.MeetsSLO)
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
