package simserver_test

import (
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/simserver"
	"sagabench/internal/race"
)

func TestLaw_RateForIsTheInverseOfLatency(t *testing.T) {
	t.Parallel()
	law := simserver.Law{PerS: 1000}
	for _, quantile := range []float64{0.5, 0.99} {
		require.InDelta(t, 800, law.RateFor(law.Latency(800, quantile), quantile), 0.01)
	}
}

func TestLaw_SimulationFollowsTheTheory(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	law := simserver.Law{PerS: 1000}
	served := law.Simulate(500, 1000*time.Second, 1)
	require.InEpsilon(t, 500*1000, len(served), 0.01)
	require.Equal(t, served, law.Simulate(500, 1000*time.Second, 1))
	latencies := make([]time.Duration, len(served))
	for i, s := range served {
		latencies[i] = s.Latency()
	}
	slices.Sort(latencies)
	for _, quantile := range []float64{0.5, 0.9, 0.99} {
		got := latencies[int(quantile*float64(len(latencies)))]
		require.InEpsilon(t, law.Latency(500, quantile).Seconds(), got.Seconds(), 0.03, quantile)
	}
}

func TestLaw_BeyondItsCapacityTheQueueGrows(t *testing.T) {
	t.Parallel()
	served := simserver.Law{PerS: 1000}.Simulate(1500, 100*time.Second, 1)
	last := served[len(served)-1]
	require.InEpsilon(t, 1000, float64(len(served))/last.Answered.Seconds(), 0.02)
	require.InEpsilon(t, 50, last.Latency().Seconds(), 0.05)
}

func TestQueue_AStallDelaysThoseWhoComeAndThoseWhoAreThere(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	law := simserver.Law{PerS: 1e6, StallEvery: time.Second, StallFor: 200 * ms} // a service takes 1 µs
	q := law.NewQueue(1)
	for _, c := range []struct{ arrives, answered time.Duration }{
		{0, 200 * ms},
		{150 * ms, 200 * ms},
		{500 * ms, 500 * ms},
		{1100 * ms, 1200 * ms},
		{1900 * ms, 1900 * ms},
		{2199 * ms, 2200 * ms},
	} {
		require.InDelta(t, c.answered.Seconds(), q.Arrive(c.arrives).Seconds(), 0.0001)
	}
	// One that takes 3 s of work meets several.
	slow := simserver.Law{PerS: 1e-3, StallEvery: time.Second, StallFor: 200 * ms}
	plain := simserver.Law{PerS: 1e-3}.NewQueue(1).Arrive(0)
	require.InEpsilon(t, plain.Seconds()/0.8, slow.NewQueue(1).Arrive(0).Seconds(), 0.01)
}

func TestHandler_AnswersWhenTheLawSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		law := simserver.Law{PerS: 20}
		handler := law.Handler(5)
		want := law.NewQueue(5).Arrive(0)
		began := time.Now()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
		require.Equal(t, want, time.Since(began))
		require.JSONEq(t, `{"dtm_result":"SUCCESS","gid":"simulated-1"}`, w.Body.String())
	})
}
