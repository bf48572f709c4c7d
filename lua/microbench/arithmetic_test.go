package microbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFigure_MedianAndInterval(t *testing.T) {
	t.Parallel()
	require.Nil(t, figureOf(nil))
	require.Equal(t, &Figure{Median: 3, Low: 1, High: 5, N: 5}, figureOf([]float64{5, 1, 4, 2, 3}))
	require.Equal(t, &Figure{Median: 2.5, Low: 1, High: 4, N: 4}, figureOf([]float64{4, 3, 2, 1}))
	// Of nine samples, the least and the most may go with 95%, and none with 99%.
	nine := []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}
	require.Equal(t, &Figure{Median: 5, Low: 2, High: 8, N: 9}, figureOf(nine))
	require.Equal(t, &Figure{Median: 5, Low: 1, High: 9, N: 9}, figureAt(nine, strict))
	require.InDelta(t, 1.2, figureOf(nine).Spread(), 1e-9)
}

// The numbers are those of the sign test's tables.
func TestOuter_IsTheSignTest(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 12: 2, 15: 3, 20: 5, 25: 7} {
		require.Equal(t, want, outer(n, usual), n)
	}
	for n, want := range map[int]int{8: 0, 11: 0, 12: 1, 20: 3, 25: 5} {
		require.Equal(t, want, outer(n, strict), n)
	}
}

func TestSplit_FixedInputs(t *testing.T) {
	t.Parallel()
	total, parts := split(ablation{
		alone: 100, whole: 80, ping: 1, empty: 9, noCalls: 33,
		without: map[string]float64{"SETNX": 56, "ZADD": 64, "TIME": 79},
	}, 10)
	require.InDelta(t, 10, total, 1e-9)
	want := []Part{
		{Cause: CauseNetwork, US: 2},
		{Cause: CauseDispatch, US: 0.1},
		{Cause: CauseArguments, US: 0.8},
		{Cause: CauseLua, US: 2.4},
		{Cause: CauseCommand, Command: "SETNX", US: 2.4},
		{Cause: CauseCommand, Command: "ZADD", US: 1.6},
		{Cause: CauseCommand, Command: "TIME", US: 0.1},
		{Cause: CauseRest, US: 0.6},
	}
	require.Len(t, parts, len(want))
	sum := 0.0
	for i, p := range parts {
		require.InDelta(t, want[i].US, p.US, 1e-9, i)
		require.Equal(t, want[i].Cause+want[i].Command, p.Cause+p.Command)
		sum += p.US
	}
	require.InDelta(t, total, sum, 1e-9, "the parts are the whole")
}

func TestSagaOf_AddsUpItsCalls(t *testing.T) {
	t.Parallel()
	save, update, complete := cost{4, 100, 4}, cost{2, 50, 4}, cost{3, 60, 4}
	require.Equal(t, cost{7, 160, 8}, sagaOf(1, save, update, complete))
	require.Equal(t, cost{9, 210, 12}, sagaOf(2, save, update, complete))
	require.Equal(t, cost{105, 2610, 204}, sagaOf(50, save, update, complete))
	require.InDelta(t, 100_000, perCore(10), 1e-9)
	require.Zero(t, perCore(0))
}

// A run of 1,000 sagas of two steps: 100 calls of save, 80 of update, 100 of
// complete.
func TestFlow_FixedInputs(t *testing.T) {
	t.Parallel()
	inside := map[string]Inside{
		"evalsha": {Calls: 280}, "time": {Calls: 200}, "setnx": {Calls: 1000}, "getrange": {Calls: 2000},
	}
	shapes, err := flow(inside, Run{Steps: 2, SagasPerS: 10_000, CPUUS: 12, Calls: 0.3, RoundTrips: 0.1})
	require.NoError(t, err)
	for i, want := range []Shape{{Sagas: 10}, {Sagas: 12.5}, {Sagas: 10}} {
		want.Steps, want.Conns, want.Every = 2, 1, time.Millisecond
		require.InDelta(t, 3, shapes[i].Pipeline, 1e-9)
		want.Pipeline = shapes[i].Pipeline
		require.Equal(t, want, shapes[i])
	}
	_, err = flow(map[string]Inside{"evalsha": {Calls: 3}}, Run{Steps: 2, SagasPerS: 1, RoundTrips: 1})
	require.ErrorIs(t, err, errNoRun)
}

func TestAgreement_FixedInputs(t *testing.T) {
	t.Parallel()
	a := agreement(Run{SagasPerS: 20_000, CPUUS: 12}, 11.4, 8)
	require.InDelta(t, 0.95, a.Ratio, 1e-9)
	require.InDelta(t, 125_000, a.CeilingPerS, 1e-9)
	require.InDelta(t, 0.16, a.Share, 1e-9)
}

func TestVerdict_NeedsTheWholeInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ratio Figure
		want  string
	}{
		{Figure{Median: 0.9, Low: 0.8, High: 0.99, N: 8}, Cheaper},
		{Figure{Median: 1.1, Low: 1.01, High: 1.2, N: 8}, Dearer},
		{Figure{Median: 1.1, Low: 0.99, High: 1.2, N: 8}, NoDifference},
		{Figure{Median: 0.5, Low: 0.4, High: 0.6, N: 7}, NoDifference},
	} {
		require.Equal(t, tt.want, verdict(tt.ratio), tt.ratio)
	}
}

// Whatever is measured second is twice as fast here; the two are alike.
func TestTurns_CancelTheOrder(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float64{1, 1}, turns(map[int]float64{1: 0.5, 2: 2, 3: 0.5, 4: 2, 5: 0.5, 8: 2}))
}

func TestShare_AveragesToTheSize(t *testing.T) {
	t.Parallel()
	for _, size := range []float64{1, 1.5, 2.25, 12.4, 64} {
		const n = 1000
		sum := 0
		for i := range n {
			part := share(i, size)
			require.InDelta(t, size, part, 1)
			sum += part
		}
		require.InDelta(t, n*size, sum, 1)
		ends := cut(sum, size)
		require.Len(t, ends, n+1)
		require.Equal(t, sum, ends[n])
	}
	require.Equal(t, []int{0, 3, 5}, cut(5, 3))
	require.Equal(t, 1, share(0, 0.2), "no call without a saga")
}

func TestPlan_SpreadsSagasOverIndexes(t *testing.T) {
	t.Parallel()
	k := keys{"p", []int{1000}}
	s := base.of(10)
	for due, indexes := range map[int][]string{0: {"p:{0}", "p:{1}"}, 1000: {"p:{a0}", "p:{a0}"}} {
		s.DueIndex = due
		plan := k.plan(2, 5, s)
		require.Len(t, plan, 2)
		seen := map[string]bool{}
		for i, call := range plan {
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

func TestReadAllocations_OfJemalloc(t *testing.T) {
	t.Parallel()
	const report = `
  opt.narenas: 8
                            allocated         nmalloc   (#/sec)         ndalloc   (#/sec)       nrequests   (#/sec)
small:                         759408          878042     11403          857350     11134         5869534     76227
total:                        2860656          878371     11407          857606     11137         5870399     76238
`
	require.Equal(t, &allocations{live: 878371 - 857606, made: 5870399}, readAllocations(report))
	const older = `
                            allocated      nmalloc      ndalloc    nrequests
total:                           1000           30           10           50
`
	require.Equal(t, &allocations{live: 20, made: 50}, readAllocations(older))
	require.Nil(t, readAllocations("Stats not supported for the current allocator"))
}
