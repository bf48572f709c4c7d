package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/bench/internal/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func begin(t *testing.T, cfg Config) *Sampler {
	t.Helper()
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Begin(t.Context()))
	return s
}

func end(t *testing.T, s *Sampler) Usage {
	t.Helper()
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	require.Empty(t, u.Failures)
	return u
}

func TestNew_SaysWhatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Config{AppPIDs: []int{2147483647}})
	require.ErrorContains(t, err, "measure the app server: process 2147483647")
	_, err = New(t.Context(), Config{OpenStore: func(context.Context) (Store, error) { return nil, errors.New("measure redis") }})
	require.ErrorContains(t, err, "measure redis")
}

// busyVariable makes this test binary burn CPU until its input ends.
const busyVariable = "SAGABENCH_BURN_CPU"

func TestBurn_Helper(t *testing.T) {
	if os.Getenv(busyVariable) == "" {
		return // the process below, or nothing
	}
	var ended atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	for !ended.Load() {
	}
}

func TestUsage_ProcessesAreMeasured(t *testing.T) {
	t.Parallel()
	app := exec.Command(os.Args[0], "-test.run=^TestBurn_Helper$")
	app.Env = append(os.Environ(), busyVariable+"=1")
	stdin, err := app.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, app.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = app.Wait()
	})
	cfg := Default()
	cfg.AppPIDs = []int{app.Process.Pid}
	cfg.Every = 20 * time.Millisecond
	s := begin(t, cfg)
	require.Eventually(t, func() bool {
		used, err := cpuSeconds(t.Context(), s.app)
		return err == nil && *used > *s.before.app+0.1
	}, time.Minute, 5*time.Millisecond)
	u := end(t, s)
	require.GreaterOrEqual(t, *u.Total.AppCPUUS, 0.1e6)
	require.LessOrEqual(t, *u.Total.AppCPUUS, 1e6*float64(runtime.NumCPU())*u.Elapsed.Seconds()+0.1e6)
	require.Greater(t, *u.Resources.HostBusy, 0.0)
	require.LessOrEqual(t, *u.Resources.HostBusy, *u.Resources.BusiestCore)
	require.NotEmpty(t, u.Timeline)
	last := u.Timeline[len(u.Timeline)-1]
	require.NotNil(t, last.AppCores)
	require.NotNil(t, last.LoadCores)
	require.Greater(t, *last.AppMemoryBytes, int64(1<<20))

	e := u.Evidence()
	require.NotEmpty(t, e.CPUs.Load)
	require.Equal(t, e.CPUs.Load, e.CPUs.App)
	require.Empty(t, e.CPUs.Store)
	require.InDelta(t, *u.Total.AppCPUUS/1e6/u.Elapsed.Seconds(), *e.AppCores, 1e-9)
	require.Positive(t, *e.LoadCoresUsable)
	require.NotNil(t, e.LoadThrottled)
	require.GreaterOrEqual(t, e.HostCores, len(e.CPUs.Load))
	require.False(t, e.StoreOneCore)
}

func TestUsage_ProcessThatEndedIsAFailure(t *testing.T) {
	t.Parallel()
	app := exec.Command("sleep", "60")
	require.NoError(t, app.Start())
	cfg := Default()
	cfg.AppPIDs = []int{app.Process.Pid}
	s := begin(t, cfg)
	require.NoError(t, app.Process.Kill())
	_ = app.Wait()
	require.NoError(t, s.End(t.Context()))
	u := s.Usage()
	require.Len(t, u.Failures, 1)
	require.Contains(t, u.Failures[0], "the CPU of the app: process")
	require.Nil(t, u.Total.AppCPUUS)
}

// metricsServer answers as an app server whose counters went up by n since the
// scrape before.
func metricsServer(t *testing.T, format string, steps ...float64) string {
	t.Helper()
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.ReplaceAll(format, "N", fmt.Sprint(steps[scrapes.Add(1)-1])))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const fullMetrics = `# HELP sagabench_store_round_trips_total Waits.
# TYPE sagabench_store_round_trips_total counter
sagabench_store_round_trips_total{shard="a"} N
sagabench_store_round_trips_total{shard="b"} N
# TYPE sagabench_store_fsyncs_total counter
sagabench_store_fsyncs_total N
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total N
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4096
# TYPE sagabench_saga_duration_seconds histogram
sagabench_saga_duration_seconds_bucket{le="+Inf"} 3
sagabench_saga_duration_seconds_sum 1
sagabench_saga_duration_seconds_count 3
# TYPE sagabench_store_call_duration_seconds histogram
sagabench_store_call_duration_seconds_bucket{le="+Inf"} 3
sagabench_store_call_duration_seconds_sum N
sagabench_store_call_duration_seconds_count 3
# TYPE sagabench_connections_kept_out_seconds_total counter
sagabench_connections_kept_out_seconds_total N
# TYPE sagabench_store_connections_max gauge
sagabench_store_connections_max 16
# TYPE sagabench_store_connection_wait_seconds_total counter
sagabench_store_connection_wait_seconds_total N
# TYPE sagabench_store_lost_writes_total counter
sagabench_store_lost_writes_total N
`

func TestUsage_MetricsOfAllAppServersAreAdded(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, fullMetrics, 10, 30), metricsServer(t, fullMetrics, 5, 6)}
	s := begin(t, cfg)
	u := end(t, s)
	apart := s.after.metricsAt.Sub(s.before.metricsAt).Seconds()
	require.InDelta(t, 42, *u.Total.StoreRoundTrips, 1e-9)
	require.InDelta(t, 21, *u.Total.StoreFsyncs, 1e-9)
	require.EqualValues(t, 21, u.LostWrites)
	require.InDelta(t, 21e6, *u.Total.AppCPUUS, 1e-9, "there is no process to ask")
	require.InEpsilon(t, 21/apart, *u.Evidence().StoreCallsInFlight, 1e-9)
	require.InDelta(t, 32, *u.Evidence().StoreConns, 1e-9)
	require.InDelta(t, 8192, *u.Evidence().AppRSSBytes, 1e-9)
	require.InEpsilon(t, 21/apart, *u.Evidence().StoreConnWaits, 1e-9)
	require.InEpsilon(t, 21/apart, *u.Evidence().AppAcceptWait, 1e-9)
	require.InEpsilon(t, 21/apart, *u.Evidence().StoreFsyncsPerS, 1e-9)
	require.NotNil(t, u.Evidence().NetworkBytesPerS)
	require.Nil(t, u.Evidence().StoreLockWaits)
	require.Nil(t, u.Total.StoreCPUUS)
	cost := u.PerSaga(1000)
	require.InDelta(t, 0.042, *cost.StoreRoundTrips, 1e-9)
	require.InDelta(t, 21_000, *cost.AppCPUUS, 1e-9)
}

// A busy server answers late, and has worked until then.
func TestUsage_MetricsThatComeLate_AreOfALongerTime(t *testing.T) {
	t.Parallel()
	const late = 200 * time.Millisecond
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := scrapes.Add(1)
		if n > 1 {
			time.Sleep(late)
		}
		fmt.Fprintf(w, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %d\n", n)
	}))
	t.Cleanup(server.Close)
	cfg := Default()
	cfg.AppMetrics = []string{server.URL}
	require.LessOrEqual(t, *end(t, begin(t, cfg)).Resources.AppCores, 1/late.Seconds())
}

func TestUsage_TimelineHasTheBatchesNowAndThen(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("name[]") == metricBatches {
			looks.Add(1)
		}
		n := looks.Load()
		fmt.Fprintf(w, "# TYPE %s histogram\n%s_sum %d\n%s_count %d\n", metricBatches, metricBatches, 100+12*n, metricBatches, 7+3*n)
	}))
	t.Cleanup(server.Close)
	cfg := Default()
	cfg.AppMetrics = []string{server.URL}
	cfg.Every, cfg.Timeout = 100*time.Millisecond, time.Minute
	s := begin(t, cfg)
	require.Eventually(t, func() bool { return looks.Load() >= 4 }, time.Minute, 5*time.Millisecond)
	line := end(t, s).Timeline
	require.GreaterOrEqual(t, len(line), 2*batchesEvery)
	known := 0
	for i, m := range line {
		if m.Batch == nil {
			continue
		}
		known++
		require.Zero(t, (i+1)%batchesEvery, i)
		require.InDelta(t, 4, *m.Batch, 1e-9, "12 changes by 3 calls")
	}
	require.Positive(t, known)
	require.Nil(t, batch(metrics{}, metrics{}))
}

func TestUsage_MetricThatOneServerLacksIsUnknown(t *testing.T) {
	t.Parallel()
	without := strings.ReplaceAll(fullMetrics, metricFsyncs, "sagabench_other_total")
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, without, 1, 2), metricsServer(t, fullMetrics, 1, 2)}
	u := end(t, begin(t, cfg))
	require.NotNil(t, u.Total.StoreRoundTrips)
	require.Nil(t, u.Total.StoreFsyncs)
	require.Nil(t, u.PerSaga(10).StoreFsyncs)
}

func TestUsage_CounterThatWentBackwardsIsUnknown(t *testing.T) {
	t.Parallel()
	cfg := Default()
	cfg.AppMetrics = []string{metricsServer(t, fullMetrics, 10, 3)}
	require.Nil(t, end(t, begin(t, cfg)).Total.StoreRoundTrips)
}

func TestUsage_AppWithoutMetricsIsAFailure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	cfg := Default()
	cfg.AppMetrics = []string{server.URL}
	s := begin(t, cfg)
	require.NoError(t, s.End(t.Context()))
	require.Contains(t, s.Usage().Failures[0], "404 Not Found")
}

func TestPerSaga_HasNoCostBelowZero(t *testing.T) {
	t.Parallel()
	back, none := -4096.0, 0.0
	cost := Usage{Total: result.Cost{StoreMemoryBytes: &back, StoreFsyncs: &none}}.PerSaga(10)
	require.Equal(t, result.Cost{StoreFsyncs: &none, NotMeasurable: []string{"store_memory_bytes"}}, cost)
}

func TestPerSaga_OfNoSagasNothingIsKnown(t *testing.T) {
	t.Parallel()
	require.Equal(t, result.Cost{}, end(t, begin(t, Default())).PerSaga(0))
}

// A server whose connections are all in use closes new ones to make room.
func TestSampler_AsksAgainIfItsConnectionIsClosed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1)%3 != 0 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "process_cpu_seconds_total 1\n")
	}))
	t.Cleanup(server.Close)
	body, err := new(Sampler).scrape(t.Context())(server.URL)
	require.NoError(t, err)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	require.Equal(t, "process_cpu_seconds_total 1\n", string(text))
	require.EqualValues(t, 3, asked.Load())
}
