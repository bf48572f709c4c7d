package capacity

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/simserver"
	"sagabench/internal/race"
)

func p99(ms float64) result.SLO {
	return result.SLO{Latencies: []result.LatencyGoal{{Percentile: 99, MS: ms}}, Errors: 0.001}
}

// seconds of a measurement: so many requests each, of which some took over 20 ms.
func seconds(n int, due, over int64) (all []result.Second) {
	for range n {
		s := result.Second{Due: due}
		for i := range due {
			us := uint32(10_000)
			if i < over {
				us = 30_000
			}
			s.LatencyUS = append(s.LatencyUS, us)
		}
		all = append(all, s)
	}
	return all
}

// step is a valid measurement.
func step(rate float64, all []result.Second) result.Step {
	due := int64(0)
	for _, s := range all {
		due += s.Due
	}
	return result.Step{
		RatePerS: rate, DurationS: float64(len(all)), Seconds: all,
		Measurement: result.Measurement{Load: result.Load{Mode: result.Open, OfferedPerS: &rate, AchievedPerS: rate, Requests: due}},
		Validity:    result.Validity{Valid: true},
	}
}

func TestLevel_IsJudgedAsAWhole(t *testing.T) {
	t.Parallel()
	clean, bad := seconds(60, 1000, 0), seconds(60, 1000, 0)
	copy(bad, seconds(1, 1000, 900)) // one bad second is 1.5% of a minute
	broken := seconds(60, 1000, 20)  // 2% of each second
	failed := seconds(60, 1000, 0)   // nearly all of them in time
	failed[7].Errors, failed[7].Due = 70, 1070
	slow := seconds(60, 1000, 9) // 0.9%, and with those that were never sent 1.1%
	for i := range slow {
		slow[i].Dropped, slow[i].Due = 2, 1002
	}
	half := seconds(10, 500, 1) // and as many failed
	for i := range half {
		half[i].Errors, half[i].Due = 500, 1000
	}
	start, end := int64(10), int64(400)
	overload, backlog := step(1000, clean), step(1000, clean)
	overload.Hold, backlog.Hold = true, true
	overload.Load.AchievedPerS = 980
	backlog.Load.UnansweredStart, backlog.Load.UnansweredEnd = &start, &end
	for name, c := range map[string]struct {
		steps []result.Step
		slo   result.SLO
		why   string
	}{
		"clean":                 {[]result.Step{step(1000, clean)}, p99(20), ""},
		"at the limit":          {[]result.Step{step(1000, seconds(60, 1000, 10))}, p99(20), ""},
		"one bad second":        {[]result.Step{step(1000, bad)}, p99(20), "1.50% of the requests took longer than 20 ms or failed, in 1 of 60 seconds"},
		"one bad second in 120": {[]result.Step{step(1000, bad), step(1000, clean)}, p99(20), ""},
		"two bad seconds":       {[]result.Step{step(1000, bad), step(1000, bad)}, p99(20), "1.50% of the requests took longer than 20 ms or failed, in 2 of 120 seconds"},
		"all seconds":           {[]result.Step{step(1000, broken)}, p99(20), "2.00% of the requests took longer than 20 ms or failed, in 60 of 60 seconds"},
		"errors":                {[]result.Step{step(1000, failed)}, p99(20), "errors: 0.117% of the requests failed or were never sent"},
		"half fail, few slow":   {[]result.Step{step(1000, half)}, p99(20), "errors: 50.0% of the requests failed or were never sent"},
		"never sent":            {[]result.Step{step(1000, slow)}, result.SLO{Latencies: p99(20).Latencies, Errors: 0.01}, "1.10% of the requests took longer than 20 ms or failed, in 60 of 60 seconds"},
		"overload":              {[]result.Step{overload}, p99(20), "overloaded: 980/s achieved of 1,000/s"},
		"backlog":               {[]result.Step{backlog}, p99(20), "growing backlog: 10 requests waited for an answer at the beginning and 400 at the end"},
	} {
		met, why := level{rate: 1000, steps: c.steps}.judge(c.slo)
		require.Equal(t, c.why, why, name)
		require.Equal(t, c.why == "", met, name)
	}
}

func TestLevel_DescribesItsHold(t *testing.T) {
	t.Parallel()
	all := seconds(60, 1000, 0)
	copy(all, seconds(1, 1000, 500))
	all[30].Errors, all[30].Due = 1, 1001
	h := level{rate: 1000, steps: []result.Step{step(1000, all)}}.held(p99(20))
	require.Equal(t, []float64{1000, 60, 0.017}, []float64{h.RatePerS, h.DurationS, h.OverLimitShare})
	require.EqualValues(t, 1, h.Errors)
	require.InDelta(t, 10, *h.LatencyMS.P99, 0.02)
	require.Len(t, h.Interval, 1)
	require.InDelta(t, 10, h.Interval[0].LowMS, 0.1)
	require.InDelta(t, 30, h.Interval[0].HighMS, 0.2, "the bad second may come twice: then more than 1% are over the limit")
}

// system meets the level up to a rate. Its steps go through change, if there is one.
type system struct {
	upTo   float64
	change func(n int, m *result.Step)
	rates  []float64 // of the steps
	holds  []float64
	takes  time.Duration     // that a step takes, in a synctest bubble
	pace   func(n int) int64 // of the closed loop, per second
	paces  int
}

func (s *system) open(_ context.Context, rate float64, length time.Duration, hold bool, _ []result.OverLimit) (result.Step, error) {
	over := int64(0)
	if rate > s.upTo {
		over = int64(rate) / 2
	}
	time.Sleep(s.takes)
	m := step(rate, seconds(max(1, int(length.Seconds())), int64(rate), over))
	m.Hold = hold
	if s.change != nil {
		s.change(len(s.rates), &m)
	}
	s.rates = append(s.rates, rate)
	if hold {
		s.holds = append(s.holds, rate)
	}
	return m, nil
}

func (s *system) recheck(context.Context) (result.Step, error) {
	n := int64(1000)
	if s.pace != nil {
		n = s.pace(s.paces)
	}
	s.paces++
	return step(0, seconds(5, n, 0)), nil
}

func (s *system) search(t *testing.T) result.Search {
	t.Helper()
	found, err := (&searcher{cfg: Default(), best: 1000, open: s.open, recheck: s.recheck}).search(t.Context())
	require.NoError(t, err)
	return found
}

func TestSearch_HoldsALittleBelowTheHighestRate(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, upTo := range []float64{30, 150, 500, 700, 705, 950, 1100} {
		s := &system{upTo: upTo}
		found := s.search(t)
		require.NotNil(t, found.Held, upTo)
		require.LessOrEqual(t, found.Held.RatePerS, 0.96*upTo, upTo)
		require.GreaterOrEqual(t, found.Held.RatePerS, 0.92*upTo, upTo)
		require.Greater(t, found.Next.RatePerS, upTo)
		require.LessOrEqual(t, found.Next.RatePerS, 1.03*upTo)
		require.Contains(t, found.Next.Why, "% of the requests took longer than 20 ms or failed, in 60 of 60 seconds; 1 attempt, 60.0 s in all")
		require.Less(t, len(s.rates), 45, upTo)
		require.Less(t, len(s.holds), 8, upTo)
	}
	above := (&system{upTo: 1e6}).search(t)
	require.InEpsilon(t, 0.95*1.19, above.Held.RatePerS/1000, 0.02)
	require.Nil(t, above.Next, "nothing broke")
	none := (&system{}).search(t)
	require.Nil(t, none.Held)
	require.Empty(t, none.CannotTell)
	require.NotNil(t, none.Next)
}

func TestSearch_OneBadMomentDoesNotDecide(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for bad := range 15 {
		s := &system{upTo: 700, change: func(n int, m *result.Step) {
			if n == bad { // a bad second in 60, a quarter of a second in 4
				due := m.Seconds[0].Due
				copy(m.Seconds, seconds(1, due, due*int64(len(m.Seconds))*15/1000))
			}
		}}
		found := s.search(t)
		require.NotNil(t, found.Held, bad)
		require.InEpsilon(t, 0.94*700, found.Held.RatePerS, 0.03, bad)
	}
}

func TestSearch_CannotTell(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	wandering := (&system{upTo: 700, pace: func(n int) int64 { return 1000 - 400*int64(n%2) }}).search(t)
	require.Nil(t, wandering.Held)
	require.Equal(t, "the same closed loop carried 600/s to 1,000/s during the search: the speed of the machine or the store changes too much for one search: repeat it to see the spread", wandering.CannotTell)

	several := &system{upTo: 700, pace: func(n int) int64 { return 1000 - 400*int64(n%2) }}
	cfg := Default()
	cfg.Repeat = 3
	found, err := (&searcher{cfg: cfg, best: 1000, open: several.open, recheck: several.recheck}).search(t.Context())
	require.NoError(t, err)
	require.NotNil(t, found.Held, "the spread of several searches shows it")

	late := (&system{upTo: 700, change: func(_ int, m *result.Step) {
		if m.Hold {
			m.Validity = result.Validity{Because: []string{"late"}}
		}
	}}).search(t)
	require.Nil(t, late.Held)
	require.Equal(t, "the load generator was late at each rate that was to be held", late.CannotTell)
	require.Equal(t, "late; 2 attempts, 120 s in all", late.Next.Why)

	s := &system{upTo: 10}
	rare, err := (&searcher{cfg: Default(), best: 10, open: s.open, recheck: s.recheck}).search(t.Context())
	require.NoError(t, err)
	require.Equal(t, "no rate was high enough for 1,000 requests in a hold of 60.0 s; lengthen it with --hold, or with hold in a variant file", rare.CannotTell)
}

// A search of 12 minutes ends with what was held until then.
func TestSearch_EndsAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	broken := func(n int, m *result.Step) {
		if n == 4 {
			*m = step(m.RatePerS, seconds(60, 600, 300))
			m.Hold = true
		}
	}
	for name, c := range map[string]struct {
		takes   time.Duration
		change  func(int, *result.Step)
		steps   int
		held    float64 // 0: cannot tell
		next    float64
		limited bool
	}{
		"it has the time":                {100 * time.Second, nil, 6, 650, 702, false},
		"held once":                      {150 * time.Second, nil, 5, 650, 702, true},
		"the lucky rate":                 {200 * time.Second, nil, 4, 684, 702, true},
		"the rate below it was not held": {150 * time.Second, broken, 5, 0, 650, true},
		"nothing was held":               {400 * time.Second, nil, 2, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &system{upTo: 700, takes: c.takes, change: c.change}
				found := s.search(t)
				require.Len(t, s.rates, c.steps)
				require.Equal(t, c.limited, found.LimitS != nil)
				if c.next > 0 {
					require.InDelta(t, c.next, found.Next.RatePerS, 0)
				}
				if c.held == 0 {
					require.Nil(t, found.Held)
					require.Equal(t, "its time limit of 12 holds, 720 s, ended the search before a rate was held", found.CannotTell)
					return
				}
				require.Empty(t, found.CannotTell)
				require.InDelta(t, c.held, found.Held.RatePerS, 0)
			})
		})
	}
}

// On a slow day each measurement of a search with short holds takes half a second longer. Whatever
// the server does, the search has an end that a user can wait for.
func TestSearch_OfAnUnevenServerEnds(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	cfg := Default().WithHold(2 * time.Second)
	cfg.Load.Warmup = 500 * time.Millisecond
	for name, law := range map[string]simserver.Law{
		"M/M/1":       {},
		"bad seconds": {BadShare: 0.1, BadFor: 50 * time.Millisecond},
		"wandering":   {WanderBy: 0.2, WanderTime: 5 * time.Second},
		"stalls":      {StallEvery: 5 * time.Second, StallFor: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			law.PerS = 1000
			held, limited, cannotTell := 0, 0, 0
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(law, seed)
					w.warmup, w.recheckFor, w.overhead = cfg.Load.Warmup, cfg.recheckFor(law.PerS), time.Second/2
					began := time.Now()
					found, err := (&searcher{cfg: cfg, best: law.PerS, open: w.open, recheck: w.recheck}).search(t.Context())
					require.NoError(t, err)
					last := w.recheckFor + w.warmup + cfg.Hold + 2*w.overhead
					require.LessOrEqual(t, time.Since(began), 30*time.Second+last+time.Second) // the queue is emptied
					switch {
					case found.CannotTell != "":
						cannotTell++
					case found.Held != nil:
						held++
						require.Less(t, found.Held.RatePerS, 1.1*law.PerS)
						require.True(t, found.Next == nil || found.Next.RatePerS > found.Held.RatePerS)
					}
					if found.LimitS != nil {
						limited++
					}
				})
			}
			t.Logf("%d of 20 held, %d cannot tell, %d ended by the limit", held, cannotTell, limited)
		})
	}
}

func TestSearch_OnceLateIsTriedAgain(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	s := &system{upTo: 700, change: func(n int, m *result.Step) {
		if n%2 == 0 {
			m.Validity = result.Validity{Because: []string{"late"}}
		}
	}}
	require.InEpsilon(t, 0.94*700, s.search(t).Held.RatePerS, 0.03)
}

func TestConfig_ASlowStoreIsRecheckedForLonger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hold   time.Duration
		perS   float64
		length time.Duration
	}{
		{time.Minute, 300, 5 * time.Second},
		{15 * time.Second, 300, 5 * time.Second},
		{15 * time.Second, 1000, 2 * time.Second},
		{15 * time.Second, 10_000, 1250 * time.Millisecond},
		{2 * time.Second, 300, 2 * time.Second},
	} {
		require.Equal(t, c.length, Default().WithHold(c.hold).recheckFor(c.perS), c)
	}
}

func TestConfig_WithHold_ScalesTheRest(t *testing.T) {
	t.Parallel()
	d := Default()
	require.Equal(t, []time.Duration{time.Minute, 4 * time.Second, 2500 * time.Millisecond, 500 * time.Millisecond}, []time.Duration{d.Hold, d.Step, d.ScalingStep, d.ScalingWarmup})
	short := d.WithHold(2 * time.Second)
	require.Equal(t, []time.Duration{2 * time.Second, shortestStep, shortestStep, shortestStep / 5}, []time.Duration{short.Hold, short.Step, short.ScalingStep, short.ScalingWarmup})
	require.Equal(t, 10*time.Second, d.stepLength(100), "1,000 requests show a p99")
	require.Equal(t, d.Hold, d.stepLength(1))
}

// machine is a Measurer that carries up to 1,000 sagas/s, and meets the level up to 800.
type machine struct {
	measured, failAt int // measurements until now, and the one that fails; 0: none
}

func (m *machine) Measure(_ context.Context, shape load.Config) (result.Step, error) {
	if m.measured++; m.measured == m.failAt {
		return result.Step{}, errors.New("server gone")
	}
	perS := shape.Rate.Mean()
	s := step(perS, nil)
	if shape.Rate.IsOpen() {
		over := int64(0)
		if perS > 800 {
			over = 500
		}
		s = step(perS, seconds(max(1, int(shape.Duration.Seconds())), 1000, over))
	} else {
		s = step(min(1000, 100*float64(shape.InFlight)), seconds(2, 1000, 0))
		s.Load.Mode, s.Load.InFlight, s.Load.OfferedPerS = result.Closed, shape.InFlight, nil
	}
	cores, perSaga := s.Load.AchievedPerS*200e-6, 200.0
	s.Resources.AppCores, s.CostPerSaga.AppCPUUS = &cores, &perSaga
	busy := 0.95
	s.Resources.HostBusy = &busy
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
	require.True(t, s.Validity.Valid, s.Validity.Because)
	require.Equal(t, result.KindCapacity, s.Kind)
	c := s.Capacity
	require.InEpsilon(t, 0.94*800, c.Held.RatePerS, 0.03)
	require.Equal(t, []result.Search{c.Search}, c.Searches)
	require.Nil(t, c.Spread)
	require.Len(t, c.Scaling, 10)
	require.Contains(t, c.Next.Why, "; limited by load generator")
	require.Equal(t, 16, c.Rechecks[0].Load.InFlight, "the first with the highest throughput")
	require.InDelta(t, validationShare*c.Held.RatePerS, c.Validation.RatePerS, 1)
	require.NotEmpty(t, c.Predicted)
	require.Equal(t, "app CPU", c.Predicted[0].What)
	require.InEpsilon(t, c.Predicted[0].Measured, c.Predicted[0].Expected, 0.01)

	require.Equal(t, "closed loops with 1 to 512 in flight", said[0])
	require.Equal(t, "1 in flight: 100/s", said[1])
	require.Equal(t, "702/s for 4.00 s: met", said[11])
	require.Contains(t, said, "16 in flight again: 1,000/s in its median second")
}

func TestRun_RepeatsTheSearch(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	cfg := quietly()
	cfg.Repeat = 3
	s, err := Run(t.Context(), cfg, &machine{})
	require.NoError(t, err)
	c := s.Capacity
	require.Len(t, c.Searches, 3)
	rate := c.Held.RatePerS
	require.Equal(t, &result.Spread{Low: rate, Median: rate, High: rate}, c.Spread)
}

func TestAnswer_IsTheMedianOfTheSearches(t *testing.T) {
	t.Parallel()
	var r run
	for _, perS := range []float64{500, 0, 700, 600} {
		s := result.Search{}
		if perS > 0 {
			s.Held = &result.Held{RatePerS: perS}
		}
		r.answer(s)
	}
	require.InDelta(t, 500, r.found.Held.RatePerS, 0, "the lower one of the two in the middle")
	require.Equal(t, &result.Spread{Low: 0, Median: 500, High: 700}, r.found.Spread)
}

func TestAnswer_LeavesOutWhatCannotTell(t *testing.T) {
	t.Parallel()
	var r run
	held := func(perS float64) result.Search { return result.Search{Held: &result.Held{RatePerS: perS}} }
	uneven := result.Search{CannotTell: "uneven"}
	for _, one := range []struct {
		search result.Search
		want   result.Search
		spread *result.Spread
	}{
		{uneven, uneven, nil},
		{held(500), uneven, nil}, // one each
		{held(700), held(500), &result.Spread{Low: 500, Median: 500, High: 700}},
		{uneven, uneven, nil},
		{held(600), held(600), &result.Spread{Low: 500, Median: 600, High: 700}},
	} {
		r.answer(one.search)
		require.Equal(t, one.want, r.found.Search)
		require.Equal(t, one.spread, r.found.Spread)
	}
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
		require.NotNil(t, s.Capacity.Searches, name)
		require.NotNil(t, s.Capacity.Predicted, name)
		require.Nil(t, s.Capacity.Validation, name)
	}
	_, err := Run(t.Context(), quietly(), &machine{failAt: 1})
	require.EqualError(t, err, "server gone")
}

func TestLimitOf_AveragesTheHolds(t *testing.T) {
	t.Parallel()
	c := result.Capacity{Search: result.Search{Held: &result.Held{RatePerS: 200}}}
	for _, m := range []struct {
		rate, busy float64
		hold       bool
	}{{100, 0.2, true}, {200, 0.9, true}, {200, 1, true}, {200, 0.1, false}, {400, 0.3, true}} {
		s := step(m.rate, seconds(1, 100, 0))
		s.Hold, s.Resources.HostBusy = m.hold, &m.busy
		c.Steps = append(c.Steps, s)
	}
	found := limitOf(c.HeldSteps(), limit.Machine{Shared: true})
	require.Equal(t, "CPU of the machine", found.Resource)
	require.InDelta(t, 0.95, *found.Share, 1e-9)
	require.Equal(t, "the search found no rate to judge it at", limitOf(nil, limit.Machine{}).Evidence)
}
