package session_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

// attacked writes vegeta's results: n requests, each gap after the one before, answered after
// latency. change may alter one.
func attacked(t *testing.T, encode func(*bytes.Buffer) vegeta.Encoder, n int, gap, latency time.Duration, change func(i int, r *vegeta.Result)) (path string) {
	t.Helper()
	var file bytes.Buffer
	encoder := encode(&file)
	began := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	for i := range n {
		r := vegeta.Result{
			Seq: uint64(i), Code: 200, Timestamp: began.Add(time.Duration(i) * gap), Latency: latency,
			Method: "GET", URL: "http://app1:8080/bench/saga?steps=3&payload=10", Body: []byte(`{"dtm_result":"SUCCESS","gid":"g"}`),
		}
		if i%2 == 1 {
			r.URL = "http://app2:8080/bench/saga?steps=3&payload=10"
		}
		if change != nil {
			change(i, &r)
		}
		require.NoError(t, encoder.Encode(&r))
	}
	path = filepath.Join(t.TempDir(), "attack.bin")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o666))
	return path
}

func gob(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewEncoder(b) }

// metricsBeside writes the metrics of two servers before and after an attack.
func metricsBeside(t *testing.T, path string, sagas, cpu, trips float64) {
	t.Helper()
	name := path[:len(path)-len(filepath.Ext(path))]
	for _, app := range []string{"app1", "app2"} {
		for when, factor := range map[string]float64{"before": 0, "after": 0.5} {
			text := fmt.Sprintf("process_cpu_seconds_total %g\nsagabench_store_round_trips_total %g\ngo_sched_gomaxprocs_threads 4\nsagabench_sagas_total{outcome=\"succeed\"} %g\n",
				5+factor*cpu, 7+factor*trips, 100+factor*sagas)
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s.%s.%s.prom", name, when, app), []byte(text), 0o666))
		}
	}
}

func TestReadVegeta_OpenLoopWithMetrics(t *testing.T) {
	t.Parallel()
	for name, encode := range map[string]func(*bytes.Buffer) vegeta.Encoder{
		"gob":  gob,
		"json": func(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewJSONEncoder(b) },
		"csv":  func(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewCSVEncoder(b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := attacked(t, encode, 2000, 5*time.Millisecond, 3*time.Millisecond, func(i int, r *vegeta.Result) {
				switch {
				case i == 77: // a stall, so that several were in flight once
					r.Latency = 50 * time.Millisecond
				case i == 100:
					r.Code, r.Body, r.Error = 409, []byte(`{"dtm_result":"FAILURE","gid":"g"}`), "409 Conflict"
				case i == 200:
					r.Code, r.Body, r.Error = 0, nil, `Get "http://app1:8080": dial tcp: connect: connection refused`
				}
			})
			metricsBeside(t, path, 1999, 2, 4000)
			r, err := session.ReadVegeta(path)
			require.NoError(t, err)
			s := r.Run
			require.True(t, s.Validity.Valid, s.Validity.Because)
			require.Equal(t, result.Open, s.Load.Mode)
			require.InDelta(t, 200, *s.Load.OfferedPerS, 0.01)
			require.InDelta(t, 199.9, s.Load.AchievedPerS, 1)
			require.False(t, s.Load.Overloaded())
			require.Nil(t, s.Load.LatenessMS)
			require.EqualValues(t, 1999, s.Check.Acknowledged)
			require.Equal(t, map[string]int64{"connection refused": 1}, s.Load.ErrorsByKind)
			require.InDelta(t, 3, *s.LatencyMS.P99, 0.01)
			require.InDelta(t, 50, *s.LatencyMS.Max, 0.1)
			require.Equal(t, []string{"http://app1:8080", "http://app2:8080"}, s.Run.Targets)
			require.Equal(t, result.Scenario{Steps: 3, Branches: "empty", Payload: 10}, s.Run.Scenario)
			require.InDelta(t, 2e6/1999, *s.CostPerSaga.AppCPUUS, 0.1)
			require.InDelta(t, 4000.0/1999, *s.CostPerSaga.StoreRoundTrips, 0.01)
			require.Nil(t, s.CostPerSaga.StoreFsyncs)
			require.Nil(t, s.CostPerSaga.LoadCPUUS)
			require.InDelta(t, 0.2, *s.Resources.AppCores, 0.001)
			require.Equal(t, 4, s.Environment.Cores)
			require.Contains(t, s.Validity.Warnings, "sent late: vegeta stamps a request when it is sent, so a wait for one of its -max-workers is in no latency")
			require.Contains(t, fmt.Sprint(s.Validity.Warnings), "not audited")
			require.NotContains(t, fmt.Sprint(s.Validity.Warnings), "counts differ")
		})
	}
}

// A cap of workers that always binds makes a closed loop, whatever rate was asked for.
func TestReadVegeta_SeesAClosedLoop(t *testing.T) {
	t.Parallel()
	path := attacked(t, gob, 2000, time.Millisecond, 7900*time.Microsecond, nil) // 8 at a time
	r, err := session.ReadVegeta(path)
	require.NoError(t, err)
	require.Equal(t, result.Closed, r.Run.Load.Mode)
	require.Equal(t, 8, r.Run.Load.InFlight)
	require.Nil(t, r.Run.Load.OfferedPerS)
	require.InDelta(t, 1000, r.Run.Load.AchievedPerS, 5)
	warnings := fmt.Sprint(r.Run.Validity.Warnings)
	require.Contains(t, warnings, "closed loop: nearly always 8 requests were in flight")
	require.Contains(t, warnings, "no costs: save /metrics")
}

func TestReadVegeta_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	path := attacked(t, gob, 2000, 5*time.Millisecond, 3*time.Millisecond, func(_ int, r *vegeta.Result) { r.Body = nil })
	metricsBeside(t, path, 3000, 2, 4000)
	r, err := session.ReadVegeta(path)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(r.Run.Validity.Warnings), "counts differ: by their metrics the servers ended 3,000 sagas, vegeta got answers for 2,000")
	require.Contains(t, fmt.Sprint(r.Run.Validity.Notes), "2,000 answers without a body")

	failed, err := session.ReadVegeta(attacked(t, gob, 100, time.Millisecond, time.Millisecond/2, func(_ int, r *vegeta.Result) { r.Code = 503 }))
	require.NoError(t, err)
	require.False(t, failed.Run.Validity.Valid)

	require.NoError(t, os.Remove(path[:len(path)-len(".bin")]+".after.app2.prom"))
	_, err = session.ReadVegeta(path)
	require.ErrorContains(t, err, "attack.after.app2.prom")

	other := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(other, []byte("nothing of the kind"), 0o666))
	_, err = session.ReadVegeta(other)
	require.ErrorContains(t, err, "neither a result directory nor results of vegeta attack")
	_, err = session.ReadVegeta(attacked(t, gob, 1, time.Second, time.Second, nil))
	require.ErrorContains(t, err, "1 of vegeta's results, want at least 2")
}
