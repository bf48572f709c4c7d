package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
