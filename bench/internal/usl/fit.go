package usl

import (
	"errors"
	"fmt"
	"math"

	"sagabench/bench/internal/stats"
)

// ErrNoFit reports points that do not support a fit.
var ErrNoFit = errors.New("no scaling law fitted")

const (
	// minPoints is the number of points that a fit needs: twice its parameters, so that as
	// many are left to check it. minDistinct is the number of different n: as many as the
	// law has parameters.
	minPoints   = 6
	minDistinct = 3
	// maxResidual is the highest standard deviation of the relative residuals. Equal runs
	// differ by 3 to 5% on an idle machine; twice that is more than noise. R² cannot be used:
	// for a flat curve, which the law fits well, it is 0.
	maxResidual = 0.10

	rounds = 1000
	level  = 0.95
	places = 17 // of the curve
)

// FitPoints fits the law by least squares of the relative residuals, with λ > 0 and
// σ, κ ≥ 0, and bootstraps the intervals with seed. It returns an error that wraps ErrNoFit
// for a point that is not positive, fewer than six points, fewer than three different n, or
// residuals above noise.
func FitPoints(points []Point, seed uint64) (Fit, error) {
	from, to, err := span(points)
	if err != nil {
		return Fit{}, err
	}
	l, ok := fit(points)
	if !ok {
		return Fit{}, fmt.Errorf("%w: the points determine none", ErrNoFit)
	}
	var residuals, logs []float64
	var squares float64
	for _, p := range points {
		residuals = append(residuals, 1-l.at(p.N)/p.X)
		logs = append(logs, math.Log(p.X/l.at(p.N)))
		squares += math.Pow(p.X/l.at(p.N)-1, 2)
	}
	free := len(points) - 3
	if off := math.Sqrt(squares / float64(free)); off > maxResidual {
		n, most := worst(points, residuals)
		return Fit{}, fmt.Errorf("%w: the law is off by %.0f%%, at n = %.4g by %.0f%%; up to %.0f%% would be noise",
			ErrNoFit, 100*off, n, 100*most, 100*maxResidual)
	}
	draws := redraw(points, l, logs, free, seed)
	f := Fit{
		Lambda:    estimate(l, draws, law.lambda),
		Sigma:     estimate(l, draws, law.sigma),
		Kappa:     estimate(l, draws, law.kappa),
		R2:        r2(points, l),
		Residuals: residuals,
		From:      from,
		To:        to,
	}
	for i := range places {
		n := from * math.Pow(to/from, float64(i)/(places-1))
		f.Curve = append(f.Curve, Place{n, estimate(l, draws, func(l law) float64 { return l.at(n) })})
	}
	f.Curve[places-1].N = to // exactly, without a rounding error
	return f, nil
}

// span returns the range of n, or an error if the points cannot be fitted.
func span(points []Point) (from, to float64, err error) {
	from = math.Inf(1)
	distinct := map[float64]bool{}
	for _, p := range points {
		// n below 1 would make a negative number of others.
		if !(p.X > 0) || !(p.N >= 1) || math.IsInf(p.X, 0) || math.IsInf(p.N, 0) {
			return 0, 0, fmt.Errorf("%w: %v per second at n = %v is no measurement", ErrNoFit, p.X, p.N)
		}
		distinct[p.N] = true
		from, to = min(from, p.N), max(to, p.N)
	}
	switch {
	case len(points) < minPoints:
		return 0, 0, fmt.Errorf("%w: of %d measurements, %d are needed", ErrNoFit, len(points), minPoints)
	case len(distinct) < minDistinct:
		return 0, 0, fmt.Errorf("%w: of %d different n, %d are needed", ErrNoFit, len(distinct), minDistinct)
	}
	return from, to, nil
}

// worst returns the n with the largest residual, and that residual.
func worst(points []Point, residuals []float64) (n, most float64) {
	for i, r := range residuals {
		if math.Abs(r) >= most {
			n, most = points[i].N, math.Abs(r)
		}
	}
	return n, most
}

// redraw fits the law to resampled points: the fitted ones times noise drawn from the
// residuals. The residuals are widened twice: for the degrees of freedom that the fit used,
// and by the ratio of Student's t to the normal distribution.
func redraw(points []Point, l law, logs []float64, free int, seed uint64) []law {
	mean := stats.Mean(logs)
	const normal = 1.96
	wider := math.Sqrt(float64(len(points))/float64(free)) * stats.Student(level, free) / normal
	resampled := make([]Point, len(points))
	return stats.Bootstrap(logs, seed, rounds, func(sample []float64) law {
		for i, p := range points {
			resampled[i] = Point{p.N, l.at(p.N) * math.Exp(wider*(sample[i]-mean))}
		}
		drawn, ok := fit(resampled)
		if !ok {
			return l
		}
		return drawn
	})
}

func estimate(l law, draws []law, of func(law) float64) Estimate {
	values := make([]float64, len(draws))
	for i, d := range draws {
		values[i] = of(d)
	}
	low, high := stats.Between(values, level)
	value := of(l)
	return Estimate{value, min(low, value), max(high, value)}
}

// r2 returns the share of the variance of the throughput that the law explains, 1 if there
// is no variance.
func r2(points []Point, l law) float64 {
	var xs []float64
	for _, p := range points {
		xs = append(xs, p.X)
	}
	mean := stats.Mean(xs)
	var all, left float64
	for _, p := range points {
		all += math.Pow(p.X-mean, 2)
		left += math.Pow(p.X-l.at(p.N), 2)
	}
	if all == 0 {
		return 1
	}
	return 1 - left/all
}
