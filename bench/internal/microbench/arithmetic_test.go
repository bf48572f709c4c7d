package microbench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEstimate_MedianAndInterval(t *testing.T) {
	t.Parallel()
	require.Nil(t, estimate(nil, usual))
	require.Equal(t, &Estimate{Median: 3, Low: 1, High: 5, N: 5}, estimate([]float64{5, 1, 4, 2, 3}, usual))
	require.Equal(t, &Estimate{Median: 2.5, Low: 1, High: 4, N: 4}, estimate([]float64{4, 3, 2, 1}, usual))
	// Of nine samples, the lowest and the highest may go with 95%, and none with 99%.
	nine := []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}
	require.Equal(t, &Estimate{Median: 5, Low: 2, High: 8, N: 9}, estimate(nine, usual))
	require.Equal(t, &Estimate{Median: 5, Low: 1, High: 9, N: 9}, estimate(nine, strict))
	require.InDelta(t, 1.2, estimate(nine, usual).Spread(), 1e-9)
}

func TestCauses_FixedInputs(t *testing.T) {
	t.Parallel()
	got := ablation{
		alone: 100, whole: 80, ping: 1, empty: 9, noCommands: 33,
		without: map[string]float64{"SETNX": 56, "ZADD": 64, "TIME": 79},
	}.causes()
	require.Equal(t, costs{
		{CauseNetwork}: 20, {CauseDispatch}: 1, {CauseArguments}: 8, {CauseLua}: 24, {CauseCommand}: 41, {CauseRest}: 6,
		{CauseCommand, "SETNX"}: 24, {CauseCommand, "ZADD"}: 16, {CauseCommand, "TIME"}: 1,
	}, got)
}

func TestSagaPrice_AddsUpTheCallsOfASaga(t *testing.T) {
	t.Parallel()
	b := &bench{}
	s := base.batch(4)
	one := func(x float64) Estimate { return Estimate{x, x, x, 1} }
	for name, perSaga := range map[string]SagaPrice{
		"save":     {CPUUS: one(4), BytesIn: 100, BytesOut: 4},
		"update":   {CPUUS: one(2), BytesIn: 50, BytesOut: 4},
		"complete": {CPUUS: one(3), BytesIn: 60, BytesOut: 4},
	} {
		for _, s.Steps = range []int{1, 2, 50} {
			b.add(&callCase{Key: Key{Case: name, Shape: s}})
			b.byKey[Key{Case: name, Shape: s}].samples[1] = sample{
				calls: 2, sagas: 8, cpu: cpu{all: 1000, main: 8 * perSaga.CPUUS.Median}, in: 8 * perSaga.BytesIn, out: 8 * perSaga.BytesOut,
			}
		}
	}
	for steps, want := range map[int]SagaPrice{
		1:  {CPUUS: one(7), BytesIn: 160, BytesOut: 8, Calls: 0.5, PerS: one(1e6 / 7.)},
		2:  {CPUUS: one(9), BytesIn: 210, BytesOut: 12, Calls: 0.75, PerS: one(1e6 / 9.)},
		50: {CPUUS: one(105), BytesIn: 2610, BytesOut: 204, Calls: 12.75, PerS: one(1e6 / 105.)},
	} {
		s.Steps, want.Pipeline = steps, s.Pipeline
		price, ok := b.sagaPrice(sagaCalls(s))
		require.True(t, ok)
		require.Equal(t, want, price)
	}
	s.Steps = 2
	b.byKey[Key{Case: "save", Shape: s}].samples[2] = sample{calls: 2, cpu: cpu{main: 1e9}}
	price, ok := b.sagaPrice(sagaCalls(s))
	require.True(t, ok)
	require.Equal(t, one(9), price.CPUUS, "a round counts if it measured all calls")

	s.Steps = 3
	_, ok = b.sagaPrice(sagaCalls(s))
	require.False(t, ok, "not measured")
}

func TestVerdict_NeedsTheWholeInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ratio Estimate
		want  string
	}{
		{Estimate{Median: 0.9, Low: 0.8, High: 0.99, N: 8}, Cheaper},
		{Estimate{Median: 1.1, Low: 1.01, High: 1.2, N: 8}, Costlier},
		{Estimate{Median: 1.1, Low: 0.99, High: 1.2, N: 8}, NoDifference},
		{Estimate{Median: 0.5, Low: 0.4, High: 0.6, N: 7}, NoDifference},
	} {
		require.Equal(t, tt.want, verdict(tt.ratio), tt.ratio)
	}
}

// Whatever is measured second is twice as fast here; the two are alike.
func TestPairRounds_CancelTheOrder(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float64{1, 1}, pairRounds(map[int]float64{1: 0.5, 2: 2, 3: 0.5, 4: 2, 5: 0.5, 8: 2}))
}

func TestCalls_SpreadSagasOverIndexes(t *testing.T) {
	t.Parallel()
	k := keyspace{prefix: "p", sizes: []int{1000}}
	s := base.batch(10)
	for due, indexes := range map[int][]string{0: {"p:{0}", "p:{1}"}, 1000: {"p:{a0}", "p:{a0}"}} {
		s.DueIndex = due
		calls := k.calls(2, 5, s)
		require.Len(t, calls, 2)
		seen := map[string]bool{}
		for i, call := range calls {
			require.Equal(t, indexes[i], call.index)
			require.Len(t, call.sagas, 10)
			for _, saga := range call.sagas {
				require.False(t, seen[saga], saga)
				seen[saga] = true
			}
		}
		require.True(t, seen[indexes[0]+":MICROBENCH0000000000000005"])
		require.Len(t, seen, 20)
	}
}

func TestFitDuration_ShortensWindows(t *testing.T) {
	t.Parallel()
	long := DefaultConfig().fitDuration()
	require.Equal(t, 12*time.Millisecond, long.Window)
	require.Equal(t, []int{10_000, 1_000_000}, long.DueIndexes)
	cfg := DefaultConfig()
	cfg.Duration = time.Second
	cfg = cfg.fitDuration()
	require.Equal(t, time.Millisecond, cfg.Window)
	require.Equal(t, []int{10_000}, cfg.DueIndexes)
	require.Equal(t, []int{10_000, 1_000_000}, DefaultConfig().DueIndexes)
}

func TestLoad_HasAPipelineOfCallsPerRoundTrip(t *testing.T) {
	t.Parallel()
	c := pingCase(3)
	l := c.load(make([]callKeys, 5))
	require.Len(t, l.Trips, 2)
	for i, calls := range []int{3, 2} {
		require.Equal(t, calls, l.Trips[i].Calls)
		require.Equal(t, calls, strings.Count(string(l.Trips[i].Bytes), "PING"))
	}
}
