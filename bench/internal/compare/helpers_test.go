package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

var began = time.Date(2026, 11, 21, 8, 35, 42, 0, time.UTC)

func ptr[T any](x T) *T { return &x }

// run is the i-th run of all, which has every metric. noise is a factor, drawn anew
// for each metric.
func run(i int, noise func() float64) result.Summary {
	x := func(mean float64) *float64 { return ptr(mean * noise()) }
	return result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema,
			Run: result.Run{
				ID: fmt.Sprintf("run-%d", i), Started: began.Add(time.Duration(i) * 15 * time.Second), DurationS: 10,
				Store: result.Store{
					Driver: "redis", Version: "7.0.15", Durability: "D3",
					Settings: map[string]string{"appendfsync": "always"},
				},
				Scenario: result.Scenario{Steps: 2, Branches: "empty"},
				Topology: "load, app and store on one machine", Commit: ptr("0f3a9c2"),
			},
			Validity:    result.Validity{Valid: true, Warnings: []string{"shared host: relative only"}},
			Environment: result.Environment{CPU: "Example CPU", Cores: 2, Go: "go1.26.8", Versions: map[string]string{"vegeta": "v12.13.0"}},
		},
		Measurement: result.Measurement{
			Load:      result.Load{Mode: result.Closed, InFlight: 64, AchievedPerS: *x(11_240), Requests: 112_400},
			LatencyMS: result.Latency{P50: x(5.4), P99: x(9.8), P999: x(14)},
			CostPerSaga: result.Cost{
				StoreCPUUS: x(9.9), AppCPUUS: x(30), LoadCPUUS: x(16), StoreBytesIn: x(441), StoreBytesOut: x(33),
				StoreMemoryBytes: x(247), StoreRoundTrips: x(0.04), StoreFsyncs: x(0.04),
			},
		},
	}
}

// sides are n pairs run in the order A B B A. noise is that of the run at index i.
func sides(n int, noise func(i int) func() float64) (a, b compare.Side) {
	a, b = compare.Side{Name: "A", Command: "bench run a"}, compare.Side{Name: "B", Command: "bench run b"}
	for i := range 2 * n {
		r := run(i, noise(i))
		if i%4 == 1 || i%4 == 2 {
			b.Runs = append(b.Runs, r)
		} else {
			a.Runs = append(a.Runs, r)
		}
	}
	return a, b
}

// quiet is little noise, the same in each test.
func quiet() func(int) func() float64 {
	rng := rand.New(rand.NewPCG(6, 6))
	return func(int) func() float64 {
		return func() float64 { return math.Exp(0.005 * rng.NormFloat64()) }
	}
}

func compared(t *testing.T, a, b compare.Side) (compare.Comparison, result.Validity) {
	t.Helper()
	c, v, err := compare.Make(a, b)
	require.NoError(t, err)
	return c, v
}

func metric(t *testing.T, c compare.Comparison, key string) compare.Metric {
	t.Helper()
	for _, m := range c.Metrics {
		if m.Metric == key {
			return m
		}
	}
	require.Fail(t, "no such metric", key)
	return compare.Metric{}
}

// shown is the comparison as bench compare shows it.
func shown(c compare.Comparison, v result.Validity, gates []compare.GateResult, command string) document.Document {
	return report.Comparison(compare.Result{Envelope: result.Envelope{Run: result.Run{Command: command}, Validity: v}, Compare: c, Gates: gates})
}
