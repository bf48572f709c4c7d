package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sagabench/bench/internal/cgroup"
	"sagabench/store"
)

// metricsHandler serves /metrics.
func (s *Server) metricsHandler(st store.Store) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s.metrics.Collector(s.coordinator, st, s.stats.get),
		counter("sagabench_requests_refused_total", "Requests without a valid token, or made by a page of another site.", nil,
			s.auth.refused.Load),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sagabench_connections_kept_out_seconds_total",
			Help: "Time in which clients were turned away because a limit of connections was reached.",
		}, func() float64 { return s.listener.acceptWait().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sagabench_cpu_cores_usable",
			Help: "Cores that this process may use: those of its CPU affinity, or of its cgroup's CPU quota if that is less.",
		}, cgroup.OwnCores),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sagabench_cpu_throttled_seconds_total",
			Help: "Time in periods of its cgroup's CPU quota in which this process used up the quota and was stopped.",
		}, func() float64 { return cgroup.OwnThrottled().Seconds() }),
	)
	if s.bench != nil {
		registry.MustRegister(s.bench.collectors()...)
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func counter(name, help string, labels prometheus.Labels, read func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(read()) })
}
