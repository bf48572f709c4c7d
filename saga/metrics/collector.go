package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sagabench/saga"
	"sagabench/store"
)

type collector struct {
	metrics     *Metrics
	coordinator *saga.Coordinator
	store       store.Store
	stats       func() (store.Stats, error)
}

// metric is one that is read from a T.
type metric[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(T) float64
}

func counter[T any](name, help string, read func(T) float64) metric[T] {
	return metric[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, read}
}

func gauge[T any](name, help string, read func(T) float64) metric[T] {
	return metric[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, read}
}

// ended counts the sagas that ended in one status.
func ended(status string, read func(saga.Counters) float64) metric[saga.Counters] {
	return metric[saga.Counters]{
		prometheus.NewDesc("sagabench_sagas_total", "Sagas that ended in this process, by outcome: succeed or failed.",
			nil, prometheus.Labels{"outcome": status}), prometheus.CounterValue, read,
	}
}

var coordinatorMetrics = []metric[saga.Counters]{
	counter("sagabench_sagas_submitted_total", "Sagas accepted and started by this process.",
		func(c saga.Counters) float64 { return float64(c.Submitted) }),
	counter("sagabench_sagas_refused_total", "Sagas refused because the limit of sagas under way in this process was reached.",
		func(c saga.Counters) float64 { return float64(c.Refused) }),
	ended("succeed", func(c saga.Counters) float64 { return float64(c.Succeeded) }),
	ended("failed", func(c saga.Counters) float64 { return float64(c.Failed) }),
	gauge("sagabench_sagas_in_flight", "Sagas this process is running now.",
		func(c saga.Counters) float64 { return float64(c.InFlight) }),
	counter("sagabench_sagas_recovered_total", "Sagas taken over: deferred before, or left by another coordinator.",
		func(c saga.Counters) float64 { return float64(c.Recovered) }),
	counter("sagabench_sagas_put_off_total", "Runs that ended with a retry scheduled.",
		func(c saga.Counters) float64 { return float64(c.Deferred) }),
	counter("sagabench_sagas_lost_total", "Runs that ended because another coordinator took the saga over, or the saga was gone.",
		func(c saga.Counters) float64 { return float64(c.Lost) }),
	counter("sagabench_compensations_refused_total", "Answers of participants that refuse a compensation: an operator must repair the participant.",
		func(c saga.Counters) float64 { return float64(c.RefusedCompensations) }),
	counter("sagabench_store_errors_total", "Calls of the store that failed and were repeated.",
		func(c saga.Counters) float64 { return float64(c.StoreErrors) }),
	counter("sagabench_store_lost_writes_total", "Times the store did not have what it had acknowledged.",
		func(c saga.Counters) float64 { return float64(c.LostWrites) }),
}

// unfinishedMetrics cover the sagas of all coordinators of the store.
var unfinishedMetrics = []metric[store.Stats]{
	gauge("sagabench_unfinished", "Sagas in the store that have not ended.",
		func(s store.Stats) float64 { return float64(s.Unfinished) }),
	gauge("sagabench_due", "Unfinished sagas that any coordinator may take over now.",
		func(s store.Stats) float64 { return float64(s.Due) }),
	gauge("sagabench_oldest_unfinished_seconds", "Age of the oldest unfinished saga; 0 without one.",
		func(s store.Stats) float64 { return s.OldestAge.Seconds() }),
}

var storeMetrics = []metric[store.Counters]{
	counter("sagabench_store_round_trips_total", "Waits for the store's server, or commits of an embedded store.",
		func(c store.Counters) float64 { return float64(c.RoundTrips) }),
	counter("sagabench_store_fsyncs_total", "Fsyncs by the store; absent if the store does not know.",
		func(c store.Counters) float64 { return float64(c.Fsyncs) }),
	counter("sagabench_store_written_bytes_total", "Bytes written to disk by an embedded store, in pages of 4 KiB.",
		func(c store.Counters) float64 { return float64(c.Written) }),
	gauge("sagabench_store_debt_bytes", "Bytes that an embedded store has yet to flush or to compact.",
		func(c store.Counters) float64 { return float64(c.Debt) }),
}

type connections struct {
	limit  int
	waited time.Duration
}

var connectionMetrics = []metric[connections]{
	gauge("sagabench_store_connections_max", "Connections to the store's server that this process may open.",
		func(c connections) float64 { return float64(c.limit) }),
	counter("sagabench_store_connection_wait_seconds_total", "Total time that calls of the store waited for a connection.",
		func(c connections) float64 { return c.waited.Seconds() }),
}

var attemptMetrics = func() (metrics [len(outcomes)]metric[*Metrics]) {
	for i, outcome := range outcomes {
		metrics[i] = metric[*Metrics]{
			prometheus.NewDesc("sagabench_branch_attempts_total",
				"Calls of branches made by this process, by outcome: succeeded, refused, ongoing or no answer.",
				nil, prometheus.Labels{"outcome": outcome}), prometheus.CounterValue,
			func(m *Metrics) float64 { return float64(m.attempts[i].Load()) },
		}
	}
	return metrics
}()

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	c.metrics.callDuration.Describe(descs)
	c.metrics.batchChanges.Describe(descs)
	describe(descs, attemptMetrics[:])
	describe(descs, coordinatorMetrics)
	describe(descs, unfinishedMetrics)
	if _, ok := c.store.(store.CounterSource); ok {
		describe(descs, storeMetrics)
	}
	if _, ok := c.store.(store.ConnectionPool); ok {
		describe(descs, connectionMetrics)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.metrics.callDuration.Collect(metrics)
	c.metrics.batchChanges.Collect(metrics)
	collect(metrics, attemptMetrics[:], c.metrics)
	collect(metrics, coordinatorMetrics, c.coordinator.Counters())
	if stats, err := c.stats(); err == nil {
		collect(metrics, unfinishedMetrics, stats)
	}
	if s, ok := c.store.(store.CounterSource); ok {
		collect(metrics, storeMetrics, s.Counters())
	}
	if s, ok := c.store.(store.ConnectionPool); ok {
		limit, waited := s.Connections()
		collect(metrics, connectionMetrics, connections{limit, waited})
	}
}

func describe[T any](descs chan<- *prometheus.Desc, all []metric[T]) {
	for _, m := range all {
		descs <- m.desc
	}
}

// collect leaves out negative values: the store does not know those.
func collect[T any](metrics chan<- prometheus.Metric, all []metric[T], from T) {
	for _, m := range all {
		if value := m.read(from); value >= 0 {
			metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, value)
		}
	}
}
