package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sagabench/saga"
	"sagabench/store"
)

// metrics holds what is measured as it happens. Everything else is counted
// elsewhere already, and read when somebody asks.
type metrics struct {
	callDuration prometheus.Histogram
	batchChanges prometheus.Histogram
	attempts     [len(outcomes)]atomic.Int64
}

// outcomes names those of package saga, which count from 1.
var outcomes = [...]string{"succeeded", "refused", "ongoing", "no answer"}

func newMetrics() *metrics {
	return &metrics{
		callDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_store_call_duration_seconds",
			Help:    "Time the store took to write a batch of changes.",
			Buckets: latencyBuckets(),
		}),
		batchChanges: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_store_batch_changes",
			Help:    "Changes per batch written to the store.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13), // to 4096
		}),
	}
}

// latencyBuckets, in seconds, go from 50 µs to 13 s.
func latencyBuckets() []float64 { return prometheus.ExponentialBuckets(50e-6, 2, 19) }

// observeBatch is groupcommit.Config.Observe.
func (m *metrics) observeBatch(changes int, took time.Duration) {
	m.callDuration.Observe(took.Seconds())
	m.batchChanges.Observe(float64(changes))
}

// observeAttempt is part of saga.Config.Observe.
func (m *metrics) observeAttempt(a saga.Attempt) { m.attempts[a.Outcome-saga.Succeeded].Add(1) }

// metricsHandler serves /metrics.
func (s *Server) metricsHandler(st store.Store) http.Handler {
	c := s.coordinator
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s.metrics.callDuration, s.metrics.batchChanges,
		counter("sagabench_sagas_submitted_total", "Sagas accepted and begun by this process.", nil,
			func() int64 { return c.Counters().Submitted }),
		counter("sagabench_sagas_refused_total", "Sagas refused: as many as may be were under way in this process.", nil,
			func() int64 { return c.Counters().Refused }),
		ended("succeed", func() int64 { return c.Counters().Succeeded }),
		ended("failed", func() int64 { return c.Counters().Failed }),
		gauge("sagabench_sagas_in_flight", "Sagas this process is running now.",
			func() int64 { return c.Counters().InFlight }),
		counter("sagabench_sagas_recovered_total", "Sagas taken over: put off before, or left by another coordinator.", nil,
			func() int64 { return c.Counters().Recovered }),
		counter("sagabench_sagas_put_off_total", "Runs that ended with a branch undecided, to be tried again later.", nil,
			func() int64 { return c.Counters().PutOff }),
		counter("sagabench_sagas_lost_total", "Runs given up because another coordinator took the saga over.", nil,
			func() int64 { return c.Counters().Lost }),
		counter("sagabench_compensations_refused_total", "Answers of participants that refuse to undo what they did: somebody must mend it.", nil,
			func() int64 { return c.Counters().RefusedCompensations }),
		counter("sagabench_store_errors_total", "Calls of the store that failed and were tried again.", nil,
			func() int64 { return c.Counters().StoreErrors }),
		counter("sagabench_store_lost_writes_total", "Times the store was found not to have what it had acknowledged.", nil,
			func() int64 { return c.Counters().LostWrites }),
		counter("sagabench_requests_refused_total", "Requests without the token, or brought by a page of another site.", nil,
			s.guard.refused.Load),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sagabench_connections_kept_out_seconds_total",
			Help: "Time in which clients were turned away: all connections that are accepted, or are from one address, were in use.",
		}, func() float64 { return s.listener.keptOut().Seconds() }),
		unfinished{s.stats},
	)
	for i, name := range outcomes {
		registry.MustRegister(counter("sagabench_branch_attempts_total",
			"Calls of branches made by this process, by outcome: succeeded, refused, ongoing or no answer.",
			prometheus.Labels{"outcome": name}, s.metrics.attempts[i].Load))
	}
	if s.bench != nil {
		registry.MustRegister(s.bench.collectors()...)
	}
	if counted, ok := st.(store.CounterSource); ok {
		registry.MustRegister(engine{counted})
	}
	if shared, ok := st.(pooled); ok {
		registry.MustRegister(connections{shared})
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func ended(outcome string, read func() int64) prometheus.Collector {
	return counter("sagabench_sagas_total", "Sagas that ended in this process, by outcome: succeed or failed.",
		prometheus.Labels{"outcome": outcome}, read)
}

func counter(name, help string, labels prometheus.Labels, read func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(read()) })
}

func gauge(name, help string, read func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(read()) })
}
