package load

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/simserver"
	"sagabench/internal/race"
	"sagabench/store"
)

// simulate has a queue serve what is due, from a sender with MaxInFlight places, and the
// recorder take the results in the order of the answers.
func simulate(cfg Config, law simserver.Law) (Result, result.Latency) {
	s := cfg.schedule()
	began := time.Unix(0, 0)
	m := newRecorder(cfg, began, s)
	queue := law.NewQueue(1)
	free := make([]time.Duration, cfg.MaxInFlight) // when each place is, since the start
	var results []*vegeta.Result
	for a := s.arrivals(); a.at() < s.planned; a.step() {
		// The queue answers in the order of the sends, so the places become free
		// in turn.
		place := int(a.next) % cfg.MaxInFlight
		sent := max(a.at()+cfg.Warmup, free[place])
		free[place] = queue.Arrive(sent)
		results = append(results, &vegeta.Result{Seq: a.next, Timestamp: began.Add(sent - cfg.Warmup), Latency: free[place] - sent})
	}
	end := began
	for _, r := range results {
		if !m.measuring && r.End().After(began) {
			m.begin()
		}
		for ; r.End().Sub(end) > time.Second; end = end.Add(time.Second) {
			_, _ = m.endInterval(end.Add(time.Second))
		}
		m.add(r, m.due(r), s.planned, store.StatusSucceeded, "")
	}
	_, _ = m.endInterval(end.Add(time.Second))
	m.finish(s.planned)
	return m.res, result.LatencyOf(m.res.Latency)
}

// Poisson arrivals at one server with exponential service times: the latencies
// are known. With half a million of them the p99 scatters by 0.9% from seed to
// seed, for they depend on one another; a real clock would take a quarter of an
// hour for as many.
func TestRun_LatenciesOfAnMM1QueueAreThoseOfTheory(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const planned = 1000 * time.Second
	law := simserver.Law{PerS: 1000}
	res, latency := simulate(Config{Arrival: ArrivalPoisson, Seed: 1, Rate: Constant(500), Duration: planned, MaxInFlight: 1 << 20}, law)
	for quantile, got := range map[float64]*float64{0.5: latency.P50, 0.9: latency.P90, 0.95: latency.P95, 0.99: latency.P99, 0.999: latency.P999} {
		within := 0.03
		if quantile > 0.99 {
			within = 0.1 // it scatters more
		}
		require.InEpsilon(t, 1000*law.Latency(500, quantile).Seconds(), *got, within, quantile)
	}
	require.InEpsilon(t, 1000.0/500, *latency.Mean, 0.03)
	require.InEpsilon(t, 500, res.AchievedPerS, 0.01)
	require.False(t, res.Load().Overloaded())
	require.Zero(t, res.Dropped)
}

// A server that stalls for 200 ms of every second: a fifth of the requests are
// due meanwhile and wait 0 to 200 ms, so that p90 is 100 ms and p99 190 ms. From
// the send, few have waited, since no more than 4 are sent to a server that does
// not answer.
func TestRun_AStallShowsInTheLatencyAndNotInTheServiceTime(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	res, latency := simulate(Config{Arrival: ArrivalConstant, Rate: Constant(2000), Duration: 100 * time.Second, MaxInFlight: 4},
		simserver.Law{PerS: 1e6, StallEvery: time.Second, StallFor: 200 * time.Millisecond})
	service := result.LatencyOf(res.Service)
	require.InEpsilon(t, 100, *latency.P90, 0.03)
	require.InEpsilon(t, 190, *latency.P99, 0.03)
	require.Less(t, *latency.P50, 1.0)
	require.Less(t, *service.P99, 1.0)
	require.InDelta(t, 200, *service.Max, 1)
}

// Half of what is due in the warm-up is not answered when it ends. The measured requests
// wait for it, and the rate is still that of the server.
func TestRun_TheBacklogOfTheWarmUpIsMeasured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate, achieved float64
		start, end     int64
		limits, median time.Duration
	}{
		"twice the capacity": {rate: 1000, achieved: 500, start: 1000, end: 6000, median: 7 * time.Second},
		"below it":           {rate: 250, achieved: 250, median: 3 * time.Millisecond},
	} {
		for _, arrival := range []Arrival{ArrivalConstant, ArrivalPoisson} {
			var limits []result.OverLimit
			for _, limit := range []time.Duration{c.median / 2, c.median, 3 * time.Second} {
				limits = append(limits, result.OverLimit{MS: 1000 * limit.Seconds(), Most: math.MaxInt64})
			}
			res, latency := simulate(Config{
				Arrival: arrival, Seed: 1, Rate: Constant(c.rate), Warmup: 2 * time.Second, Duration: 10 * time.Second,
				MaxInFlight: 1 << 20, Limits: limits,
			}, simserver.Law{PerS: 500})
			require.InEpsilon(t, 10*c.rate, res.Requests, 0.1, name)
			require.InDelta(t, c.start, res.UnansweredStart, 150, name)
			require.InDelta(t, c.end, res.UnansweredEnd, 500, name)
			require.InEpsilon(t, c.achieved, res.AchievedPerS, 0.1, name)
			require.InEpsilon(t, c.median.Seconds()*1000, *latency.P50, 0.5, name)

			require.Len(t, res.Seconds, 10)
			var due int64
			beyond := make([]int64, len(limits))
			for _, second := range res.Seconds {
				due += second.Due
				for i, limit := range limits {
					beyond[i] += second.Over(limit.MS)
				}
			}
			require.Equal(t, res.Requests, due)
			for i, limit := range limits {
				require.InDelta(t, over(res.Latency, time.Duration(limit.MS*float64(time.Millisecond))), beyond[i], 0.01*float64(due), "%s, over %v ms", name, limit.MS)
			}
		}
	}
}

func over(h *hdrhistogram.Histogram, limit time.Duration) (n int64) {
	for _, b := range h.Distribution() {
		if b.From > limit.Microseconds() {
			n += b.Count
		}
	}
	return n
}

// The same over connections, and what a tool that waits for the answer before it sends
// again makes of such a server: nothing is wrong.
func TestRun_AStallIsSeenByAnOpenLoopOnly(t *testing.T) {
	t.Parallel()
	for name, perS := range map[string]float64{"open": 1e5, "closed": 2000} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				law := simserver.Law{PerS: perS, StallEvery: time.Second / 2, StallFor: 100 * time.Millisecond}
				cfg := bubbled(t, law.Handler(1).ServeHTTP)
				cfg.InFlight, cfg.MaxInFlight, cfg.Duration = 2, 2, 1500*time.Millisecond
				if name == "open" {
					cfg.Rate = Constant(250)
				}
				res, err := Run(t.Context(), cfg)
				require.NoError(t, err)
				require.Zero(t, res.Errors)
				at := func(h *hdrhistogram.Histogram, percentile float64) float64 {
					return float64(h.ValueAtQuantile(percentile)) / 1000
				}
				require.Less(t, at(res.Service, 90), 5.0, "from the send")
				require.InDelta(t, 100, float64(res.Service.Max())/1000, 5)
				if cfg.open() {
					require.InDelta(t, 50, at(res.Latency, 90), 5)
					require.InDelta(t, 95, at(res.Latency, 99), 5)
				} else {
					require.Less(t, at(res.Latency, 99), 5.0)
				}
			})
		})
	}
}

// Each latency is the time from when the request was due to when the server answered it. So
// short a run is far from the theory's percentiles, so those are of the same requests.
func TestRun_LatenciesAreThoseThatTheServerSaw(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		queue := simserver.Law{PerS: 200}.Handler(2)
		var mu sync.Mutex
		answered := map[string]time.Time{}
		cfg := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			queue.ServeHTTP(w, r)
			mu.Lock()
			defer mu.Unlock()
			answered[r.Header.Get(seqHeader)] = time.Now()
		})
		cfg.Rate, cfg.Arrival, cfg.Seed, cfg.Duration = Constant(140), ArrivalPoisson, 2, 2*time.Second
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Zero(t, res.Errors)
		require.EqualValues(t, len(answered), res.Requests)

		var want []float64
		arrivals := cfg.schedule().arrivals()
		for i := range res.Requests {
			due := res.Began.Add(arrivals.due(uint64(i)))
			want = append(want, answered[strconv.FormatInt(i, 10)].Sub(due).Seconds())
		}
		slices.Sort(want)
		for _, percentile := range []float64{50, 75, 90, 95} {
			expected := want[int(percentile/100*float64(len(want)))]
			got := float64(res.Latency.ValueAtQuantile(percentile)) / 1e6
			require.InDelta(t, expected, got, 0.03*expected+0.0001, "p%v", percentile)
		}
	})
}
