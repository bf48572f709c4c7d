package document

import (
	"math"

	"sagabench/internal/format"
)

// span is the part of a scale that an axis shows, as positions: see Scale.place.
type span struct {
	from, to float64
	ticks    []tick
}

// tick is a position with a label; a minor tick has none.
type tick struct {
	at    float64
	label string
}

func (t tick) length() float64 {
	if t.label == "" {
		return 3
	}
	return 6
}

func (s span) labels() (labels []string) {
	for _, t := range s.ticks {
		labels = append(labels, t.label)
	}
	return labels
}

// place returns the position of a value on the axis, which is linear in positions.
func (s Scale) place(x float64) float64 {
	switch s {
	case Log:
		return math.Log10(x)
	case Log2:
		return math.Log2(x)
	case Nines:
		return -math.Log10(1 - x/100)
	default:
		return x
	}
}

// maxIntervals is how many intervals between labels a phone has room for.
const maxIntervals = 5

// span reaches from the lowest to the highest value. With round, it ends at ticks.
func (s Scale) span(lowest, highest float64, round bool) span {
	switch s {
	case Log:
		return logSpan(lowest, highest)
	case Log2:
		return log2Span(lowest, highest)
	case Nines:
		return ninesSpan(highest)
	default:
		return linearSpan(min(0, lowest), highest, round)
	}
}

func linearSpan(lowest, highest float64, round bool) span {
	if highest <= lowest {
		highest = lowest + 1
	}
	power := math.Pow(10, math.Floor(math.Log10((highest-lowest)/maxIntervals)))
	step := power
	for _, m := range []float64{2, 2.5, 5, 10} {
		if (highest-lowest)/step > maxIntervals {
			step = m * power
		}
	}
	a := span{from: lowest, to: highest}
	if round {
		a.from, a.to = step*math.Floor(lowest/step), step*math.Ceil(highest/step)
	}
	for i := math.Ceil(a.from / step); i*step <= a.to+step/1e6; i++ {
		a.ticks = append(a.ticks, tick{at: i * step, label: format.Short(i * step)})
	}
	return a
}

func logSpan(lowest, highest float64) span {
	// Every third is a power of ten, and those between are 2 and 5 times it.
	value := func(i int) float64 {
		return []float64{1, 2, 5}[(i%3+3)%3] * math.Pow(10, math.Floor(float64(i)/3))
	}
	const slack = 1e-9
	first := 3 * int(math.Floor(math.Log10(lowest)))
	for value(first+1) <= lowest*(1+slack) {
		first++
	}
	last := first + 1
	for value(last) < highest*(1-slack) {
		last++
	}
	a := span{from: math.Log10(value(first)), to: math.Log10(value(last))}
	every := 1
	if last-first > maxIntervals {
		every = 3 * (1 + (last-first)/(3*maxIntervals))
	}
	for i := first; i <= last; i++ {
		tick := tick{at: math.Log10(value(i))}
		if (i%every+every)%every == 0 {
			tick.label = format.Short(value(i))
		}
		a.ticks = append(a.ticks, tick)
	}
	return a
}

func log2Span(lowest, highest float64) span {
	first, last := math.Floor(math.Log2(lowest)), math.Ceil(math.Log2(highest))
	last = max(last, first+1)
	every := math.Ceil((last - first) / (2 * maxIntervals))
	a := span{from: first, to: last}
	for i := first; i <= last; i += every {
		a.ticks = append(a.ticks, tick{at: i, label: format.Short(math.Exp2(i))})
	}
	return a
}

func ninesSpan(highest float64) span {
	a := span{to: max(Nines.place(highest), 1)}
	for i, label := range []string{"p0", "p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999"} {
		if float64(i) <= a.to {
			a.ticks = append(a.ticks, tick{at: float64(i), label: label})
		}
	}
	return a
}
