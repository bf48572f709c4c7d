package capacity

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/simserver"
)

// queue is a server of known capacity in virtual time.
type queue struct {
	simserver.Law
	seed  uint64 // raised with every step
	steps int
}

// open is an open loop with Poisson arrivals on the queue.
func (q *queue) open(_ context.Context, rate float64, length time.Duration) (result.Step, error) {
	q.steps++
	q.seed++
	latencies := result.NewHistogram()
	served := q.Simulate(rate, length, q.seed)
	for _, s := range served {
		if err := latencies.RecordValue(s.Latency().Microseconds()); err != nil {
			return result.Step{}, err
		}
	}
	took := max(length, served[len(served)-1].Answered)
	return result.Step{
		Measurement: result.Measurement{
			LatencyMS: result.LatencyOf(latencies),
			Load: result.Load{
				Mode: result.Open, OfferedPerS: &rate, AchievedPerS: float64(len(served)) / took.Seconds(), Requests: int64(len(served)),
			},
		},
		Validity: result.Validity{Valid: true},
	}, nil
}

// long makes steps so long that chance moves the p99 of a queue little.
func long(slo result.SLO) Config {
	cfg := Default()
	cfg.SLO, cfg.Step, cfg.LongStep = slo, 5*time.Minute, 5*time.Minute
	return cfg
}

func p99(ms float64) result.SLO {
	return result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: ms}}, Errors: 0.001}
}

func TestSearch_FindsTheKnownRate(t *testing.T) {
	t.Parallel()
	law := simserver.Law{PerS: 1000}
	for _, limit := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		known := law.RateFor(limit, 0.99)
		for _, guess := range []float64{300, 1700} {
			q := &queue{Law: law, seed: uint64(guess)}
			steps, err := search(t.Context(), long(p99(float64(limit.Milliseconds()))), guess, q.open)
			require.NoError(t, err)
			highest := HighestRate(steps)
			require.NotNil(t, highest.Rate)
			require.InEpsilon(t, known, *highest.Rate, 0.05, "guess %v, p99 %v", guess, limit)
			require.LessOrEqual(t, *highest.Low, *highest.Rate)
			require.GreaterOrEqual(t, *highest.High, *highest.Rate)
			require.Len(t, steps, q.steps)
			require.Less(t, len(steps), 50)
		}
	}
}

// A stall of 50 ms every second is 5% of the time: no rate keeps a p99 below it,
// while most requests never see it.
func TestSearch_StallViolatesTheServiceLevel(t *testing.T) {
	t.Parallel()
	q := &queue{Law: simserver.Law{PerS: 1000, StallEvery: time.Second, StallFor: 50 * time.Millisecond}}
	steps, err := search(t.Context(), long(p99(30)), 1000, q.open)
	require.NoError(t, err)
	require.Equal(t, Estimate{High: steps[0].Load.OfferedPerS}, HighestRate(steps[:1]))
	highest := HighestRate(steps)
	require.Nil(t, highest.Rate)
	require.Nil(t, highest.Low)
	require.NotNil(t, highest.High)

	median := result.SLO{Latencies: []result.LatencyGoal{{Percentile: 50, MS: 5}}, Errors: 0.001}
	steps, err = search(t.Context(), long(median), 1000, q.open)
	require.NoError(t, err)
	require.Greater(t, *HighestRate(steps).Rate, 500.0)
}

// One in five measurements violates it because of something that has nothing to do with the
// rate, and the percentiles scatter.
func TestSearch_ComesBackFromBadMoments(t *testing.T) {
	t.Parallel()
	const known, trials = 4000.0, 200
	within, inside, made := 0, 0, 0
	for seed := range uint64(trials) {
		noise := rand.New(rand.NewPCG(seed, 1))
		cfg := Default()
		steps, err := search(t.Context(), cfg, 5000, func(_ context.Context, rate float64, length time.Duration) (result.Step, error) {
			require.GreaterOrEqual(t, length, cfg.Step)
			ms := 20 * math.Pow(rate/known, 4) * (1 + 0.1*noise.NormFloat64())
			if noise.Float64() < 0.2 {
				ms = 100
			}
			return step(rate, ms), nil
		})
		require.NoError(t, err)
		made += len(steps)
		highest := HighestRate(steps)
		require.NotNil(t, highest.Rate)
		if math.Abs(*highest.Rate/known-1) <= 0.1 {
			within++
		}
		if *highest.Low <= known && known <= *highest.High {
			inside++
		}
	}
	t.Logf("%d of %d within 10%%, %d in the interval, %.1f measurements each", within, trials, inside, float64(made)/trials)
	require.GreaterOrEqual(t, within, trials*9/10)
	require.GreaterOrEqual(t, inside, trials*8/10)
	require.Less(t, made, 30*trials)
}

// On a machine whose speed changes from one measurement to the next, the measurements
// contradict each other, and the interval has to say so.
func TestSearch_UnsteadyMachineWidensTheInterval(t *testing.T) {
	t.Parallel()
	const known, trials, inTheBudget = 4000.0, 200, 35
	widths := make(map[float64]float64)
	for _, unsteady := range []float64{0.005, 0.08} {
		inside := 0
		for seed := range uint64(trials) {
			noise := rand.New(rand.NewPCG(seed, 2))
			steps, err := search(t.Context(), Default(), 5000, func(_ context.Context, rate float64, _ time.Duration) (result.Step, error) {
				highest := known * math.Exp(unsteady*noise.NormFloat64())
				return step(rate, 20*math.Pow(rate/highest, 4)), nil
			})
			require.NoError(t, err)
			highest := HighestRate(steps[:min(len(steps), inTheBudget)])
			require.NotNil(t, highest.Rate)
			if *highest.Low <= known && known <= *highest.High {
				inside++
			}
			widths[unsteady] += (*highest.High / *highest.Low - 1) / trials
		}
		t.Logf("±%.1f%%: %d of %d in the interval, which is %.1f%% wide", 100*unsteady, inside, trials, 100*widths[unsteady])
		require.GreaterOrEqual(t, inside, trials*9/10)
	}
	require.Greater(t, widths[0.08], widths[0.005])
}

func TestSearch_EndsWithItsTime(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.Budget = 0
	steps, err := search(t.Context(), cfg, 5000, func(_ context.Context, rate float64, _ time.Duration) (result.Step, error) {
		return step(rate, rate/100), nil
	})
	require.NoError(t, err)
	require.Len(t, steps, 4, "what it takes to see both sides, and not by chance")
	highest := HighestRate(steps)
	require.Greater(t, *highest.Rate, 1200.0)
	require.Less(t, *highest.High, 3500.0)
}

func TestSearch_ErrorKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	broken := errors.New("server gone")
	n := 0
	steps, err := search(t.Context(), Default(), 5000, func(_ context.Context, rate float64, _ time.Duration) (result.Step, error) {
		if n++; n == 4 {
			return result.Step{}, broken
		}
		return step(rate, 1), nil
	})
	require.ErrorIs(t, err, broken)
	require.Len(t, steps, 3)
}

func TestSearch_TooFewRequestsToTell(t *testing.T) {
	t.Parallel()
	_, err := search(t.Context(), Default(), 10, func(_ context.Context, rate float64, length time.Duration) (result.Step, error) {
		require.GreaterOrEqual(t, rate*length.Seconds(), 999.0, "enough for a p99")
		m := step(rate, 1)
		m.Load.Requests, m.LatencyMS.P99 = 700, nil // the others were errors
		return m, nil
	})
	require.ErrorContains(t, err, "/s the service level cannot be judged: 700 requests are too few for p99")
}

func TestSearch_LateGeneratorIsTriedAgain(t *testing.T) {
	t.Parallel()
	late := result.Validity{Warnings: []string{"late load generator"}}
	n := 0
	steps, err := search(t.Context(), Default(), 1000, func(_ context.Context, rate float64, _ time.Duration) (result.Step, error) {
		m := step(rate, 1)
		if n++; n == 2 || rate > 600 {
			m.Validity = late
		}
		return m, nil
	})
	require.NoError(t, err)
	require.Nil(t, steps[1].MeetsSLO)
	require.Equal(t, "late load generator", steps[1].Why)
	require.True(t, *steps[2].MeetsSLO, "once was chance")
	highest := HighestRate(steps)
	require.InEpsilon(t, 600, *highest.Rate, 0.1, "a rate at which it is always late counts as a violation")
}

// step is a measurement with this p99.
func step(rate, ms float64) result.Step {
	return result.Step{
		Measurement: result.Measurement{
			Load:      result.Load{Mode: result.Open, OfferedPerS: &rate, AchievedPerS: rate, Requests: 100_000},
			LatencyMS: result.Latency{P99: &ms},
		},
		Validity: result.Validity{Valid: true},
	}
}

func TestJudge_SaysWhatViolatedTheServiceLevel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*result.Step)
		why   string
	}{
		"met":      {func(*result.Step) {}, ""},
		"at limit": {func(m *result.Step) { *m.LatencyMS.P99 = 20 }, ""},
		"slow":     {func(m *result.Step) { *m.LatencyMS.P99 = 20.4 }, "p99 is 20.4 ms"},
		"errors":   {func(m *result.Step) { m.Load.Errors = 300 }, "errors: 0.3% of the requests"},
		"overload": {func(m *result.Step) { m.Load.AchievedPerS = 980 }, "overloaded: 980/s achieved of 1,000/s"},
		"generator": {func(m *result.Step) {
			m.Validity = result.Validity{Warnings: []string{"late load generator"}}
		}, "late load generator"},
	} {
		m := step(1000, 19)
		c.spoil(&m)
		judge(&m, p99(20))
		if !m.Validity.Valid {
			require.Nil(t, m.MeetsSLO, name)
		} else {
			require.Equal(t, c.why == "", *m.MeetsSLO, name)
		}
		require.Equal(t, c.why, m.Why, name)
	}
}

func TestParseSLO(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]result.SLO{
		"p99=20ms":                        p99(20),
		"p99=20ms, errors=0.1%":           p99(20),
		"errors=0,p50=1ms,p99.9=1.5s":     {Latencies: []result.LatencyGoal{{Percentile: 50, MS: 1}, {Percentile: 99.9, MS: 1500}}},
		"p999=500us,errors=0.02":          {Latencies: []result.LatencyGoal{{Percentile: 99.9, MS: 0.5}}, Errors: 0.02},
		"p99.99=20ms,errors=1%,p90=100µs": {Latencies: []result.LatencyGoal{{Percentile: 99.99, MS: 20}, {Percentile: 90, MS: 0.1}}, Errors: 0.01},
	} {
		got, err := result.ParseSLO(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":                     `slo: ""`,
		"errors=1%":            "bounds no latency",
		"p98=20ms":             `"p98=20ms", want one of p50`,
		"99=20ms":              `"99=20ms", want one of`,
		"p99=20":               `p99="20", want a time`,
		"p99=-1ms":             `p99="-1ms", want a time`,
		"p99=20ms,errors=200%": `errors="200%", want a share`,
		"p99=20ms,errors=":     `errors="", want a share`,
		"p99=20ms,errors=NaN":  "want a share",
		"p99=20ms,rate=100/s":  `"rate=100/s", want one of`,
	} {
		_, err := result.ParseSLO(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestHighestRate(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		met, violated     []float64
		from, to          float64 // where the rate has to be
		unknown           bool    // the rate
		noLow, noHigh     bool
		narrowest, widest float64 // high/low
	}{
		"clear":          {met: []float64{100, 200, 300}, violated: []float64{340, 400}, from: 300, to: 340, narrowest: 1.1, widest: 3},
		"often":          {met: []float64{100, 300, 300, 300, 300}, violated: []float64{330, 330, 330, 400}, from: 300, to: 330, narrowest: 1.05, widest: 1.3},
		"one bad moment": {met: []float64{100, 300, 300, 310}, violated: []float64{200, 340, 340, 400}, from: 300, to: 345, narrowest: 1.05, widest: 3},
		"never violated": {met: []float64{100, 200}, from: 200, to: 200, noHigh: true},
		"never met":      {violated: []float64{100, 200}, unknown: true, noLow: true},
		"not judged":     {unknown: true, noLow: true, noHigh: true},
	} {
		var steps []result.Step
		add := func(rates []float64, met bool) {
			for _, rate := range rates {
				m := step(rate, 1)
				m.MeetsSLO = &met
				steps = append(steps, m)
			}
		}
		add(c.violated, false)
		add(c.met, true)
		steps = append(steps, step(1000, 1)) // not judged
		highest := HighestRate(steps)
		require.Equal(t, c.unknown, highest.Rate == nil, name)
		require.Equal(t, c.noLow, highest.Low == nil, name)
		require.Equal(t, c.noHigh, highest.High == nil, name)
		if !c.unknown {
			require.GreaterOrEqual(t, *highest.Rate, c.from, name)
			require.LessOrEqual(t, *highest.Rate, c.to, name)
		}
		if c.widest > 0 {
			require.Greater(t, *highest.High / *highest.Low, c.narrowest, name)
			require.Less(t, *highest.High / *highest.Low, c.widest, name)
		}
	}
	require.Equal(t, Estimate{High: value(100)}, HighestRate([]result.Step{func() result.Step {
		m := step(100, 50)
		judge(&m, p99(20))
		return m
	}()}))
}

func TestFindLimit_AveragesTheStepsNextToTheRate(t *testing.T) {
	t.Parallel()
	value := func(x float64) *float64 { return &x }
	var steps []result.Step
	for rate, busy := range map[float64]float64{100: 0.2, 196: 0.9, 204: 1, 400: 0.3} {
		m := step(rate, 1)
		m.Resources.HostBusy = &busy
		steps = append(steps, m)
	}
	found := FindLimit(steps, value(200), limit.Machine{Cores: 4, Shared: true})
	require.Equal(t, "CPU of the machine", found.Resource)
	require.InDelta(t, 0.95, *found.Share, 1e-9)
	require.Equal(t, "nothing was measured near the highest rate", FindLimit(nil, value(200), limit.Machine{}).Evidence)
}
