package resulttest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Ptr returns a pointer to x.
func Ptr[T any](x T) *T { return &x }

// Began is when the run of each fixture started.
var Began = time.Date(2026, 11, 21, 8, 35, 42, 0, time.UTC)

// ClosedRun is a good run over the embedded store.
func ClosedRun() result.Summary {
	latency := result.Latency{
		P50: Ptr(5.43), P90: Ptr(7.61), P95: Ptr(8.4), P99: Ptr(9.83),
		P999: Ptr(14.2), P9999: Ptr(31.0), Max: Ptr(40.7), Mean: Ptr(5.69),
	}
	return result.Summary{
		Envelope: result.Envelope{
			Schema: result.Schema, Kind: result.KindRun,
			Run: result.Run{
				ID: result.RunID(Began, "pebble"), Started: Began, DurationS: 10.0057,
				Command: "bench run pebble --in-flight 64 --duration 10s",
				Store: result.Store{
					Driver: "pebble", Version: "2.1.7", Durability: "D3",
					Settings: map[string]string{"sync": "true", "cache": "64 MiB"},
				},
				Scenario: result.Scenario{Steps: 2, Branches: "empty"},
				Topology: "load, app and embedded store on one machine", Targets: []string{}, SharedHost: true,
				Commit: Ptr("0f3a9c2"),
			},
			Check: result.Check{
				Acknowledged: 134_900, Terminal: Ptr[int64](134_900), Lost: Ptr[int64](0),
				BothOutcomes: Ptr[int64](0), Uncompensated: Ptr[int64](0), Unfinished: Ptr[int64](0),
			},
			Validity: result.Validity{Valid: true, Warnings: []string{"shared host: relative only"}},
			Environment: result.Environment{
				CPU: "Example CPU @ 2.80GHz", Cores: 2, Memory: 8 << 30, Kernel: "linux 6.1.0", Go: "go1.26.8",
				Governor: Ptr("performance"), Versions: map[string]string{"vegeta": "v12.13.0", "pebble": "v2.1.7"},
				CPUs:     result.CPUs{Load: Ptr("0-1"), App: Ptr("0-1")},
				CPUQuota: Ptr(1.5), MemoryLimit: Ptr[int64](2 << 30),
				StoreDisk: &result.StoreDisk{FileSystem: "ext4", Mount: "/srv", Device: "vda1", Rotational: Ptr(false), FsyncP50MS: Ptr(0.112), FsyncP99MS: Ptr(1.83), FsyncMaxMS: Ptr(4.07)},
			},
		},
		Measurement: result.Measurement{
			Load: result.Load{
				Mode: result.Closed, InFlight: 64, AchievedPerS: 11240.3, Requests: 112467,
				ErrorsByKind: map[string]int64{},
			},
			LatencyMS: latency,
			ServiceMS: latency,
			CostPerSaga: result.Cost{
				AppCPUUS: Ptr(41.27), LoadCPUUS: Ptr(15.9),
				StoreRoundTrips: Ptr(0.0412), StoreFsyncs: Ptr(0.0412), StoreBytesWritten: Ptr(1207.5),
			},
		},
	}
}

// OpenRun is an overloaded run over Redis with errors and lost sagas.
func OpenRun() result.Summary {
	s := ClosedRun()
	s.Run.ID = result.RunID(Began, "redis")
	s.Run.Command = "bench run redis --rate 9000/s --duration 10s --fail 0.05"
	s.Run.Store = result.Store{Driver: "redis", Version: "7.0.15", Durability: "D2", Settings: map[string]string{"appendfsync": "everysec"}}
	s.Run.Scenario = result.Scenario{Steps: 2, Branches: "http", Payload: 1500, Fail: 0.05}
	s.Run.Commit = nil
	s.Load = result.Load{
		Mode: result.Open, InFlight: 1000, OfferedPerS: Ptr(9000.0), AchievedPerS: 7012.44, Requests: 71_003, Errors: 412,
		ErrorsByKind: map[string]int64{"timeout": 12, "http 500": 400}, LatenessMS: &result.Latency{P50: Ptr(0.51), P90: Ptr(0.96), P99: Ptr(1.87), Max: Ptr(9.04)}, Delayed: Ptr[int64](60_211), Dropped: Ptr[int64](18_997),
	}
	s.LatencyMS = result.Latency{P50: Ptr(812.0), P99: Ptr(2011.0), Max: Ptr(2120.7), Mean: Ptr(801.25)}
	s.CostPerSaga.StoreCPUUS = Ptr(9.87)
	s.CostPerSaga.StoreBytesIn = Ptr(441.2)
	s.CostPerSaga.StoreBytesOut = Ptr(33.04)
	s.CostPerSaga.StoreMemoryBytes, s.CostPerSaga.NotMeasurable = nil, []string{"store_memory_bytes"}
	s.CostPerSaga.StoreCalls = Ptr(3.0)
	s.CostPerSaga.StoreFsyncs = nil
	s.Check.Lost = Ptr[int64](3)
	s.Validity = result.Validity{
		Because:  []string{"the audit found 3 of 134,900 acknowledged sagas lost", "412 of 71,003 requests failed"},
		Warnings: []string{},
		Notes:    []string{"limit: store CPU: the store keeps 97% of the one core busy on which it runs commands"},
	}
	s.Environment.Governor = nil
	return s
}

// Unaudited is a short run against a server whose store is out of reach.
func Unaudited() result.Summary {
	s := ClosedRun()
	s.Load = result.Load{Mode: result.Closed, InFlight: 1, AchievedPerS: 31.5, Requests: 63}
	s.LatencyMS = result.Latency{P50: Ptr(31.0), Max: Ptr(40.7), Mean: Ptr(31.7)}
	s.ServiceMS = s.LatencyMS
	s.Check = result.Check{Acknowledged: 1}
	s.CostPerSaga = result.Cost{LoadCPUUS: Ptr(0.00012)}
	s.Run.Store = result.Store{Driver: "unknown"}
	s.Validity = result.Validity{Valid: true}
	return s
}

// Golden compares got with a file in testdata, or writes it with -update.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	wanted, lines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(wanted), len(lines)) {
		require.Equal(t, wanted[i], lines[i], "%s:%d; run with -update if this is meant", path, i+1)
	}
	require.Len(t, lines, len(wanted), path)
}

// Timed adds a timeline.
func Timed(s result.Summary) result.Summary {
	for i := range 15 {
		at := float64(i + 1)
		s.Timeline = append(s.Timeline, result.Sample{
			AtS: at, SagasPerS: Ptr(7000 + 10*at), P50MS: Ptr(80 * at), P99MS: Ptr(200 * at),
			LoadCores: Ptr(0.2), AppCores: Ptr(0.5), StoreCores: Ptr(0.1), AppMemoryBytes: Ptr(int64(40 << 20)),
		})
	}
	if s.Load.Errors > 0 {
		for i := range s.Timeline {
			s.Timeline[i].ErrorsPerS = Ptr(0.0)
		}
		s.Timeline[6].ErrorsPerS = Ptr(float64(s.Load.Errors))
	}
	s.Timeline[4].Batch, s.Timeline[9].Batch = Ptr(12.5), Ptr(13.0)
	return s
}

// SampleLog is the log of three seconds, with service times.
func SampleLog(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	log, err := result.NewHistogramLog(&text, Began)
	require.NoError(t, err)
	service := result.NewHistogram()
	for second := range 3 {
		h := result.NewHistogram()
		for i := range int64(1000 * (second + 1)) {
			require.NoError(t, h.RecordValue(2*i+1))
			require.NoError(t, service.RecordValue(i+1))
		}
		start := Began.Add(time.Duration(second) * time.Second)
		require.NoError(t, log.Interval(h, start, start.Add(time.Second)))
	}
	require.NoError(t, log.Service(service, Began, Began.Add(3*time.Second)))
	return text.String()
}

func Intervals(perS ...int64) []result.Interval {
	var list []result.Interval
	for i, n := range perS {
		list = append(list, result.Interval{Start: Began.Add(time.Duration(i) * time.Second), Length: time.Second, Acknowledged: n})
	}
	return list
}
