package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/usl"
	"sagabench/internal/format"
)

// Law is the highest rate that kept the demanded service level over the number of app
// hosts, and the Universal Scalability Law of it: one point of each result.
type Law struct {
	Points []usl.Point `json:"points"`
	Fit    usl.Fit     `json:"fit"`

	measured []result.Step // at that rate, as Points
}

// leastNumbers of app hosts make a line.
const leastNumbers = 3

// lawOf fits the law to results of several numbers of app hosts; nil: they are of one.
// Results of several that carry no law carry no plan either: they do not have the same
// rates.
func lawOf(results []result.Result, slo result.SLO) (*Law, error) {
	hosts := numbers(results)
	if len(hosts) == 1 {
		return nil, nil
	}
	if len(hosts) < leastNumbers {
		return nil, fmt.Errorf("%w: results are of %d and %d app hosts, which do not carry the same rates: plan from those of one number, or of %d and more; bench report shows them side by side",
			ErrNoPlan, hosts[0], hosts[1], leastNumbers)
	}
	l := &Law{}
	for _, r := range results {
		e, err := gather([]result.Result{r})
		if err != nil {
			return nil, err
		}
		at, err := e.edge(slo)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", e.ids[0], err)
		}
		l.Points = append(l.Points, usl.Point{N: float64(e.hosts), X: at.kept.rate})
		l.measured = append(l.measured, at.kept.runs[0])
	}
	var err error
	if l.Fit, err = usl.FitPoints(l.Points, 1); errors.Is(err, usl.ErrNoFit) {
		return nil, fmt.Errorf("%w: from results of %d to %d app hosts: %w; plan from those of one number, or measure each again", ErrNoPlan, hosts[0], hosts[len(hosts)-1], err)
	}
	return l, err
}

// numbers of app hosts that there are results of, rising.
func numbers(results []result.Result) (hosts []int) {
	for _, r := range results {
		hosts = append(hosts, appHosts(r.Envelope().Run))
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// least is the smallest number of hosts in the measured range to which the law gives a
// rate, by its value or one end of its interval; nil: it gives it to none.
func (l *Law) least(perS float64, of func(usl.Estimate) float64) *float64 {
	for n := l.Fit.From; n <= l.Fit.To; n++ {
		if x, known := l.Fit.At(n); known && of(x) >= perS {
			return &n
		}
	}
	return nil
}

func fitted(x usl.Estimate) float64 { return x.Value }

// nearest are the results of the number of hosts that a plan rests on: of those that were
// measured the lowest that is enough, or else the highest.
func (l *Law) nearest(results []result.Result, perS float64) []result.Result {
	hosts := numbers(results)
	chosen := hosts[len(hosts)-1]
	if n := l.least(perS, fitted); n != nil {
		i, _ := slices.BinarySearch(hosts, int(*n))
		chosen = hosts[i]
	}
	return slices.DeleteFunc(slices.Clone(results), func(r result.Result) bool {
		return appHosts(r.Envelope().Run) != chosen
	})
}

// lawHosts are those of the app by the law, which knows what they carry together. It says
// nothing of more than were measured.
func (s sizing) lawHosts() group {
	g := group{name: "app hosts", each: s.peak}
	fit := s.law.Fit
	line := Line{What: g.name, Unit: fmt.Sprintf("hosts of %d cores", s.e.cores), Value: s.law.least(s.peak, fitted)}
	where := fmt.Sprintf("by the law over %.0f to %.0f app hosts (%d results)", fit.From, fit.To, len(s.law.Points))
	if line.Value == nil {
		n, x := s.law.most()
		line.Basis = fmt.Sprintf("%s they carry at most %s/s, with %.0f; it says nothing of more", where, interval(x), n)
		line.Extrapolated = true
		g.lines = []Line{line, s.cpu("app CPU", "app CPU per saga", appCPU, g.each)}
		return g
	}
	line.Low = s.law.least(s.peak, func(x usl.Estimate) float64 { return x.High })
	line.High = s.law.least(s.peak, func(x usl.Estimate) float64 { return x.Low })
	if line.High == nil {
		line.Caveat = "the law does not rule out that it takes more than were measured"
	}
	x, _ := fit.At(*line.Value)
	n := int(*line.Value)
	line.Basis = fmt.Sprintf("%s %.0f carry %s/s", where, *line.Value, interval(x))
	g.n, g.each, g.full = &n, s.peak*float64(s.e.hosts)/float64(n), x.Value/s.peak
	if less, known := fit.At(*line.Value - 1); known {
		g.less = less.Value / s.peak
	}
	g.lines = []Line{line, s.cpu("app CPU", "app CPU per saga", appCPU, g.each)}
	return g
}

// most is the number of hosts in the measured range with the highest rate, and that rate.
func (l *Law) most() (hosts float64, best usl.Estimate) {
	best.Value = math.Inf(-1)
	for n := l.Fit.From; n <= l.Fit.To; n++ {
		if x, known := l.Fit.At(n); known && x.Value > best.Value {
			hosts, best = n, x
		}
	}
	return hosts, best
}

func interval(x usl.Estimate) string {
	return fmt.Sprintf("%s (%s to %s)", format.Number(x.Value), format.Number(x.Low), format.Number(x.High))
}
