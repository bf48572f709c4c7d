package microbench

import "math"

// Comparison sets a script of another directory beside ours of the same name.
type Comparison struct {
	Key
	OursUS  Estimate `json:"ours_us"`       // CPU per call
	OtherUS Estimate `json:"other_us"`      // CPU per call
	Ratio   Estimate `json:"other_to_ours"` // of pairs of rounds
	// Verdict is about the other script. It names a difference only if the whole
	// interval shows it, with enough rounds for an interval.
	Verdict string `json:"verdict"`
}

// Verdicts.
const (
	Cheaper      = "cheaper"
	Costlier     = "costlier"
	NoDifference = "no difference shown"
)

// The rounds that an interval needs. The lowest and the highest of fewer values enclose
// the median with less confidence.
const (
	minRounds       = 6 // of 95%
	minRoundsStrict = 8 // of 99%
)

func verdict(ratio Estimate) string {
	switch enough := ratio.N >= minRoundsStrict; {
	case enough && ratio.High < 1:
		return Cheaper
	case enough && ratio.Low > 1:
		return Costlier
	default:
		return NoDifference
	}
}

// pairRounds joins each odd round with the next, which has the inverted order: what it
// costs to be measured first cancels out.
func pairRounds(ratios map[int]float64) (joined []float64) {
	for round, ratio := range ratios {
		if next, measured := ratios[round+1]; measured && round%2 == 1 {
			joined = append(joined, math.Sqrt(ratio*next))
		}
	}
	return joined
}

func (b *bench) comparisons() []Comparison {
	all := []Comparison{}
	for _, c := range b.cases {
		if !c.Other {
			continue
		}
		ours := c.reference
		ratio := estimate(pairRounds(c.ratios(ours)), strict)
		if ratio == nil {
			continue
		}
		all = append(all, Comparison{
			Key: ours.Key, OursUS: ours.estimate(sample.cpuPerCall), OtherUS: c.estimate(sample.cpuPerCall),
			Ratio: *ratio, Verdict: verdict(*ratio),
		})
	}
	return all
}
