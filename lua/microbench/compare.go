package microbench

import "math"

// Comparison sets a script of another directory beside ours of the same name.
type Comparison struct {
	Key
	OursUS  Figure `json:"ours_us"`       // CPU per call
	OtherUS Figure `json:"other_us"`      // likewise
	Ratio   Figure `json:"other_to_ours"` // of pairs of rounds
	// Verdict is "cheaper" or "dearer", of the other one, only if the whole
	// interval says so, and there were rounds enough for one.
	Verdict string `json:"verdict"`
}

// Verdicts.
const (
	Cheaper      = "cheaper"
	Dearer       = "dearer"
	NoDifference = "no difference shown"
)

// How many rounds an interval needs: of fewer, the least and the most hold the
// median with less than its confidence.
const (
	least       = 6 // of 95%
	leastStrict = 8 // of 99%
)

func verdict(ratio Figure) string {
	switch {
	case ratio.N < leastStrict:
		return NoDifference
	case ratio.High < 1:
		return Cheaper
	case ratio.Low > 1:
		return Dearer
	default:
		return NoDifference
	}
}

// turns joins each round with the next, in which the other was measured first: what
// being first costs, or being second, cancels out.
func turns(ratios map[int]float64) (joined []float64) {
	for round, ratio := range ratios {
		if next, measured := ratios[round+1]; measured && round%2 == 1 {
			joined = append(joined, math.Sqrt(ratio*next))
		}
	}
	return joined
}

func (b *Bench) comparisons() []Comparison {
	var all []Comparison
	for _, c := range b.cells {
		if !c.Other {
			continue
		}
		our := b.cellOf(c.comparedWith())
		ratio := figureAt(turns(ratios(c, our)), strict)
		if ratio == nil {
			continue
		}
		all = append(all, Comparison{
			Key: our.Key, OursUS: *our.figure(sample.cpuPerCall), OtherUS: *c.figure(sample.cpuPerCall),
			Ratio: *ratio, Verdict: verdict(*ratio),
		})
	}
	return all
}
