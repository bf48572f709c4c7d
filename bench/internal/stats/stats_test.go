package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/stats"
	"sagabench/internal/race"
)

func TestQuantile_InterpolatesAndLeavesItsArgument(t *testing.T) {
	t.Parallel()
	xs := []float64{40, 10, 30, 20}
	for q, want := range map[float64]float64{0: 10, 0.25: 17.5, 0.5: 25, 1: 40} {
		require.InDelta(t, want, stats.Quantile(xs, q), 1e-12)
	}
	require.Equal(t, []float64{40, 10, 30, 20}, xs)
	require.InDelta(t, 3, stats.Median([]float64{9, 1, 3}), 0)
	require.True(t, math.IsNaN(stats.Median(nil)))
	low, high := stats.Between(xs, 0.5)
	require.InDelta(t, 17.5, low, 1e-12)
	require.InDelta(t, 32.5, high, 1e-12)
}

func TestStudent_IsThatOfTheTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level float64
		df    int
		want  float64
	}{
		{0.95, 1, 12.706},
		{0.95, 2, 4.303},
		{0.95, 3, 3.182},
		{0.95, 4, 2.776},
		{0.95, 7, 2.365},
		{0.95, 30, 2.042},
		{0.99, 5, 4.032},
		{0.99, 8, 3.355},
		{0.999, 7, 5.408},
		{0.95, 1000, 1.962},
	} {
		require.InDelta(t, c.want, stats.Student(c.level, c.df), 0.0006, "%v", c)
	}
}

func TestBootstrap_SameSeedSameValues(t *testing.T) {
	t.Parallel()
	xs := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	draw := func(seed uint64) []float64 { return stats.Bootstrap(xs, seed, 2000, stats.Mean) }
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))

	// The mean of eight draws from these has a standard deviation of √(5.25/8).
	spread := 0.0
	for _, mean := range draw(3) {
		spread += (mean - 4.5) * (mean - 4.5) / 2000
	}
	require.InDelta(t, math.Sqrt(5.25/8), math.Sqrt(spread), 0.03)
}

// interleaved are the samples of five pairs made in the order A B B A A B B A A B: B is
// ratio times A, and other is what the run at index i was changed by besides.
func interleaved(ratio float64, other func(i int) float64) []stats.Sample {
	var samples []stats.Sample
	for i := range 10 {
		s := stats.Sample{At: float64(i), Value: 40 * other(i)}
		if i%4 == 1 || i%4 == 2 {
			s.Variant, s.Value = 1, ratio*s.Value
		}
		samples = append(samples, s)
	}
	return samples
}

func TestRatioOf_TakesOutADrift(t *testing.T) {
	t.Parallel()
	r, ok := stats.RatioOf(interleaved(1.1, func(i int) float64 { return math.Pow(1.5, float64(i)/9) }), 0.95)
	require.True(t, ok)
	for _, x := range []float64{r.BToA.Low, r.BToA.Value, r.BToA.High} {
		require.InDelta(t, 1.1, x, 1e-6)
	}
	require.InDelta(t, 1.5, r.Drift.Value, 1e-6)
}

func TestRatioOf_ComparesEachThingWithItself(t *testing.T) {
	t.Parallel()
	const tables = 2000
	missed := 0
	for seed := range uint64(tables) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var samples []stats.Sample
		for of := range 4 {
			level := math.Exp(3 * rng.NormFloat64()) // things differ far more than sides
			for i, s := range interleaved(1.1, func(int) float64 { return math.Exp(0.05 * rng.NormFloat64()) })[:3+2*of] {
				s.Of, s.Value, s.At = of, s.Value*level, s.At*4+float64(of)+float64(i%2)
				samples = append(samples, s)
			}
		}
		r, ok := stats.RatioOf(samples, 0.95)
		require.True(t, ok)
		require.Less(t, r.BToA.High/r.BToA.Low, 1.25)
		if r.BToA.Low > 1.1 || r.BToA.High < 1.1 {
			missed++
		}
	}
	require.InDelta(t, 0.05, float64(missed)/tables, 3*math.Sqrt(0.05*0.95/tables))
}

func TestRatioOf_NeedsBothSidesAtSeveralTimes(t *testing.T) {
	t.Parallel()
	a, b := stats.Sample{Value: 1}, stats.Sample{Variant: 1, At: 1, Value: 2}
	for name, samples := range map[string][]stats.Sample{
		"three":     {a, b, a},
		"one side":  {a, {At: 1, Value: 1}, {At: 2, Value: 1}, {At: 3, Value: 1}},
		"one time":  {a, a, {Variant: 1, Value: 2}, {Variant: 1, Value: 2}},
		"two times": {a, a, b, b},
	} {
		_, ok := stats.RatioOf(samples, 0.95)
		require.False(t, ok, name)
	}
}

// What the interval promises, of runs as they are: it misses the truth no more often
// than its level allows, whatever else the machine does meanwhile.
func TestRatioOf_HoldsTheTruthAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const trials, truth, level = 4000, 1.25, 0.95
	for name, other := range map[string]func(rng *rand.Rand) func(int) float64{
		"quiet": func(rng *rand.Rand) func(int) float64 {
			return func(int) float64 { return math.Exp(0.03 * rng.NormFloat64()) }
		},
		"noisy": func(rng *rand.Rand) func(int) float64 {
			return func(int) float64 { return math.Exp(0.1 * rng.NormFloat64()) }
		},
		"drift": func(rng *rand.Rand) func(int) float64 {
			return func(i int) float64 { return math.Exp(0.03*rng.NormFloat64() + 0.03*float64(i)) }
		},
		"step": func(rng *rand.Rand) func(int) float64 {
			at := rng.IntN(11)
			return func(i int) float64 {
				x := 0.03 * rng.NormFloat64()
				if i >= at {
					x += 0.15
				}
				return math.Exp(x)
			}
		},
		"outlier": func(rng *rand.Rand) func(int) float64 {
			at := rng.IntN(10)
			return func(i int) float64 {
				x := 0.03 * rng.NormFloat64()
				if i == at {
					x += 0.4
				}
				return math.Exp(x)
			}
		},
		"phases": func(rng *rand.Rand) func(int) float64 {
			x := 0.0
			return func(int) float64 {
				x = 0.8*x + 0.03*rng.NormFloat64()
				return math.Exp(x)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(6, 1))
			missed := 0
			for range trials {
				r, ok := stats.RatioOf(interleaved(truth, other(rng)), level)
				require.True(t, ok)
				if r.BToA.Low > truth || r.BToA.High < truth {
					missed++
				}
			}
			// Three standard errors of the simulation itself.
			allowed := 1 - level + 3*math.Sqrt(level*(1-level)/trials)
			require.LessOrEqual(t, float64(missed)/trials, allowed)
		})
	}
}

// Several variants that share a variance show what no pair of few runs shows alone. Neither
// these nor one that varies three times as much misses the truth much more often than it says.
func TestFitVariants_HoldsTheTruthAndTellsMoreThanAPair(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const tables, level = 2000, 0.99
	for name, c := range map[string]struct {
		noise  [4]float64
		missed float64 // share of the intervals, at most
	}{
		"alike":             {[4]float64{0.1, 0.1, 0.1, 0.1}, 0.01},
		"one varies more":   {[4]float64{0.3, 0.1, 0.1, 0.1}, 0.02},
		"two vary more":     {[4]float64{0.3, 0.3, 0.1, 0.1}, 0.02},
		"one hardly at all": {[4]float64{0.01, 0.1, 0.1, 0.1}, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(6, 2))
			missed, together, alone := 0, 0.0, 0.0
			for range tables {
				var samples, pair []stats.Sample
				for range 3 {
					for _, v := range rng.Perm(4) {
						i := len(samples)
						samples = append(samples, stats.Sample{Variant: v, At: float64(i), Value: math.Exp(float64(v) + 0.02*float64(i) + c.noise[v]*rng.NormFloat64())})
						if v < 2 {
							pair = append(pair, samples[i])
						}
					}
				}
				f, ok := stats.FitVariants(samples)
				require.True(t, ok)
				first := f.Ratio(0, 1, level)
				one, ok := stats.RatioOf(pair, level)
				require.True(t, ok)
				together += math.Log(first.High / first.Low)
				alone += math.Log(one.BToA.High / one.BToA.Low)
				for a := range 4 {
					for b := a + 1; b < 4; b++ {
						if r, truth := f.Ratio(a, b, level), math.Exp(float64(b-a)); r.Low > truth || r.High < truth {
							missed++
						}
					}
				}
			}
			t.Logf("%.2f%% missed, %.2f of the width of a pair alone", 100*float64(missed)/tables/6, together/alone)
			require.LessOrEqual(t, float64(missed)/tables/6, c.missed+0.002)
			require.Less(t, together, alone)
		})
	}
}

// Runs that were not interleaved cannot tell a drift from a difference, and the
// interval shows it.
func TestRatioOf_IsWiderWhenNotInterleaved(t *testing.T) {
	t.Parallel()
	noise := func(i int) float64 { return []float64{1, 1.02, 0.97, 1.01, 1.03, 0.99, 0.98, 1.02, 1, 0.97}[i] }
	mixed := interleaved(1, noise)
	blocks := slices.Clone(mixed)
	for i := range blocks {
		blocks[i].Variant = i / 5
	}
	width := func(samples []stats.Sample) float64 {
		r, ok := stats.RatioOf(samples, 0.95)
		require.True(t, ok)
		return r.BToA.High - r.BToA.Low
	}
	require.Greater(t, width(blocks), 1.8*width(mixed))
}

// The numbers of values left out at each end are those of the sign test's tables.
func TestMedianInterval_IsTheSignTest(t *testing.T) {
	t.Parallel()
	for level, excluded := range map[float64]map[int]int{
		0.95: {1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 12: 2, 15: 3, 20: 5, 25: 7},
		0.99: {8: 0, 11: 0, 12: 1, 20: 3, 25: 5},
	} {
		for n, k := range excluded {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = float64(n - i) // n down to 1
			}
			require.Equal(t, stats.Interval{Value: float64(n+1) / 2, Low: float64(1 + k), High: float64(n - k)}, stats.MedianInterval(xs, level), "%d values, %v", n, level)
		}
	}
}
