package plan

import (
	"fmt"
	"math"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// measure is a figure of one measurement; nil if it was not measured.
type measure func(result.Step) *float64

// figure is a cost of a saga at a rate.
type figure struct {
	value     float64
	low, high *float64 // lowest and highest, as shares of value; nil: not known
	spans     string   // what low and high are the lowest and highest of
	known     bool
	far       bool // measured at no rate near this one
	basis     string
}

// The figures of a measurement.
func appCPU(m result.Step) *float64   { return m.CostPerSaga.AppCPUUS }
func storeCPU(m result.Step) *float64 { return m.CostPerSaga.StoreCPUUS }
func loadCPU(m result.Step) *float64  { return m.CostPerSaga.LoadCPUUS }
func bytesIn(m result.Step) *float64  { return m.CostPerSaga.StoreBytesIn }
func bytesOut(m result.Step) *float64 { return m.CostPerSaga.StoreBytesOut }
func fsyncs(m result.Step) *float64   { return m.CostPerSaga.StoreFsyncs }
func latency(m result.Step) *float64  { return m.LatencyMS.Mean }
func written(m result.Step) *float64 {
	return m.CostPerSaga.StoreBytesWritten
}

// mainCPU is that of the thread which runs the store's commands.
func mainCPU(m result.Step) *float64 {
	return ratio(m.Resources.StoreMainCore, &m.Load.AchievedPerS, perCore)
}

// primaryCPU is that of a server without its replica's.
func primaryCPU(m result.Step) *float64 {
	return ratio(m.Resources.StorePrimaryCores, &m.Load.AchievedPerS, perCore)
}

// childCPU is that of the children which rewrite the log and write snapshots.
func childCPU(m result.Step) *float64 {
	return ratio(m.Resources.StoreChildCores, &m.Load.AchievedPerS, perCore)
}

func appShare(m result.Step) *float64 {
	return ratio(m.Resources.AppCores, m.Resources.AppCoresUsable, 1)
}

func storeShare(m result.Step) *float64 {
	return ratio(m.Resources.StoreCores, m.Resources.StoreCoresUsable, 1)
}

func appCores(m result.Step) *float64   { return m.Resources.AppCoresUsable }
func storeCores(m result.Step) *float64 { return m.Resources.StoreCoresUsable }

// memory leaves out what says that sagas gave memory back: a server did, of its own.
func memory(m result.Step) *float64 {
	if x := m.CostPerSaga.StoreMemoryBytes; x != nil && *x > 0 {
		return x
	}
	return nil
}

func ratio(x, y *float64, factor float64) *float64 {
	if x == nil || y == nil || *y <= 0 {
		return nil
	}
	share := *x / *y * factor
	return &share
}

// A rate is near another one if it is between these multiples of it. Costs of a saga fall
// as batches fill, so those of other rates say little.
const nearBelow, nearAbove = 0.5, 1.5

// point is one measurement of a figure.
type point struct{ rate, cost, weight float64 }

// points are those of the measurements whose rate is between two.
func (s source) points(of measure, from, to float64) (list []point) {
	for _, m := range s.tried {
		if x, perS := of(m), m.Load.AchievedPerS; x != nil && followed(m) && from <= perS && perS <= to {
			list = append(list, point{perS, *x, max(1, m.DurationS)}) // a hold counts for more than a short step
		}
	}
	return list
}

// at is a figure at a rate, from all measurements near it. If there are none, it is that of
// the nearest ones.
func (e evidence) at(perS float64, name, unit string, of measure) figure {
	from, to := nearBelow*perS, nearAbove*perS
	points := e.points(of, from, to)
	far := len(points) == 0
	if far {
		nearest := 0.0
		for _, p := range e.points(of, 0, math.Inf(1)) {
			if nearest == 0 || math.Abs(p.rate-perS) < math.Abs(nearest-perS) {
				nearest = p.rate
			}
		}
		from, to = nearest/sameRate, nearest*sameRate
		if points = e.points(of, from, to); nearest == 0 || len(points) == 0 {
			return figure{basis: name + " was not measured"}
		}
	}
	f := figure{value: fit(points, perS), known: true, far: far}
	f.basis = fmt.Sprintf("%s %s%s, %s (%s)", name, format.Number(f.value), unit, where(points), e.names())
	if far {
		f.basis += fmt.Sprintf(", nothing nearer to %s/s", format.Number(perS))
	}
	if f.value > 0 {
		e.spread(&f, points, perS, of, from, to)
	}
	return f
}

func (e evidence) points(of measure, from, to float64) (all []point) {
	for _, s := range e.sources {
		all = append(all, s.points(of, from, to)...)
	}
	return all
}

// leastToSpread is the number of measurements whose lowest and highest say something: two
// lie on any line.
const leastToSpread = 4

// spread adds the lowest and the highest: of the searches, or else of the measurements.
func (e evidence) spread(f *figure, points []point, perS float64, of measure, from, to float64) {
	low, high, n := 1.0, 1.0, 0
	take := func(share float64) { low, high = min(low, share), max(high, share) }
	for _, s := range e.sources {
		if own := s.points(of, from, to); s.search != nil && len(own) > 0 {
			take(fit(own, perS) / f.value)
			n++
		}
	}
	switch {
	case n > 1:
		f.spans = between(n)
	case len(points) >= leastToSpread:
		for _, p := range points {
			if expected := fit(points, p.rate); expected > 0 { // a line through few may be at 0 in places
				take(p.cost / expected)
			}
		}
		if f.spans = "within this search"; n == 0 {
			f.spans = "between these runs"
		}
	default:
		return
	}
	f.low, f.high = &low, &high
}

func between(searches int) string { return fmt.Sprintf("between %d searches", searches) }

// fit is the cost of a saga at a rate: what is used per second is a fixed part and a part
// for each saga, by weighted least squares. It does not leave the measured rates.
func fit(points []point, perS float64) float64 {
	var n, x, y, xx, xy float64
	low, high := math.Inf(1), 0.0
	for _, p := range points {
		used := p.rate * p.cost
		n, x, y = n+p.weight, x+p.weight*p.rate, y+p.weight*used
		xx, xy = xx+p.weight*p.rate*p.rate, xy+p.weight*p.rate*used
		low, high = min(low, p.rate), max(high, p.rate)
	}
	if high <= sameRate*low {
		return y / x
	}
	slope := (n*xy - x*y) / (n*xx - x*x)
	perS = min(max(perS, low), high)
	return max(0, (y+slope*(n*perS-x))/n/perS)
}

// where says at which rates.
func where(points []point) string {
	low, high := math.Inf(1), 0.0
	for _, p := range points {
		low, high = min(low, p.rate), max(high, p.rate)
	}
	if high <= sameRate*low {
		return fmt.Sprintf("measured at %s/s", format.Number(low))
	}
	return fmt.Sprintf("measured at %s to %s/s", format.Number(low), format.Number(high))
}

// line is the figure times a factor that is known.
func (f figure) line(what, unit string, factor float64) Line {
	l := Line{What: what, Unit: unit, Basis: f.basis, Extrapolated: f.far}
	if f.known {
		x := f.value * factor
		l.Value = &x
	}
	if f.low != nil {
		l.Spans, l.Low, l.High = f.spans, times(l.Value, *f.low), times(l.Value, *f.high)
	}
	return l
}

func times(x *float64, factor float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x * factor
	return &y
}
