package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

func TestProfile_IsWrittenAsItIsTyped(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Profile{
		"": {}, "333.3/s": Constant(333.3), "100/s,200/s": Steps(100, 200), "100/s..100000/s": Ramp(100, 1e5),
	} {
		require.Equal(t, want, p.String())
		require.NoError(t, p.Validate())
		require.Equal(t, want != "", p.IsOpen())
	}
	for _, p := range []Profile{Constant(0), Constant(-1), Steps(1, 0), Ramp(1, math.Inf(1)), Ramp(math.NaN(), 1), Constant(MaxRate + 1)} {
		require.Error(t, p.Validate(), p)
	}
}

func TestProfile_RateAndRequestsGoTogether(t *testing.T) {
	t.Parallel()
	const planned = 12 * time.Second
	for _, p := range []Profile{Constant(50), Steps(10, 100, 40), Ramp(10, 200), Ramp(200, 10)} {
		sum := 0.0
		for at := time.Duration(0); at < planned; at += time.Millisecond {
			require.InDelta(t, sum, p.until(at, planned), 0.3, "%v until %v", p, at)
			if near := p.reach(sum, planned); math.Abs((near - at).Seconds()) > 0.03 {
				require.Failf(t, "reached at another time", "%v: %v, want %v", p, near, at)
			}
			sum += p.rate(at, planned) / 1000
		}
		require.InEpsilon(t, sum, p.Mean()*planned.Seconds(), 0.001)
		require.InEpsilon(t, sum, p.until(planned, planned), 0.001)
		require.Equal(t, planned, p.reach(sum+1, planned))
	}
	require.InDelta(t, 10, Steps(10, 100, 40).rate(4*time.Second-1, planned), 0)
	require.InDelta(t, 100, Steps(10, 100, 40).rate(4*time.Second, planned), 0)
	require.InDelta(t, 40, Steps(10, 100, 40).rate(planned, planned), 0)
	require.InDelta(t, 200, Ramp(10, 200).rate(planned+time.Second, planned), 0)
}

func TestSchedule_ConstantArrivalsAreEvenlySpaced(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.3, 1, 7, 333.3, 9999, 1e5} {
		for _, d := range []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second} {
			s := Config{Arrival: ArrivalConstant, Rate: Constant(rate), Duration: d}.schedule()
			n := s.before(d)
			require.InDelta(t, rate*d.Seconds(), n, 1)
			a := s.arrivals()
			for i := range n {
				if due := a.due(uint64(i)).Seconds(); math.Abs(due-float64(i)/rate) > 2e-9 {
					require.Failf(t, "not in its place", "request %d of %v/s is due at %v s", i, rate, due)
				}
			}
			require.Equal(t, d, a.due(uint64(n)), "it is over")
			require.InDelta(t, rate, s.offeredPerS(d), 0)
		}
	}
}

func TestSchedule_RampsAndStepsOfferTheirMean(t *testing.T) {
	t.Parallel()
	for _, p := range []Profile{Steps(100, 400), Ramp(50, 450), Ramp(450, 50)} {
		s := Config{Arrival: ArrivalConstant, Rate: p, Duration: 10 * time.Second}.schedule()
		require.EqualValues(t, 2500, s.before(10*time.Second))
		require.InDelta(t, 250, s.offeredPerS(10*time.Second), 0)
		half := p.until(5*time.Second, 10*time.Second)
		require.InDelta(t, half, s.before(5*time.Second), 1)
		require.InDelta(t, half/5, s.offeredPerS(5*time.Second), 1e-6)
	}
}

// A Poisson process of a rate that changes: in each second as many as the rate
// says, with a variance that is as large; and gaps that are exponential once the
// time is stretched back.
func TestSchedule_PoissonArrivalsFollowTheProfile(t *testing.T) {
	t.Parallel()
	const planned = 400 * time.Second
	s := Config{Arrival: ArrivalPoisson, Seed: 1, Rate: Ramp(100, 300), Duration: planned}.schedule()
	n := s.before(planned)
	require.InEpsilon(t, 200*planned.Seconds(), n, 0.01)
	require.InDelta(t, float64(n)/planned.Seconds(), s.offeredPerS(planned), 1e-6)

	perSecond := make([]float64, int(planned.Seconds()))
	var gaps []float64
	last := 0.0
	for a := s.arrivals(); a.at() < planned; a.step() {
		perSecond[int(a.at().Seconds())]++
		position := s.profile.until(a.at(), planned)
		gaps = append(gaps, position-last)
		last = position
	}
	scatter := 0.0
	for second, count := range perSecond {
		want := s.profile.rate(time.Duration(second)*time.Second+time.Second/2, planned)
		scatter += (count - want) * (count - want) / want
	}
	require.InDelta(t, 1, scatter/float64(len(perSecond)), 5*math.Sqrt(2/float64(len(perSecond))))

	slices.Sort(gaps)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		require.InEpsilon(t, -math.Log(1-q), gaps[int(q*float64(len(gaps)))], 0.05, q)
	}
}

func TestSchedule_TheSeedMakesThePoissonArrivals(t *testing.T) {
	t.Parallel()
	due := func(seed uint64) (due []time.Duration) {
		a := Config{Arrival: ArrivalPoisson, Seed: seed, Rate: Constant(100), Duration: time.Second}.schedule().arrivals()
		for i := range 50 {
			due = append(due, a.due(uint64(i)))
		}
		return due
	}
	require.Equal(t, due(7), due(7))
	require.NotEqual(t, due(7), due(8))
	require.NotEqual(t, due(0), due(0), "0 is drawn")
	require.IsIncreasing(t, due(7))
}

// Results come in another order than their requests.
func TestArrivals_KeepWhatWasPassedUntilItIsAskedFor(t *testing.T) {
	t.Parallel()
	s := Config{Arrival: ArrivalPoisson, Seed: 3, Rate: Constant(100), Duration: time.Minute}.schedule()
	straight, shuffled := s.arrivals(), s.arrivals()
	var want []time.Duration
	for i := range 1000 {
		want = append(want, straight.due(uint64(i)))
	}
	require.Empty(t, straight.skipped)
	got := make([]time.Duration, len(want))
	for from := 0; from < len(want); from += 50 {
		for _, i := range rand.Perm(50) {
			got[from+i] = shuffled.due(uint64(from + i))
			require.LessOrEqual(t, len(shuffled.skipped), 50)
		}
	}
	require.Equal(t, want, got)
	require.Empty(t, shuffled.skipped)
}

func TestMeter_AchievedIsTheSteadyRate(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	at := func(start, length time.Duration, n int64) result.Interval {
		return result.Interval{Start: began.Add(start), Length: length, Acknowledged: n}
	}
	const s = time.Second
	for name, c := range map[string]struct {
		profile   Profile
		planned   time.Duration
		intervals []result.Interval
		shortest  time.Duration
		errors    int64
		want      float64
	}{
		"nothing":             {},
		"closed, steady":      {intervals: []result.Interval{at(0, s, 1000), at(s, s, 1000)}, want: 1000},
		"closed, a straggler": {intervals: []result.Interval{at(0, s, 1000), at(s, s, 1000), at(2*s, 5*s, 1)}, want: 1000},
		"open, slow but keeping up": {
			profile: Constant(1000), planned: 2 * s, shortest: 300 * time.Millisecond, want: 1000,
			intervals: []result.Interval{at(0, s, 700), at(s, s, 1000), at(2*s, 300*time.Millisecond, 300)},
		},
		"open, half of it": {
			profile: Constant(1000), planned: 2 * s, shortest: time.Millisecond, want: 500,
			intervals: []result.Interval{at(0, s, 500), at(s, s, 500), at(2*s, s, 500), at(3*s, s, 500)},
		},
		"open, half of it failed": {
			profile: Constant(1000), planned: 2 * s, shortest: time.Millisecond, errors: 1000, want: 500,
			intervals: []result.Interval{at(0, s, 500), at(s, s, 500)},
		},
		"a ramp, followed": {
			profile: Ramp(500, 1500), planned: 2 * s, shortest: time.Millisecond, want: 1000,
			intervals: []result.Interval{at(0, s, 750), at(s, s, 1250)},
		},
		"a falling ramp, followed": {
			profile: Ramp(1990, 10), planned: 10 * s, shortest: time.Millisecond, want: 1000,
			intervals: []result.Interval{at(0, 5*s, 7475), at(5*s, 4*s, 2416), at(9*s, s, 109)},
		},
		"a falling ramp, in twice the time": {
			profile: Ramp(1990, 10), planned: 10 * s, shortest: time.Millisecond, want: 500,
			intervals: []result.Interval{at(0, 10*s, 7475), at(10*s, 8*s, 2416), at(18*s, 2*s, 109)},
		},
		"steps, the second at half its rate": {
			profile: Steps(500, 1500), planned: 4 * s, shortest: time.Millisecond, want: 2.0 / 3 * 1000,
			intervals: []result.Interval{at(0, s, 500), at(s, s, 500), at(2*s, s, 750), at(3*s, s, 750), at(4*s, s, 750), at(5*s, s, 750)},
		},
	} {
		var plan *schedule
		if c.profile.IsOpen() {
			plan = Config{Arrival: ArrivalConstant, Rate: c.profile, Duration: c.planned}.schedule()
		}
		m := newRecorder(Config{InFlight: 1}, began, plan)
		m.res.Intervals, m.shortest, m.res.Errors = c.intervals, c.shortest, c.errors
		for _, i := range c.intervals {
			m.res.Succeeded += i.Acknowledged
		}
		m.res.Requests = m.res.Succeeded + c.errors
		m.finish(c.planned)
		require.InEpsilon(t, c.want+1, 1+m.res.AchievedPerS, 0.006, name)
		require.Equal(t, c.want != 0 && c.want < 900 && c.errors == 0, m.res.Load().Overloaded(), name)
	}
}
