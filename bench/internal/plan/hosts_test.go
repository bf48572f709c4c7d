package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

// onHosts is a search on n app hosts that meets the service level up to a rate.
func onHosts(n, repeat int, held float64) result.Result {
	c := ofHosts(n)
	c.Run.ID = fmt.Sprintf("of-%d-%d", n, repeat)
	for i := range c.Capacity.Steps {
		l := &c.Capacity.Steps[i].Load
		*l.OfferedPerS *= held / 8000
		l.AchievedPerS = *l.OfferedPerS
		c.Capacity.Steps[i].RatePerS = *l.OfferedPerS
	}
	c.Capacity.Held.RatePerS, c.Capacity.Next.RatePerS = held, held*9/8
	return result.Result{Capacity: c}
}

func TestMake_TakesTheFewestHostsThatHeldThePeak(t *testing.T) {
	t.Parallel()
	results := []result.Result{onHosts(3, 0, 20_000), onHosts(1, 0, 8000), onHosts(2, 0, 14_500), onHosts(2, 1, 14_500)}
	for _, c := range []struct {
		perS, want float64
		from       []string
	}{
		{3000, 1, []string{"of-1-0"}},
		{8500, 2, []string{"of-2-0", "of-2-1"}},
		{14_000, 2, []string{"of-2-0", "of-2-1"}},
		{19_000, 3, []string{"of-3-0"}},
		{30_000, 4, []string{"of-3-0"}}, // by the most hosts, which did not hold it
	} {
		p, validity, err := plan.Make(plan.Demand{RatePerS: c.perS, Peak: 1, SLO: level}, results)
		require.NoError(t, err)
		require.True(t, validity.Valid)
		require.Equal(t, c.from, p.From, c.perS)
		hosts := line(t, p.Lines, "app hosts")
		require.InDelta(t, c.want, *hosts.Value, 0, c.perS)
		require.NoError(t, shown(p, validity, "").Check())
	}
}

func TestMake_PassesOverHostsThatHeldNoRate(t *testing.T) {
	t.Parallel()
	broken := onHosts(1, 0, 8000)
	broken.Capacity.Capacity.Held = nil
	p, _, err := plan.Make(modest, []result.Result{broken, onHosts(2, 0, 14_500)})
	require.NoError(t, err)
	require.Equal(t, []string{"of-2-0"}, p.From)
	_, _, err = plan.Make(modest, []result.Result{broken})
	require.ErrorContains(t, err, "no rate was held")
}
