package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/internal/document"
)

func TestColumnNames_SayWhatDiffers(t *testing.T) {
	t.Parallel()
	run := func(dir, driver, durability string, change func(*result.Summary)) result.Result {
		s := resulttest.ClosedRun()
		s.Run.ID, s.Run.Store.Driver, s.Run.Store.Durability = result.RunID(resulttest.Began, driver), driver, durability
		if change != nil {
			change(&s)
		}
		if dir == "" {
			dir = "sagabench-results/" + s.Run.ID
		}
		return result.Result{Dir: dir, Run: &s}
	}
	busy := func(s *result.Summary) { s.Load.InFlight = 256 }
	payload := func(s *result.Summary) { s.Run.Scenario.Payload = 4096 }
	search := capacityRun(t)
	for _, tt := range []struct {
		want    []string
		results []result.Result
	}{
		{[]string{"redis", "mysql"}, []result.Result{run("", "redis", "D3", nil), run("", "mysql", "D3", nil)}},
		{[]string{"redis D2", "redis D3", "pebble D3"}, []result.Result{run("", "redis", "D2", nil), run("", "redis", "D3", nil), run("", "pebble", "D3", nil)}},
		{[]string{"redis, 64 in flight", "redis, 256 in flight", "mysql"}, []result.Result{run("", "redis", "D3", nil), run("", "redis", "D3", busy), run("", "mysql", "D3", busy)}},
		{[]string{"redis, 2 steps, empty branches", "redis, 2 steps, empty branches, 4,096 bytes of payload a step"}, []result.Result{run("", "redis", "D3", nil), run("", "redis", "D3", payload)}},
		{[]string{"before", "after"}, []result.Result{run("results/before", "redis", "D3", nil), run("results/after", "redis", "D3", nil)}},
		{[]string{"1: redis", "2: redis"}, []result.Result{run("", "redis", "D3", nil), run("", "redis", "D3", nil)}},
		{[]string{"redis 7.0.15 D2", "redis 2.1.7 D3"}, []result.Result{{Capacity: &search}, run("", "redis", "D3", nil)}},
	} {
		require.Equal(t, tt.want, columnNames(tt.results))
	}
}

func TestSideBySide_DrawsSearchesTogether(t *testing.T) {
	t.Parallel()
	redis, mysql, none := capacityRun(t), capacityRun(t), capacityRun(t)
	severalSearches(&redis.Capacity)
	redis.Capacity.Spread = &result.Spread{Low: 9510, Median: 9800, High: 10_100}
	mysql.Run.Store.Driver, none.Run.Store.Driver = "mysql", "postgres"
	mysql.Capacity.Held.RatePerS = 4000
	none.Capacity.Search, none.Capacity.Steps = result.Search{CannotTell: "uneven"}, nil
	d := SideBySide(result.Result{Capacity: &redis}, result.Result{Capacity: &mysql}, result.Result{Capacity: &none})
	part := func(title string) document.Chart {
		for _, p := range d.Parts {
			if p.Title == title {
				return *p.Chart
			}
		}
		require.Fail(t, "no part", title)
		return document.Chart{}
	}
	held := part("Highest rate held")
	require.Equal(t, []string{"redis", "mysql", "postgres"}, held.Bars)
	require.Equal(t, []document.Point{{Y: 9800, Low: 9510, High: 10_100}, {Y: 4000}, {Missing: true}}, held.Series[0].Points)
	require.Equal(t, "highest rate held, sagas/s: redis 9,800 (9,510 to 10,100), mysql 4,000.", held.Summary)

	over := part("Latency over the rate")
	require.Len(t, over.Series, 2)
	require.Equal(t, "mysql", over.Series[1].Name)
	require.Equal(t, []document.Point{{X: 4000, Y: 4.4}, {X: 8000, Y: 8.9}, {X: 10_200, Y: 19.1}, {X: 10_300, Y: 22.9}, {X: 12_000, Y: 240}}, over.Series[0].Points)
	require.Len(t, over.Marks, 1, "the service levels are the same")

	var out bytes.Buffer
	require.NoError(t, document.HTML(&out, d))
}
