package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	neturl "net/url"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What an app server counts, by its names in the Prometheus text format. A histogram has
// two: _sum and _count.
const (
	metricRoundTrips = "sagabench_store_round_trips_total"
	metricFsyncs     = "sagabench_store_fsyncs_total"
	metricLostWrites = "sagabench_store_lost_writes_total"
	metricWritten    = "sagabench_store_written_bytes_total"
	metricDebt       = "sagabench_store_debt_bytes"
	metricCPU        = "process_cpu_seconds_total"
	metricRSS        = "process_resident_memory_bytes"
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
// servers lacks, and what is no count: NaN, infinite or below 0.
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

// readMetrics sums what app servers count. get opens the metrics of one of them.
func readMetrics(servers []string, get func(server string) (io.ReadCloser, error)) (metrics, error) {
	sum := metrics{}
	having := map[string]int{} // servers, by name of the metric
	for _, server := range servers {
		families, err := parse(get(server))
		if err != nil {
			return nil, fmt.Errorf("read metrics of %s: %w", server, err)
		}
		for name, x := range sums(families) {
			sum[name] += x
			having[name]++
		}
	}
	maps.DeleteFunc(sum, func(name string, x float64) bool {
		return having[name] < len(servers) || !(x >= 0 && x < math.MaxInt64) // as a file may say that was changed by hand
	})
	return sum, nil
}

// parse reads metrics in the Prometheus text format, and closes them.
func parse(text io.ReadCloser, err error) (map[string]*dto.MetricFamily, error) {
	if err != nil {
		return nil, err
	}
	defer text.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
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

// A server whose connections are all in use may close a new one before its request comes, to
// make room for another client: then the metrics are asked for again.
const (
	scrapeAttempts = 20
	scrapePause    = 20 * time.Millisecond
)

// scrape asks an app server for its metrics.
func (s *Sampler) scrape(ctx context.Context) func(url string) (io.ReadCloser, error) {
	return func(url string) (io.ReadCloser, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		if token := s.cfg.AppToken; token.IsSet() {
			req.Header.Set("Authorization", "Bearer "+token.Reveal())
		}
		// A connection that is kept would be idle for the whole run, and closed by then.
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		for attempt := 1; err != nil && attempt < scrapeAttempts && ctx.Err() == nil && !errors.Is(err, syscall.ECONNREFUSED); attempt++ {
			time.Sleep(scrapePause)
			resp, err = client.Do(req)
		}
		if failed, ok := errors.AsType[*neturl.Error](err); ok {
			err = failed.Err // the URL is in the error that this is wrapped in
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, fmt.Errorf("it answers %s", resp.Status)
		}
		return resp.Body, nil
	}
}

// addTo adds what app servers counted between two readings, that long apart: longer than the
// interval if a busy server answered late. CPU is that of all of them.
func (m metrics) addTo(u *Usage, before metrics, servers int, apart time.Duration) {
	since := func(name string) *float64 { return m.since(before, name) }
	perS := func(total *float64) *float64 { return perSecond(total, apart) }
	t, r := &u.Total, &u.Resources
	t.AppCPUUS = times(since(metricCPU), microseconds)
	t.StoreRoundTrips = since(metricRoundTrips)
	t.StoreFsyncs = since(metricFsyncs)
	t.StoreBytesWritten = since(metricWritten)
	if before, after := before.value(metricDebt), m.value(metricDebt); before != nil && after != nil {
		grown := *after - *before
		r.StoreDebtBytes = &grown
	}
	r.StoreFsyncsPerS = perS(t.StoreFsyncs)
	if lost := since(metricLostWrites); lost != nil {
		u.LostWrites = int64(*lost)
	}
	r.AppCores = perS(since(metricCPU))
	r.AppCoresUsable = cmp.Or(m.value(metricCores), m.value(metricGoCores))
	r.AppThrottled = times(perS(since(metricThrottled)), 1/float64(max(1, servers)))
	r.AppAcceptWait = perS(since(metricAcceptWait))
	r.StoreCallsInFlight = perS(since(metricCalls + "_sum"))
	r.AppRSSBytes = m.value(metricRSS)
	r.StoreConns = m.value(metricConns)
	r.StoreConnWaits = perS(since(metricConnWaits))
}
