package loadmetrics_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/load/loadmetrics"
	"sagabench/bench/internal/simserver"
	"sagabench/internal/secret"
	"sagabench/store"
)

// scrape reads metrics as Prometheus does.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	for name, family := range families {
		require.NotEmpty(t, family.GetHelp(), name)
	}
	return families
}

// number is the value of a metric without labels, or the sum over its labels; of
// a histogram the count.
func number(family *dto.MetricFamily) (sum float64) {
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func config(t *testing.T, target string, watcher load.Observer) load.Config {
	cfg := load.Default()
	cfg.Targets = []load.Target{{URL: target}}
	cfg.Rate, cfg.Duration, cfg.Warmup = load.Constant(200), time.Second, 0
	cfg.Dir = filepath.Join(t.TempDir(), "result")
	cfg.Observer = watcher
	return cfg
}

func TestMetrics_AgreeWithTheResult(t *testing.T) {
	t.Parallel()
	m := loadmetrics.New()
	metrics := httptest.NewServer(m.Handler(nil))
	t.Cleanup(metrics.Close)
	law := simserver.Law{PerS: 1000}.Handler(1)
	during := make(chan map[string]*dto.MetricFamily, 1)
	n := 0
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 5 { // one in flight, and this the only handler
			during <- scrape(t, metrics.URL+"/metrics")
		}
		if n%4 == 0 {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		law.ServeHTTP(w, r)
	}))
	t.Cleanup(target.Close)
	cfg := config(t, target.URL, m)
	cfg.MaxInFlight = 1
	res, err := load.Run(t.Context(), cfg)
	require.NoError(t, err)

	now := <-during
	require.InDelta(t, 200, number(now["sagabench_load_offered_per_second"]), 0)
	require.InDelta(t, 1, number(now["sagabench_load_in_flight"]), 1) // the 4th may not be counted yet
	require.InDelta(t, 4, number(now["sagabench_load_requests_total"]), 1)

	after := scrape(t, metrics.URL+"/metrics")
	for name, want := range map[string]int64{
		"sagabench_load_requests_total":     res.Requests,
		"sagabench_load_errors_total":       res.Errors,
		"sagabench_load_latency_seconds":    res.Sagas(),
		"sagabench_load_service_seconds":    res.Sagas(),
		"sagabench_load_lateness_seconds":   res.Requests,
		"sagabench_load_dropped_total":      res.Dropped,
		"sagabench_load_in_flight":          0,
		"sagabench_load_offered_per_second": 0,
	} {
		require.Contains(t, after, name)
		require.InDelta(t, want, number(after[name]), 0, name)
	}
	require.Equal(t, "http 418", after["sagabench_load_errors_total"].GetMetric()[0].GetLabel()[0].GetValue())
	mean := after["sagabench_load_latency_seconds"].GetMetric()[0].GetHistogram().GetSampleSum() / float64(res.Sagas())
	require.InEpsilon(t, res.Latency.Mean()/1e6, mean, 0.01)
	require.Contains(t, after, "process_cpu_seconds_total")
}

func TestMetrics_CountLatenessAndDroppedAndOutcomes(t *testing.T) {
	t.Parallel()
	m := loadmetrics.New()
	m.Started(nil)
	for range 3 {
		m.RequestSent()
	}
	m.RequestDone(load.Answer{Outcome: store.StatusFailed, Latency: time.Second, Service: time.Millisecond})
	m.RequestDone(load.Answer{Outcome: store.StatusSucceeded})
	m.Ended(7)
	server := httptest.NewServer(m.Handler(nil))
	t.Cleanup(server.Close)
	got := scrape(t, server.URL+"/metrics")
	require.InDelta(t, 0.999, got["sagabench_load_lateness_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
	require.InDelta(t, 7, number(got["sagabench_load_dropped_total"]), 0)
	require.InDelta(t, 1, number(got["sagabench_load_in_flight"]), 0)
	require.InDelta(t, 0, number(got["sagabench_load_offered_per_second"]), 0, "a closed loop")
	outcomes := map[string]float64{}
	for _, c := range got["sagabench_load_requests_total"].GetMetric() {
		outcomes[c.GetLabel()[0].GetValue()] = c.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"succeeded": 1, "failed": 1, "error": 0}, outcomes)
}

func TestMetrics_WantTheTokenIfThereIsOne(t *testing.T) {
	t.Parallel()
	handler := loadmetrics.New().Handler(secret.NewTokens("the-token-of-the-tests"))
	for shown, want := range map[string]int{
		"": 401, "Bearer x": 401, "Bearer ": 401, "Bearer the-token-of-the-tests": 200,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", shown)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, shown)
		require.NotContains(t, w.Body.String(), "the-token")
	}
}

func TestServe_EndsWithItsConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String() + "/metrics"
	stop := loadmetrics.New().Serve(l, nil)
	response, err := http.Get(url)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	stop()
	_, err = http.Get(url)
	require.Error(t, err)
}

// BenchmarkMetrics gives what being watched costs a request.
func BenchmarkMetrics(b *testing.B) {
	m := loadmetrics.New()
	for b.Loop() {
		m.RequestSent()
		m.RequestDone(load.Answer{Outcome: store.StatusSucceeded, Latency: 2 * time.Millisecond, Service: time.Millisecond})
	}
}
