package probe

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sagabench/internal/secret"
)

// What an app server counts, by its names in the Prometheus text format.
const (
	metricRoundTrips = "sagabench_store_round_trips_total"
	metricFsyncs     = "sagabench_store_fsyncs_total"
	metricCPU        = "process_cpu_seconds_total"
	metricCores      = "go_sched_gomaxprocs_threads"
	metricBatches    = "sagabench_store_batch_changes"         // a histogram
	metricCalls      = "sagabench_store_call_duration_seconds" // likewise
	metricKeptOut    = "sagabench_connections_kept_out_seconds_total"
	metricConns      = "sagabench_store_connections_max"
	metricConnWaits  = "sagabench_store_connection_wait_seconds_total"
)

// appMetrics are totals over all app servers; what one of them does not have is
// nil.
type appMetrics struct {
	roundTrips, fsyncs *float64
	cpu                *float64 // seconds
	cores              *float64 // that they may use
	changes, calls     *float64 // written to the store, and how many times it was called for that
	callSeconds        *float64 // that these calls took
	conns              *float64 // to the store's server, that they may have
	connSeconds        *float64 // that calls waited for one of them
	keptOut            *float64 // seconds in which clients were turned away
}

func readMetrics(ctx context.Context, urls []string, token secret.Text) (*appMetrics, error) {
	sum := &appMetrics{
		roundTrips: new(float64), fsyncs: new(float64), cpu: new(float64), cores: new(float64),
		changes: new(float64), calls: new(float64), callSeconds: new(float64),
		conns: new(float64), connSeconds: new(float64), keptOut: new(float64),
	}
	for _, url := range urls {
		families, err := scrape(ctx, url, token)
		if err != nil {
			return nil, err
		}
		for name, total := range map[string]**float64{
			metricRoundTrips: &sum.roundTrips, metricFsyncs: &sum.fsyncs, metricCPU: &sum.cpu, metricCores: &sum.cores,
			metricConns: &sum.conns, metricConnWaits: &sum.connSeconds, metricKeptOut: &sum.keptOut,
		} {
			family, ok := families[name]
			if !ok {
				*total = nil
			}
			if *total != nil {
				**total += value(family)
			}
		}
		sum.addBatches(families[metricBatches])
		sum.addCalls(families[metricCalls])
	}
	return sum, nil
}

func (a *appMetrics) addBatches(family *dto.MetricFamily) {
	if family == nil {
		a.changes, a.calls = nil, nil
	}
	if a.changes == nil {
		return
	}
	for _, m := range family.GetMetric() {
		*a.changes += m.GetHistogram().GetSampleSum()
		*a.calls += float64(m.GetHistogram().GetSampleCount())
	}
}

func (a *appMetrics) addCalls(family *dto.MetricFamily) {
	if family == nil {
		a.callSeconds = nil
	}
	if a.callSeconds == nil {
		return
	}
	for _, m := range family.GetMetric() {
		*a.callSeconds += m.GetHistogram().GetSampleSum()
	}
}

func scrape(ctx context.Context, url string, token secret.Text) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if token.IsSet() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	// A connection of its own: one that is kept would be idle for the whole
	// run, and closed by then.
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

// value adds up the samples of a counter or a gauge, whatever their labels.
func value(family *dto.MetricFamily) (sum float64) {
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}
