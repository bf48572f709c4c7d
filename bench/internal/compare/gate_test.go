package compare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
)

func TestParseGate_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]compare.Gate{
		"store_cpu_us<=+5%":      {Metric: "store_cpu_us", Percent: 5},
		" p99_ms <= 2.5% ":       {Metric: "p99_ms", Percent: 2.5},
		"achieved_per_s>=-3%":    {Metric: "achieved_per_s", AtLeast: true, Percent: -3},
		"store_memory_bytes<=0%": {Metric: "store_memory_bytes"},
	} {
		g, err := compare.ParseGate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, g, text)
		again, err := compare.ParseGate(g.String())
		require.NoError(t, err)
		require.Equal(t, g, again)
	}
}

func TestParseGate_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   `not a gate: "" is not METRIC<=CHANGE% or METRIC>=CHANGE%, as in store_cpu_us<=+5%`,
		"store_cpu_us<5%":    `not a gate: "store_cpu_us<5%" is not METRIC<=CHANGE% or METRIC>=CHANGE%, as in store_cpu_us<=+5%`,
		"store_cpu_us<=5":    `not a gate: "store_cpu_us<=5" is not METRIC<=CHANGE% or METRIC>=CHANGE%, as in store_cpu_us<=+5%`,
		"cpu<=5%":            `"cpu<=5%" names no metric; there are achieved_per_s, store_cpu_us, app_cpu_us, `,
		"app_cpu_us<=-100%":  `"app_cpu_us<=-100%": a change is more than -100%`,
		"app_cpu_us<=5%;x%":  "is not METRIC",
		"app_cpu_us<=+-5.0%": "is not METRIC",
	} {
		_, err := compare.ParseGate(text)
		require.ErrorIs(t, err, compare.ErrGate)
		require.ErrorContains(t, err, want)
	}
}

func TestCheck_IsBrokenOnlyBeyondTheInterval(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	for i := range b.Runs {
		*b.Runs[i].CostPerSaga.AppCPUUS *= 1.1
	}
	c, _ := compared(t, a, b)
	for text, want := range map[string]compare.Outcome{
		"app_cpu_us<=+20%": compare.Kept,
		"app_cpu_us<=+10%": compare.CannotTell,
		"app_cpu_us<=+5%":  compare.Broken,
		"app_cpu_us>=+5%":  compare.Kept,
		"app_cpu_us>=+10%": compare.CannotTell,
		"app_cpu_us>=+20%": compare.Broken,
	} {
		g, err := compare.ParseGate(text)
		require.NoError(t, err)
		got := c.Check([]compare.Gate{g})[0]
		require.Equal(t, want, got.Outcome, text)
		require.Equal(t, text, got.Gate)
		require.Regexp(t, `^B against A: \+(9|10)\.[0-9]+% \(\+[0-9.]+% to \+[0-9.]+%, interval of 95\.0%\)$`, got.Evidence)
	}
}

func TestCheck_CannotTellWhatIsNotRanked(t *testing.T) {
	t.Parallel()
	g := compare.Gate{Metric: "store_cpu_us", Percent: 5}
	a, b := sides(4, quiet())
	c, _ := compared(t, a, b)
	require.Equal(t, []compare.GateResult{{
		Gate: "store_cpu_us<=+5%", Outcome: compare.CannotTell,
		Evidence: "not ranked: too few runs: 4 of each, 5 are needed",
	}}, c.Check([]compare.Gate{g}))

	a, b = sides(5, quiet())
	for i := range b.Runs {
		b.Runs[i].CostPerSaga.StoreCPUUS = nil
	}
	c, _ = compared(t, a, b)
	require.Equal(t, []compare.GateResult{{
		Gate: "store_cpu_us<=+5%", Outcome: compare.CannotTell, Evidence: "not measured in every run",
	}}, c.Check([]compare.Gate{g}))

	wild := []float64{1, 1e5, 1e-5, 1e5, 1e-5, 1, 1e5, 1e-5, 1, 1e5}
	a, b = sides(5, func(i int) func() float64 { return func() float64 { return wild[i] } })
	c, _ = compared(t, a, b)
	require.Equal(t, "cannot tell: the runs vary too much", c.Check([]compare.Gate{g})[0].Evidence)
	m := metric(t, c, "store_cpu_us")
	require.Equal(t, "cannot tell: the runs vary too much", m.Verdict)
	require.Nil(t, m.Ratio.Low)
}

// A gate asks one question: its interval is narrower than that of the table, which shares
// its chances with all other metrics. Several gates share theirs.
func TestCheck_HasItsOwnLevel(t *testing.T) {
	t.Parallel()
	a, b := sides(5, quiet())
	c, _ := compared(t, a, b)
	p99, cpu := compare.Gate{Metric: "p99_ms", Percent: 5}, compare.Gate{Metric: "app_cpu_us", Percent: 5}
	require.InDelta(t, 0.95, *c.Check([]compare.Gate{p99})[0].Confidence, 1e-9)
	require.Greater(t, *metric(t, c, "p99_ms").Ratio.Confidence, 0.999)
	for _, g := range c.Check([]compare.Gate{p99, cpu}) {
		require.InDelta(t, 0.975, *g.Confidence, 1e-9)
		require.Contains(t, g.Evidence, "interval of 97.5%")
	}
	require.Empty(t, c.Check(nil))
}
