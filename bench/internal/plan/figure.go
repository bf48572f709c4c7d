package plan

import (
	"fmt"
	"math"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// level is the confidence of the intervals.
const level = 0.95

// figure is something measured, at a rate.
type figure struct {
	value float64
	off   *float64 // half of its interval, as a share of it; nil: nothing was repeated
	known bool
	basis string
}

// The figures of a measurement.
func appCPU(m result.Step) *float64   { return m.CostPerSaga.AppCPUUS }
func storeCPU(m result.Step) *float64 { return m.CostPerSaga.StoreCPUUS }
func loadCPU(m result.Step) *float64  { return m.CostPerSaga.LoadCPUUS }
func bytesIn(m result.Step) *float64  { return m.CostPerSaga.StoreBytesIn }
func bytesOut(m result.Step) *float64 { return m.CostPerSaga.StoreBytesOut }
func fsyncs(m result.Step) *float64   { return m.CostPerSaga.StoreFsyncs }
func latency(m result.Step) *float64  { return m.LatencyMS.Mean }

// memory leaves out what says that sagas gave memory back: a server did, of its own.
func memory(m result.Step) *float64 {
	if x := m.CostPerSaga.StoreMemoryBytes; x != nil && *x > 0 {
		return x
	}
	return nil
}

// place is a measured rate with what was measured of one figure there.
type place struct {
	rate float64
	xs   []float64
}

// at is a figure at a rate, on a straight line between the measured rates next to it;
// outside of them it is that of the nearest.
func (e evidence) at(perS float64, name, unit string, of func(result.Step) *float64) figure {
	var places []place
	for _, r := range e.rates {
		if xs := known(r.runs, of); len(xs) > 0 {
			places = append(places, place{r.rate, xs})
		}
	}
	if len(places) == 0 {
		return figure{basis: name + " was not measured"}
	}
	below, above := places[0], places[len(places)-1]
	for _, p := range places {
		if p.rate <= perS {
			below = p
		}
	}
	for i := len(places) - 1; i >= 0; i-- {
		if places[i].rate >= perS {
			above = places[i]
		}
	}
	if perS <= places[0].rate {
		above = below
	} else if perS >= places[len(places)-1].rate {
		below = above
	}
	value := stats.Mean(below.xs)
	if above.rate > below.rate {
		share := (perS - below.rate) / (above.rate - below.rate)
		value += share * (stats.Mean(above.xs) - value)
	}
	return figure{
		value: value, known: true, off: spread(places, min(len(below.xs), len(above.xs))),
		basis: fmt.Sprintf("%s %s%s, %s", name, format.Number(value), unit, e.where(below, above)),
	}
}

// where says at which measured rates, and of which results.
func (e evidence) where(below, above place) string {
	text := fmt.Sprintf("measured at %s/s", format.Number(below.rate))
	if above.rate > below.rate {
		text = fmt.Sprintf("measured at %s/s and %s/s", format.Number(below.rate), format.Number(above.rate))
	}
	return text + " (" + e.names() + ")"
}

func (e evidence) names() string {
	names := e.ids[0]
	if len(e.ids) > 1 {
		names += fmt.Sprintf(" and %d more", len(e.ids)-1)
	}
	if e.hosts > 1 {
		names += fmt.Sprintf(", %d app hosts", e.hosts)
	}
	return names
}

// spread is half the interval of one more measurement, as a share, where there are n:
// from how far repeats of the same rate are apart, at all rates together.
func spread(places []place, n int) *float64 {
	squares, free := 0.0, 0
	for _, p := range places {
		mean := stats.Mean(p.xs)
		if mean == 0 {
			continue
		}
		for _, x := range p.xs {
			squares += math.Pow(x/mean-1, 2)
		}
		free += len(p.xs) - 1
	}
	if free == 0 {
		return nil
	}
	off := stats.Student(level, free) * math.Sqrt(squares/float64(free)*(1+1/float64(n)))
	return &off
}

// times is the figure as a value and its interval, times a factor that is known.
func (f figure) times(factor float64) (value, low, high *float64) {
	if !f.known {
		return nil, nil, nil
	}
	x := f.value * factor
	if f.off == nil {
		return &x, nil, nil
	}
	from, to := x*max(0, 1-*f.off), x*(1+*f.off)
	return &x, &from, &to
}
