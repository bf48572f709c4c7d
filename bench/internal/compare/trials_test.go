package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/internal/race"
)

// machines are what happens beside the noise: the natural logarithm of the factor by
// which everything is off in the run at index i of ten.
func machines(rng *rand.Rand) map[string]func() func(i int) float64 {
	return map[string]func() func(int) float64{
		"steady": func() func(int) float64 { return func(int) float64 { return 0 } },
		"drift":  func() func(int) float64 { return func(i int) float64 { return 0.02 * float64(i) } },
		"outlier": func() func(int) float64 {
			at := rng.IntN(10)
			return func(i int) float64 {
				if i == at {
					return 0.4
				}
				return 0
			}
		},
		"step": func() func(int) float64 {
			at := rng.IntN(11)
			return func(i int) float64 {
				if i >= at {
					return 0.1
				}
				return 0
			}
		},
	}
}

// differing are the trials in which one of the metrics is said to differ.
func differing(t *testing.T, trials int, noise float64, machine string, change func(*compare.Side), keys ...string) int {
	t.Helper()
	rng := rand.New(rand.NewPCG(20, 26))
	found := 0
	for range trials {
		off := machines(rng)[machine]()
		a, b := sides(5, func(i int) func() float64 {
			return func() float64 { return math.Exp(off(i) + noise*rng.NormFloat64()) }
		})
		change(&b)
		c, v := compared(t, a, b)
		require.True(t, v.Valid)
		require.Empty(t, c.NotRanked)
		for _, m := range c.Metrics {
			wanted := len(keys) == 0 || m.Metric == keys[0]
			if m.Better != nil && wanted {
				found++
				break
			}
		}
	}
	return found
}

// All twelve metrics are noisy, each for itself: the most questions that are asked at
// once.
func TestMake_ShowsNoDifferenceFromItself(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const trials = 500
	for machine := range machines(nil) {
		for _, noise := range []float64{0.03, 0.10} {
			t.Run(machine, func(t *testing.T) {
				t.Parallel()
				n := differing(t, trials, noise, machine, func(*compare.Side) {})
				t.Logf("noise %v: %d of %d", noise, n, trials)
				require.LessOrEqual(t, n, trials/20)
			})
		}
	}
}

func TestMake_FindsATenthMoreCPUPerSaga(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const trials = 1000
	for _, machine := range []string{"steady", "drift"} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			n := differing(t, trials, 0.03, machine, func(b *compare.Side) {
				for i := range b.Runs {
					*b.Runs[i].CostPerSaga.AppCPUUS *= 1.1
				}
			}, "app_cpu_us")
			t.Logf("%d of %d", n, trials)
			require.GreaterOrEqual(t, n, trials*9/10)
		})
	}
}

// The true change is the limit: whoever says kept or broken is wrong in that respect. At 95%
// each happens in 2.5 of 100 comparisons.
func TestCheck_IsSeldomWrongAtTheLimit(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const trials = 1000
	for _, gates := range [][]compare.Gate{
		{{Metric: "p99_ms", Percent: 5}},
		{{Metric: "p99_ms", Percent: 5}, {Metric: "app_cpu_us", Percent: 5}, {Metric: "achieved_per_s", AtLeast: true, Percent: -5}},
	} {
		for machine := range machines(nil) {
			t.Run(fmt.Sprintf("%s, %d gates", machine, len(gates)), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(20, 27))
				count := map[compare.Outcome]int{}
				for range trials {
					off := machines(rng)[machine]()
					a, b := sides(5, func(i int) func() float64 {
						return func() float64 { return math.Exp(off(i) + 0.05*rng.NormFloat64()) }
					})
					for i := range b.Runs {
						*b.Runs[i].LatencyMS.P99 *= 1.05
						*b.Runs[i].CostPerSaga.AppCPUUS *= 1.05
						b.Runs[i].Load.AchievedPerS *= 0.95
					}
					c, _ := compared(t, a, b)
					said := map[compare.Outcome]bool{}
					for _, g := range c.Check(gates) {
						said[g.Outcome] = true
					}
					for outcome := range said {
						count[outcome]++
					}
				}
				t.Log(count)
				allowed := trials * 4 / 100 // 2.5%, and three standard errors of the simulation
				require.LessOrEqual(t, count[compare.Broken], allowed)
				require.LessOrEqual(t, count[compare.Kept], allowed)
			})
		}
	}
}
