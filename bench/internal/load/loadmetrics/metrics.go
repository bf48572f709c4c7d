// Package loadmetrics exports metrics of a running load to Prometheus: requests by
// outcome, latencies, requests in flight, how late they were sent, requests never sent, and the
// resources of the process.
//
// Each bucket of the histograms is twice as wide as the one before, so percentiles
// computed from them are rough. Those of the result are exact to three digits.
package loadmetrics

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sagabench/bench/internal/load"
	"sagabench/internal/secret"
	"sagabench/store"
)

// Metrics is a load.Observer that counts over all runs.
type Metrics struct {
	registry                     *prometheus.Registry
	succeeded, failed, erroneous prometheus.Counter
	errors                       *prometheus.CounterVec
	latency, service, lateness   prometheus.Histogram
	inFlight                     prometheus.Gauge
	dropped                      prometheus.Counter

	mu    sync.Mutex
	began time.Time
	rate  func(elapsed time.Duration) float64 // nil: closed loop, or no load
}

var _ load.Observer = (*Metrics)(nil)

// New returns metrics that are all 0.
func New() *Metrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sagabench_load_requests_total",
		Help: "Requests answered, by outcome: succeeded, failed (rolled back as asked) or error.",
	}, []string{"outcome"})
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		succeeded: requests.WithLabelValues("succeeded"),
		failed:    requests.WithLabelValues("failed"),
		erroneous: requests.WithLabelValues("error"),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sagabench_load_errors_total", Help: "Requests that failed, by kind of error.",
		}, []string{"kind"}),
		latency: histogram("sagabench_load_latency_seconds", "Time from when a request was due to its answer, of acknowledged sagas."),
		service: histogram("sagabench_load_service_seconds", "Time from the send of a request to its answer, of acknowledged sagas."),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sagabench_load_in_flight", Help: "Requests sent and not answered yet.",
		}),
		lateness: histogram("sagabench_load_lateness_seconds", "Time from when a request was due to its send, of all requests."),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sagabench_load_dropped_total", Help: "Requests that were due and never sent, counted at the end of a run.",
		}),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		requests, m.errors, m.latency, m.service, m.lateness, m.inFlight, m.dropped,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sagabench_load_offered_per_second", Help: "Requests due per second now; 0 in a closed loop.",
		}, m.offered),
	)
	return m
}

// histogram has buckets from 50 µs to 13 s, like those of the bench server.
func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(50e-6, 2, 19),
	})
}

// Started implements load.Observer.
func (m *Metrics) Started(rate func(elapsed time.Duration) float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.rate = time.Now(), rate
}

// RequestSent implements load.Observer.
func (m *Metrics) RequestSent() { m.inFlight.Inc() }

// RequestDone implements load.Observer.
func (m *Metrics) RequestDone(a load.Answer) {
	m.inFlight.Dec()
	m.lateness.Observe((a.Latency - a.Service).Seconds())
	switch {
	case a.Kind != "":
		m.erroneous.Inc()
		m.errors.WithLabelValues(a.Kind).Inc()
		return
	case a.Outcome == store.StatusSucceeded:
		m.succeeded.Inc()
	default:
		m.failed.Inc()
	}
	m.latency.Observe(a.Latency.Seconds())
	m.service.Observe(a.Service.Seconds())
}

// Ended implements load.Observer.
func (m *Metrics) Ended(dropped int64) {
	m.dropped.Add(float64(dropped))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rate = nil
}

func (m *Metrics) offered() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rate == nil {
		return 0
	}
	return m.rate(time.Since(m.began))
}

// Handler serves the metrics at /metrics. If there are tokens, requests need one.
func (m *Metrics) Handler(tokens secret.Tokens) http.Handler {
	metrics := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if tokens.AreSet() && !tokens.Matches(token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the metrics require the token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	return mux
}

// Serve serves the handler on a listener until stop is called, which closes the
// listener and all connections.
func (m *Metrics) Serve(l net.Listener, tokens secret.Tokens) (stop func()) {
	server := &http.Server{Handler: m.Handler(tokens), ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // returns when it is closed
	}()
	return func() {
		_ = server.Close()
		<-served
	}
}
