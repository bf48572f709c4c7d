package plan_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/usl"
)

// onHosts is a search on n app hosts that keeps the promise up to a rate.
func onHosts(n, repeat int, kept float64) result.Result {
	c := ofHosts(n)
	c.Run.ID = fmt.Sprintf("of-%d-%d", n, repeat)
	for i := range c.Capacity.Steps {
		l := &c.Capacity.Steps[i].Load
		*l.OfferedPerS *= kept / 8000
		l.AchievedPerS = *l.OfferedPerS
	}
	return result.Result{Capacity: c}
}

// threeNumbers are two searches each on one, two and three hosts: by the law with
// λ = 8,000/s, σ = 0.1 and κ = 0, each 1% off to either side.
func threeNumbers() (results []result.Result) {
	for n := 1; n <= 3; n++ {
		for repeat, off := range []float64{0.99, 1.01} {
			results = append(results, onHosts(n, repeat, off*lawful(n)))
		}
	}
	return results
}

func lawful(n int) float64 { return 8000 * float64(n) / (1 + 0.1*float64(n-1)) }

func TestMake_TakesTheNumberOfHostsFromTheLaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perS float64
		want int
	}{{3000, 1}, {7000, 1}, {8500, 2}, {14_000, 2}, {16_000, 3}, {19_000, 3}} {
		p, validity, err := plan.Make(plan.Demand{RatePerS: c.perS, Peak: 1, SLO: promise}, threeNumbers())
		require.NoError(t, err)
		require.True(t, validity.Valid)
		hosts := line(t, p.Lines, "app hosts")
		require.InDelta(t, c.want, *hosts.Value, 0, c.perS)
		require.LessOrEqual(t, *hosts.Low, *hosts.Value)
		require.GreaterOrEqual(t, *hosts.High, *hosts.Value)
		require.Regexp(t, `^by the law over 1 to 3 app hosts \(6 results\) \d carry [\d,]+ \([\d,]+ to [\d,]+\)/s$`, hosts.Basis)
		require.False(t, hosts.Extrapolated)
		require.Len(t, p.From, 6)

		less := line(t, p.Lines, "load of the app hosts left when one is lost")
		if c.want == 1 {
			require.Nil(t, less.Value)
			continue
		}
		require.InEpsilon(t, 100*c.perS/lawful(c.want-1), *less.Value, 0.02, "what fewer carry is measured, too")
		// CPU per saga is that of as many hosts.
		require.Contains(t, line(t, p.Lines, "app CPU").Basis, fmt.Sprintf("(of-%d-0 and 1 more", c.want))
	}
}

func TestMake_SaysNothingOfMoreHostsThanWereMeasured(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 30_000, Peak: 1, SLO: promise}, threeNumbers())
	require.NoError(t, err)
	hosts := line(t, p.Lines, "app hosts")
	require.Nil(t, hosts.Value)
	require.Contains(t, hosts.Basis, "they carry at most 20,")
	require.Contains(t, hosts.Basis, "with 3; it says nothing of more")
	d := p.Document(validity, "")
	require.NoError(t, d.Check())
	require.Equal(t, "– app hosts and 1 store node (redis) for 30,000 sagas/s, with p99 ≤ 20 ms", d.Headline)

	// At the end of the range it may be one more than was measured.
	p, _, err = plan.Make(plan.Demand{RatePerS: lawful(3), Peak: 1, SLO: promise}, threeNumbers())
	require.NoError(t, err)
	hosts = line(t, p.Lines, "app hosts")
	require.Nil(t, hosts.High)
}

func TestMake_ShowsTheLawWithItsResiduals(t *testing.T) {
	t.Parallel()
	p, validity, err := plan.Make(plan.Demand{RatePerS: 14_000, Peak: 1, SLO: promise}, threeNumbers())
	require.NoError(t, err)
	require.InEpsilon(t, 8000, p.Law.Fit.Lambda.Value, 0.02)
	require.InDelta(t, 0.1, p.Law.Fit.Sigma.Value, 0.05)
	require.Len(t, p.Law.Points, 6)
	for i, point := range p.Law.Points {
		require.InDelta(t, 1, math.Ceil(float64(i+1)/2)/point.N, 0)
		require.InDelta(t, 0.01, math.Abs(p.Law.Fit.Residuals[i]), 0.005)
	}
	d := p.Document(validity, "")
	require.NoError(t, d.Check())
	for _, part := range d.Parts {
		if part.Title == "Throughput over app hosts" {
			require.Len(t, part.Table.Rows, 6)
			require.NotEmpty(t, part.Facts)
			return
		}
	}
	require.Fail(t, "the law is not shown")
}

func TestMake_RefusesNumbersOfHostsThatCarryNoLaw(t *testing.T) {
	t.Parallel()
	few := []result.Result{onHosts(1, 0, 8000), onHosts(2, 0, 14_500), onHosts(3, 0, 20_000)}
	_, _, err := plan.Make(modest, few)
	require.ErrorIs(t, err, plan.ErrNoPlan)
	require.ErrorIs(t, err, usl.ErrNoFit)
	require.ErrorContains(t, err, "from results of 1 to 3 app hosts: no scaling law fitted: of 3 measurements, 6 are needed")

	scattered := threeNumbers()
	scattered[2] = onHosts(2, 0, 4000)
	_, _, err = plan.Make(modest, scattered)
	require.ErrorIs(t, err, usl.ErrNoFit)
	require.ErrorContains(t, err, "the law is off by")

	broken := threeNumbers()
	for i := range broken[3].Capacity.Capacity.Steps {
		broken[3].Capacity.Capacity.Steps[i].LatencyMS = result.Latency{P99: ptr(100.0)}
	}
	_, _, err = plan.Make(modest, broken)
	require.ErrorContains(t, err, "result of-2-1: no plan: no measured rate kept the service level")
}
