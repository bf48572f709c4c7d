package capacity

import (
	"math"
	"slices"

	"sagabench/bench/internal/result"
)

// The chances that a measurement does not show its rate. Something else may violate the
// service level at any rate, and a violation may be missed.
const (
	chanceDisturbed = 0.15
	chanceMissed    = 0.03
)

// transitionWidths are how far from the highest rate, relative to it, the results of one
// rate still differ: little on a quiet machine, more on one whose speed changes. The
// measurements decide between them.
var transitionWidths = []float64{0.015, 0.03, 0.06, 0.12}

// chanceMet returns the chance that a measurement at rate meets the service level, given
// the highest rate and the transition width. At the highest rate it is about one half.
func chanceMet(rate, highest, width float64) float64 {
	logistic := 1 / (1 + math.Exp(math.Log(rate/highest)/width))
	return chanceMissed + (1-chanceMissed-chanceDisturbed)*logistic
}

// posterior is the probability of each pair of a highest rate and a transition width,
// given all measurements (Bayes' rule). To search by it is probabilistic bisection
// (Horstein, 1963): unlike plain bisection it recovers from a misleading measurement.
type posterior struct {
	rates  []float64   // rising
	weight [][]float64 // by transition width, then by rate; the sum is 1
}

// gridStep is the relative distance of neighbouring rates.
const gridStep = 0.01

// newPosterior returns the distribution before any measurement. All rates from lowest to
// highest are equally likely. The weight of a transition width is inversely proportional
// to it (Jeffreys).
func newPosterior(lowest, highest float64) *posterior {
	p := &posterior{}
	for rate := lowest; rate < highest*(1+gridStep); rate *= 1 + gridStep {
		p.rates = append(p.rates, rate)
	}
	for _, width := range transitionWidths {
		p.weight = append(p.weight, slices.Repeat([]float64{1 / width}, len(p.rates)))
	}
	p.normalize()
	return p
}

// update takes a measurement into account.
func (p *posterior) update(rate float64, met bool) {
	for w, weight := range p.weight {
		for i, highest := range p.rates {
			chance := chanceMet(rate, highest, transitionWidths[w])
			if !met {
				chance = 1 - chance
			}
			weight[i] *= chance
		}
	}
	p.normalize()
}

func (p *posterior) normalize() {
	sum := 0.0
	for _, weight := range p.weight {
		for _, x := range weight {
			sum += x
		}
	}
	for _, weight := range p.weight {
		for i := range weight {
			weight[i] /= sum
		}
	}
}

// quantile returns the q-quantile of the highest rate.
func (p *posterior) quantile(q float64) float64 {
	sum := 0.0
	for i, rate := range p.rates {
		for _, weight := range p.weight {
			sum += weight[i]
		}
		if sum >= q {
			return rate
		}
	}
	return p.rates[len(p.rates)-1]
}

// width returns the relative width of the 95% interval.
func (p *posterior) width() float64 { return p.quantile(0.975)/p.quantile(0.025) - 1 }

// Estimate is the highest rate that meets the service level, in requests per second, with
// its 95% interval. Low and Rate are nil if no step met it, and High is nil if no step
// violated it.
type Estimate struct{ Rate, Low, High *float64 }

// HighestRate estimates the highest rate from judged steps. It ignores the others.
func HighestRate(steps []result.Step) (e Estimate) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(m result.Step) bool { return m.MeetsSLO == nil })
	lowest, highest := math.Inf(1), 0.0
	anyMet, anyViolated := false, false
	for _, m := range steps {
		lowest, highest = min(lowest, *m.Load.OfferedPerS), max(highest, *m.Load.OfferedPerS)
		anyMet, anyViolated = anyMet || *m.MeetsSLO, anyViolated || !*m.MeetsSLO
	}
	if !anyMet {
		if anyViolated {
			e.High = &lowest
		}
		return e
	}
	p := newPosterior(lowest, highest)
	for _, m := range steps {
		p.update(*m.Load.OfferedPerS, *m.MeetsSLO)
	}
	quantile := func(q float64) *float64 { x := threeDigits(p.quantile(q)); return &x }
	e = Estimate{Rate: quantile(0.5), Low: quantile(0.025), High: quantile(0.975)}
	if !anyViolated {
		e.Rate, e.High = &highest, nil
	}
	return e
}

// threeDigits rounds to three significant digits.
func threeDigits(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}
