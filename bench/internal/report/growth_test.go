package report

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/internal/document"
)

// searchWithHosts is a search with a number of app hosts. Several searches were
// within ±3%.
func searchWithHosts(t *testing.T, hosts int, rate float64) result.Result {
	t.Helper()
	s := capacityRun(t)
	s.Run.ID, s.Run.AppHosts, s.Run.SharedHost = fmt.Sprintf("of-%d", hosts), hosts, false
	c := &s.Capacity
	for i := range c.Steps {
		c.Steps[i].RatePerS *= rate / c.Held.RatePerS
	}
	c.Held.RatePerS = rate
	c.Spread = &result.Spread{Low: 0.97 * rate, Median: rate, High: 1.03 * rate}
	return result.Result{Dir: s.Run.ID, Capacity: &s}
}

func sideBySideText(t *testing.T, results ...result.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, SideBySide(results...)))
	return out.String()
}

func TestSideBySide_ShowsWhatEachAppHostAdds(t *testing.T) {
	t.Parallel()
	one, two, three := searchWithHosts(t, 1, 10_000), searchWithHosts(t, 2, 18_000), searchWithHosts(t, 3, 20_000)
	lower := searchWithHosts(t, 3, 19_000)
	got := sideBySideText(t, three, one, lower, two)
	require.Contains(t, got, "Throughput over app hosts")
	require.Regexp(t, `\n  1 +10,000 .* –\n`, got)
	require.Regexp(t, `\n  2 +18,000 .* 8,000 \(7,382 to 8,618\)\n`, got) // √(540²+300²) either way
	require.Regexp(t, `\n  3 +20,000 .* 2,000 \(1,193 to 2,807\)\n`, got) // √(600²+540²)
	require.Contains(t, unwrapped(got), "From 2 to 3 app hosts each added 2,000 (1,193 to 2,807) sagas/s, 20.0% of the rate of each with 1. With 3 the limit is store CPU. Expect no more from the next one.")
	require.NotContains(t, got, "The app hosts shared a machine")

	five := searchWithHosts(t, 5, 19_000)
	five.Capacity.Run.SharedHost, five.Capacity.Capacity.Spread = true, nil
	got = sideBySideText(t, two, five)
	require.Regexp(t, `\n  5 +19,000 .* 333\n`, got)
	require.Contains(t, unwrapped(got), "each added 333 sagas/s, 3.70% of the rate of each with 2.")
	require.Contains(t, unwrapped(got), "The app hosts shared a machine, so another one added no cores. On machines of their own they may add more.")
	require.NotContains(t, got, "Expect no more")
	require.Contains(t, unwrapped(sideBySideText(t, one, searchWithHosts(t, 2, 9000))), "From 1 to 2 app hosts: no more sagas/s. With 2 the limit is store CPU.")
}

func TestSideBySide_ShowsWhatEachMasterAdds(t *testing.T) {
	t.Parallel()
	withMasters := func(n int, rate, busiest float64) result.Result {
		r := searchWithHosts(t, 1, rate)
		r.Capacity.Run.ID, r.Capacity.Run.Store.Driver, r.Dir = fmt.Sprintf("masters-%d", n), "redis", ""
		for i := range r.Capacity.Capacity.Steps {
			m := &r.Capacity.Capacity.Steps[i]
			m.CostPerSaga.StoreCPUUS = resulttest.Ptr(12.0)
			if n > 1 {
				r.Capacity.Run.Store.Settings = map[string]string{"masters": fmt.Sprint(n)}
				m.CostPerSaga.StoreBusiestCPUUS, m.Resources.StoreCPUImbalance = &busiest, resulttest.Ptr(1.04)
			}
		}
		return r
	}
	got := sideBySideText(t, withMasters(3, 24_000, 4.2), withMasters(1, 10_000, 0))
	require.Contains(t, got, "Throughput over masters of the store")
	require.Regexp(t, `\n  1 +10,000 .* – +12\.0 +–\n`, got)
	require.Regexp(t, `\n  3 +24,000 .* 7,000 \(.* to .*\) +4\.20 +1\.040\n`, got)
	require.NotContains(t, got, "Throughput over app hosts")
	require.Regexp(t, `Results +redis, 3 masters +redis, one server`, got)

	two := withMasters(3, 24_000, 4.2)
	two.Capacity.Run.AppHosts = 2
	got = sideBySideText(t, two, withMasters(1, 10_000, 0))
	require.NotContains(t, got, "Throughput over", "two things differ")
}

// Only results of one system show how throughput grows with its hosts.
func TestSideBySide_DoesNotMixSystems(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*result.Result){
		"store":      func(r *result.Result) { r.Capacity.Run.Store.Driver = "mysql" },
		"durability": func(r *result.Result) { r.Capacity.Run.Store.Durability = "D0" },
		"saga":       func(r *result.Result) { r.Capacity.Run.Scenario.Steps = 7 },
		"promise":    func(r *result.Result) { r.Capacity.Capacity.SLO.Errors = 0.5 },
		"no rate":    func(r *result.Result) { r.Capacity.Capacity.Held = nil },
		"a run": func(r *result.Result) {
			s := resulttest.ClosedRun()
			s.Run.Store, s.Run.AppHosts = r.Capacity.Run.Store, 2
			*r = result.Result{Run: &s}
		},
	} {
		other := searchWithHosts(t, 2, 18_000)
		change(&other)
		require.NotContains(t, sideBySideText(t, searchWithHosts(t, 1, 10_000), other), "Throughput over app hosts", name)
	}
}
