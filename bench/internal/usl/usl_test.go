package usl_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/usl"
	"sagabench/internal/race"
)

var inFlight = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

// measured are points of the law, each off by noise, a share as a standard deviation.
func measured(lambda, sigma, kappa, noise float64, seed uint64) []usl.Point {
	rng := rand.New(rand.NewPCG(seed, 0))
	var points []usl.Point
	for _, n := range inFlight {
		x := lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1))
		points = append(points, usl.Point{N: n, X: x * math.Exp(noise*rng.NormFloat64())})
	}
	return points
}

func TestFitPoints_FindsTheLawOfExactPoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lambda, sigma, kappa float64 }{
		"usual":         {1800, 0.03, 0.00002},
		"no contention": {1800, 0, 0.00002},
		"no coherence":  {1800, 0.03, 0},
		"linear":        {1800, 0, 0},
		"flat":          {1800, 1, 0},
		"past its peak": {50_000, 0.2, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := usl.FitPoints(measured(c.lambda, c.sigma, c.kappa, 0, 1), 1)
			require.NoError(t, err)
			for _, e := range []usl.Estimate{f.Lambda, f.Sigma, f.Kappa} {
				require.LessOrEqual(t, e.Low, e.Value)
				require.GreaterOrEqual(t, e.High, e.Value)
			}
			require.InEpsilon(t, c.lambda, f.Lambda.Value, 1e-6)
			require.InDelta(t, c.sigma, f.Sigma.Value, 1e-7)
			require.InDelta(t, c.kappa, f.Kappa.Value, 1e-9)
			require.InDelta(t, 1, f.R2, 1e-6)
			require.InDelta(t, 1, f.From, 0)
			require.InDelta(t, 512, f.To, 0)
			require.Len(t, f.Residuals, len(inFlight))
		})
	}
}

// The intervals of all three parameters, and that of the throughput at 100, hold the
// truth in at least 90 of 100 cases, whether or not a parameter is at its bound of 0.
func TestFitPoints_IntervalsHoldTheTruth(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for name, c := range map[string]struct{ lambda, sigma, kappa, noise float64 }{
		"quiet":        {1800, 0.03, 0.00002, 0.02},
		"noisy":        {1800, 0.03, 0.00002, 0.05},
		"no coherence": {1800, 0.05, 0, 0.03},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := map[string]int{}
			for seed := range uint64(200) {
				f, err := usl.FitPoints(measured(c.lambda, c.sigma, c.kappa, c.noise, seed), seed)
				require.NoError(t, err)
				x, known := f.At(100)
				require.True(t, known)
				for name, e := range map[string]struct {
					usl.Estimate
					truth float64
				}{
					"lambda": {f.Lambda, c.lambda}, "sigma": {f.Sigma, c.sigma}, "kappa": {f.Kappa, c.kappa},
					"x": {x, c.lambda * 100 / (1 + c.sigma*99 + c.kappa*9900)},
				} {
					if e.Low <= e.truth && e.truth <= e.High {
						held[name]++
					}
				}
			}
			for name, n := range held {
				t.Logf("%s: %d", name, n)
				require.GreaterOrEqual(t, n, 180, name)
			}
			require.Len(t, held, 4)
		})
	}
}

// The same of three numbers of hosts, measured twice each, for the throughput that a plan
// takes from them.
func TestFitPoints_IntervalsOfFewHostsHoldTheTruth(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const lambda, sigma, kappa = 10_000.0, 0.08, 0.005
	truth := func(n float64) float64 { return lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1)) }
	held := map[float64]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var points []usl.Point
		for _, n := range []float64{1, 1, 2, 2, 3, 3} {
			points = append(points, usl.Point{N: n, X: truth(n) * math.Exp(0.03*rng.NormFloat64())})
		}
		f, err := usl.FitPoints(points, seed)
		require.NoError(t, err)
		for _, n := range []float64{1, 2, 3} {
			if x, known := f.At(n); known && x.Low <= truth(n) && truth(n) <= x.High {
				held[n]++
			}
		}
		_, known := f.At(4)
		require.False(t, known)
	}
	for n, times := range held {
		t.Logf("%v hosts: %d", n, times)
		require.GreaterOrEqual(t, times, 180, n)
	}
	require.Len(t, held, 3)
}

func TestFitPoints_SameSeedSameFit(t *testing.T) {
	t.Parallel()
	points := measured(1800, 0.03, 0.00002, 0.03, 1)
	first, err := usl.FitPoints(points, 7)
	require.NoError(t, err)
	second, err := usl.FitPoints(points, 7)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestFitPoints_ResidualsAreSharesOfTheMeasured(t *testing.T) {
	t.Parallel()
	points := measured(1800, 0.03, 0.00002, 0.03, 1)
	f, err := usl.FitPoints(points, 1)
	require.NoError(t, err)
	for i, p := range points {
		x, known := f.At(p.N)
		require.True(t, known)
		require.InDelta(t, (p.X-x.Value)/p.X, f.Residuals[i], 1e-9)
	}
}

func TestFitPoints_RefusesWhatCarriesNoFit(t *testing.T) {
	t.Parallel()
	good := func() []usl.Point { return measured(1800, 0.03, 0.00002, 0, 1) }
	for name, c := range map[string]struct {
		points []usl.Point
		want   string
	}{
		"none":  {nil, "no scaling law fitted: of 0 measurements, 6 are needed"},
		"five":  {good()[:5], "no scaling law fitted: of 5 measurements, 6 are needed"},
		"two n": {slices.Repeat(good()[:2], 3), "no scaling law fitted: of 2 different n, 3 are needed"},
		"nothing done": {
			append(good(), usl.Point{N: 1024}),
			"no scaling law fitted: 0 per second at n = 1024 is no measurement",
		},
		"no number": {
			append(good(), usl.Point{N: 1024, X: math.NaN()}),
			"no scaling law fitted: NaN per second at n = 1024 is no measurement",
		},
		"half of one": {
			append(good(), usl.Point{N: 0.5, X: 10}),
			"no scaling law fitted: 10 per second at n = 0.5 is no measurement",
		},
	} {
		_, err := usl.FitPoints(c.points, 1)
		require.ErrorIs(t, err, usl.ErrNoFit, name)
		require.EqualError(t, err, c.want, name)
	}

	// Batches fill at 32, and throughput steps up: not this law.
	steps := good()
	for i := 5; i < len(steps); i++ {
		steps[i].X *= 3
	}
	_, err := usl.FitPoints(steps, 1)
	require.ErrorIs(t, err, usl.ErrNoFit)
	require.ErrorContains(t, err, "the law is off by")
	require.NotContains(t, err.Error(), "\n")
}

func TestAt_IsNotKnownBeyondTheMeasured(t *testing.T) {
	t.Parallel()
	f, err := usl.FitPoints(measured(1800, 0.03, 0.00002, 0.03, 1), 1)
	require.NoError(t, err)
	for _, n := range []float64{0, 0.99, 512.01, 1e6, math.Inf(1), math.NaN()} {
		_, known := f.At(n)
		require.False(t, known, "%v", n)
	}
	for _, n := range []float64{1, 1.5, 100, 512} {
		x, known := f.At(n)
		require.True(t, known, "%v", n)
		require.Less(t, x.Low, x.Value)
		require.Greater(t, x.High, x.Value)
	}
	_, known := usl.Fit{}.At(1)
	require.False(t, known)
}

func TestAt_IsTheSameOfAFitReadBack(t *testing.T) {
	t.Parallel()
	f, err := usl.FitPoints(measured(1800, 0.03, 0.00002, 0.03, 1), 1)
	require.NoError(t, err)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	var back usl.Fit
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, f, back)
}

func TestPeak_IsKnownInsideTheMeasuredRange(t *testing.T) {
	t.Parallel()
	f, err := usl.FitPoints(measured(1800, 0.19, 0.0001, 0, 1), 1)
	require.NoError(t, err)
	n, x, known := f.Peak()
	require.True(t, known)
	require.InDelta(t, 90, n, 0.01) // √((1 - 0.19) / 0.0001)
	for _, other := range []float64{0.8 * n, 1.25 * n} {
		less, _ := f.At(other)
		require.Less(t, less.Value, x.Value)
	}

	for _, kappa := range []float64{0, 0.000001} { // highest nowhere, and at 985
		f, err = usl.FitPoints(measured(1800, 0.03, kappa, 0, 1), 1)
		require.NoError(t, err)
		_, _, known = f.Peak()
		require.False(t, known)
	}
}
