package capacity

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
)

func TestConfig_WithStep_ScalesTheSearch(t *testing.T) {
	t.Parallel()
	d := Default()
	require.Equal(t, d, d.WithStep(d.Step, time.Second))

	long := d.WithStep(10*d.Step, time.Minute)
	require.Equal(t, 10*d.Step, long.Step)
	require.Equal(t, 10*d.Step, long.LongStep)
	require.Equal(t, 10*d.Budget, long.Budget)
	require.Equal(t, []time.Duration{d.ScalingStep, d.ScalingWarmup}, []time.Duration{long.ScalingStep, long.ScalingWarmup})

	short := d.WithStep(d.Step/40, time.Millisecond)
	require.Equal(t, d.Budget/40, short.Budget)
	require.Equal(t, d.LongStep, short.LongStep)
	require.Equal(t, []time.Duration{d.Step / 40, time.Millisecond}, []time.Duration{short.ScalingStep, short.ScalingWarmup})
}

// machine is a Measurer that carries up to 1,000 sagas/s. Its p99 is 20 ms at that rate.
type machine struct {
	measured, failAt int // measurements until now, and the one that fails; 0: none
}

func (m *machine) Measure(_ context.Context, shape load.Config) (result.Step, error) {
	if m.measured++; m.measured == m.failAt {
		return result.Step{}, errors.New("server gone")
	}
	s := step(shape.Rate.Mean(), 10+shape.Rate.Mean()/100)
	if !shape.Rate.IsOpen() {
		s = step(min(1000, 100*float64(shape.InFlight)), 5)
		s.Load.Mode, s.Load.InFlight, s.Load.OfferedPerS = result.Closed, shape.InFlight, nil
	}
	cores, perSaga := s.Load.AchievedPerS*200e-6, 200.0
	s.Resources.AppCores, s.CostPerSaga.AppCPUUS = &cores, &perSaga
	return s, nil
}

func (m *machine) Close(_ context.Context, ended error) (result.Summary, error) {
	if ended != nil && m.measured <= 1 {
		return result.Summary{}, ended
	}
	return result.Summary{Envelope: result.Envelope{
		Run: result.Run{ID: "run"}, Environment: result.Environment{Cores: 1}, Validity: result.Validity{Valid: ended == nil},
	}}, nil
}

func quietly() Config {
	cfg := Default()
	cfg.Status = func(string) {}
	return cfg
}

func TestRun_MakesAllParts(t *testing.T) {
	t.Parallel()
	cfg := quietly()
	var said []string
	cfg.Status = func(text string) { said = append(said, text) }
	s, err := Run(t.Context(), cfg, &machine{})
	require.NoError(t, err)
	require.True(t, s.Validity.Valid, s.Validity.Warnings)
	require.Equal(t, result.KindCapacity, s.Kind)
	c := s.Capacity
	require.InEpsilon(t, 1000, *c.RatePerS, 0.05)
	require.LessOrEqual(t, *c.LowPerS, *c.RatePerS)
	require.Len(t, c.Scaling, 10)
	require.Equal(t, 16, c.Recheck.Load.InFlight, "the first with the highest throughput")
	require.InDelta(t, validationShare**c.RatePerS, *c.Validation.Load.OfferedPerS, 1)
	require.Len(t, c.Predicted, 1, "only the app's CPU was measured")
	require.Equal(t, "app CPU", c.Predicted[0].What)
	require.InEpsilon(t, c.Predicted[0].Measured, c.Predicted[0].Expected, 0.01)

	require.Equal(t, "closed loops with 1 to 512 in flight", said[0])
	require.Equal(t, "1 in flight: 100/s", said[1])
	require.Equal(t, "100/s for 30.0 s: met, p99 11.0 ms", said[11])
	require.Contains(t, said, "the best point of the scaling curve once more")
}

// A search that ends early keeps what was measured, and no list of it is null.
func TestRun_EndsEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ failAt, scaling, steps int }{
		"scaling": {3, 2, 0},
		"search":  {14, 10, 3},
	} {
		s, err := Run(t.Context(), quietly(), &machine{failAt: c.failAt})
		require.NoError(t, err, name)
		require.False(t, s.Validity.Valid, name)
		require.Len(t, s.Capacity.Scaling, c.scaling, name)
		require.Len(t, s.Capacity.Steps, c.steps, name)
		require.NotNil(t, s.Capacity.Steps, name)
		require.NotNil(t, s.Capacity.Predicted, name)
		require.Nil(t, s.Capacity.Validation, name)
		require.Nil(t, s.Capacity.Recheck, name)
	}
	_, err := Run(t.Context(), quietly(), &machine{failAt: 1})
	require.EqualError(t, err, "server gone")
}
