package sample

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sagabench/internal/secret"
)

// What an app server counts, by its names in the Prometheus text format. A histogram has
// two: _sum and _count.
const (
	metricRoundTrips = "sagabench_store_round_trips_total"
	metricFsyncs     = "sagabench_store_fsyncs_total"
	metricWritten    = "sagabench_store_written_bytes_total"
	metricDebt       = "sagabench_store_debt_bytes"
	metricCPU        = "process_cpu_seconds_total"
	metricCores      = "sagabench_cpu_cores_usable"
	metricGoCores    = "go_sched_gomaxprocs_threads" // of a server without the former; it has no half cores
	metricThrottled  = "sagabench_cpu_throttled_seconds_total"
	metricBatches    = "sagabench_store_batch_changes"         // a histogram
	metricCalls      = "sagabench_store_call_duration_seconds" // a histogram
	metricAcceptWait = "sagabench_connections_kept_out_seconds_total"
	metricConns      = "sagabench_store_connections_max"
	metricConnWaits  = "sagabench_store_connection_wait_seconds_total"
)

// metrics are sums over all labels and all app servers, by name. It lacks what one of the
// servers lacks.
type metrics map[string]float64

func (m metrics) value(name string) *float64 {
	x, ok := m[name]
	if !ok {
		return nil
	}
	return &x
}

// since returns by how much a counter went up.
func (m metrics) since(before metrics, name string) *float64 {
	return difference(before.value(name), m.value(name))
}

func readMetrics(ctx context.Context, urls []string, token secret.Text) (metrics, error) {
	sum := metrics{}
	servers := map[string]int{} // that have it
	for _, url := range urls {
		families, err := scrape(ctx, url, token)
		if err != nil {
			return nil, err
		}
		for name, x := range sums(families) {
			sum[name] += x
			servers[name]++
		}
	}
	for name, n := range servers {
		if n < len(urls) {
			delete(sum, name)
		}
	}
	return sum, nil
}

func sums(families map[string]*dto.MetricFamily) metrics {
	sum := metrics{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				sum[name+"_sum"] += h.GetSampleSum()
				sum[name+"_count"] += float64(h.GetSampleCount())
				continue
			}
			sum[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum
}

func scrape(ctx context.Context, url string, token secret.Text) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if token.IsSet() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	// A connection that is kept would be idle for the whole run, and closed by then.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s answers %s", url, resp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", url, err)
	}
	return families, nil
}
