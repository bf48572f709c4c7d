package server

import (
	"net/http"
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
	sagaDuration prometheus.Histogram
	callDuration prometheus.Histogram
	batchChanges prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
		sagaDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_saga_duration_seconds",
			Help:    "Time from a saga's submission to its end, of those that /bench/saga saw end.",
			Buckets: latencyBuckets(),
		}),
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

// handler serves /metrics.
func (m *metrics) handler(c *saga.Coordinator, st store.Store, stats *stats, b *branches) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.sagaDuration, m.callDuration, m.batchChanges,
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
		counter("sagabench_store_errors_total", "Calls of the store that failed and were tried again.", nil,
			func() int64 { return c.Counters().StoreErrors }),
		calls("action", b.actions.Load),
		calls("compensate", b.compensations.Load),
		unfinished{stats},
	)
	if counted, ok := st.(store.Counted); ok {
		registry.MustRegister(engine{counted})
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func ended(outcome string, read func() int64) prometheus.Collector {
	return counter("sagabench_sagas_total", "Sagas that ended in this process, by outcome: succeed or failed.",
		prometheus.Labels{"outcome": outcome}, read)
}

func calls(op string, read func() int64) prometheus.Collector {
	return counter("sagabench_branch_calls_total", "Calls that this server's branch endpoints got, by op: action or compensate.",
		prometheus.Labels{"op": op}, read)
}

func counter(name, help string, labels prometheus.Labels, read func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(read()) })
}

func gauge(name, help string, read func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(read()) })
}
