package matrix

import (
	"math"
	"slices"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// measurement returns a metric of a valid run that has it.
func (t RunTable) measurement(m Metric, variant, block int) (x float64, ok bool) {
	r := t.Variants[variant].Runs[block]
	if r == nil || !r.Validity.Valid {
		return 0, false
	}
	x, ok = r.Metrics[m.Key]
	return x, ok
}

// values returns a metric of all valid runs of a variant.
func (t RunTable) values(m Metric, variant int) (all []float64) {
	for block := range t.Repeats {
		if x, ok := t.measurement(m, variant, block); ok {
			all = append(all, x)
		}
	}
	return all
}

// fitted is what the runs of all contenders show together.
type fitted struct {
	stats.Fit
	index map[string]int // in the fit, by name; one with a run of 0 has none
}

func (t RunTable) fit(m Metric, with []contender) fitted {
	f := fitted{index: map[string]int{}}
	rows := map[string]int{}
	var samples []stats.Sample
	for _, c := range with {
		var own []stats.Sample
		for _, where := range c.rows() {
			if _, ok := rows[where]; !ok {
				rows[where] = len(rows)
			}
			i := c.variants[where]
			for block := range t.Repeats {
				if x, ok := t.measurement(m, i, block); ok {
					began := t.Variants[i].Runs[block].Run.Started
					own = append(own, stats.Sample{Variant: len(f.index), Of: rows[where], At: float64(began.UnixMilli()), Value: x})
				}
			}
		}
		if len(own) > 0 && !slices.ContainsFunc(own, func(s stats.Sample) bool { return !(s.Value > 0) }) {
			f.index[c.name] = len(f.index)
			samples = append(samples, own...)
		}
	}
	var ok bool
	if f.Fit, ok = stats.FitVariants(samples); !ok {
		f.index = nil
	}
	return f
}

type comparedPair struct {
	result.MatrixPair
	blocks int // in which both were measured
}

// pair compares two contenders: by the blocks in which both have a valid run with the metric,
// and with an interval by the fit.
func (t RunTable) pair(m Metric, a, b contender, fit fitted, level float64) comparedPair {
	p := comparedPair{MatrixPair: result.MatrixPair{A: a.name, B: b.name, Confidence: level}}
	logs, n := 0.0, 0.0
	for _, where := range a.rows() {
		of, both := b.variants[where]
		if !both {
			continue
		}
		blocks := 0
		for block := range t.Repeats {
			x, okA := t.measurement(m, a.variants[where], block)
			y, okB := t.measurement(m, of, block)
			if okA && okB {
				logs += math.Log(y / x) // not a number or infinite if one is 0
				blocks++
			}
		}
		n += float64(blocks)
		p.blocks = max(p.blocks, blocks)
	}
	if n == 0 || math.IsNaN(logs) || math.IsInf(logs, 0) {
		return p
	}
	p.Ratio = math.Exp(logs / n)
	i, okA := fit.index[a.name]
	j, okB := fit.index[b.name]
	if !okA || !okB || p.blocks < compare.LeastPairs {
		return p
	}
	if r := fit.Fit.Ratio(i, j, level); compare.Known(r) {
		p.Ratio, p.Low, p.High = r.Value, &r.Low, &r.High
	}
	return p
}
