package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sagabench/store"
)

// unfinished collects what the store says of its unfinished sagas, those of all
// coordinators. While the store does not answer the metrics are absent.
type unfinished struct{ stats *stats }

// Describe implements prometheus.Collector.
func (u unfinished) Describe(descs chan<- *prometheus.Desc) {
	u.each(store.Stats{}, func(d *prometheus.Desc, _ float64) { descs <- d })
}

// Collect implements prometheus.Collector.
func (u unfinished) Collect(metrics chan<- prometheus.Metric) {
	now, err := u.stats.get()
	if err != nil {
		return
	}
	u.each(now, func(d *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	})
}

func (unfinished) each(s store.Stats, yield func(*prometheus.Desc, float64)) {
	yield(desc("sagabench_unfinished", "Sagas in the store that have not ended."), float64(s.Unfinished))
	yield(desc("sagabench_due", "Unfinished sagas that any coordinator may take over now."), float64(s.Due))
	yield(desc("sagabench_oldest_unfinished_seconds", "Age of the oldest unfinished saga; 0 without one."), s.OldestAge.Seconds())
}

// engine collects what the store counts itself. A count that it cannot know is
// absent.
type engine struct{ store store.CounterSource }

// Describe implements prometheus.Collector.
func (e engine) Describe(descs chan<- *prometheus.Desc) {
	e.each(store.Counters{}, func(d *prometheus.Desc, _ int64) { descs <- d })
}

// Collect implements prometheus.Collector.
func (e engine) Collect(metrics chan<- prometheus.Metric) {
	e.each(e.store.Counters(), func(d *prometheus.Desc, value int64) {
		if value >= 0 {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
		}
	})
}

func (engine) each(c store.Counters, yield func(*prometheus.Desc, int64)) {
	yield(desc("sagabench_store_round_trips_total", "Waits for the store's server, or commits of an embedded store."), c.RoundTrips)
	yield(desc("sagabench_store_fsyncs_total", "Fsyncs by the store; absent where it cannot know."), c.Fsyncs)
}

// pooled is a store whose calls share a number of connections: how many there may be,
// and for how long calls have waited for one, all added up.
type pooled interface {
	Connections() (most int, waited time.Duration)
}

// connections collects what calls of the store wait for before they are sent.
type connections struct{ store pooled }

// Describe implements prometheus.Collector.
func (c connections) Describe(descs chan<- *prometheus.Desc) {
	c.each(0, 0, func(d *prometheus.Desc, _ prometheus.ValueType, _ float64) { descs <- d })
}

// Collect implements prometheus.Collector.
func (c connections) Collect(metrics chan<- prometheus.Metric) {
	most, waited := c.store.Connections()
	c.each(most, waited, func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
		metrics <- prometheus.MustNewConstMetric(d, kind, value)
	})
}

func (connections) each(most int, waited time.Duration, yield func(*prometheus.Desc, prometheus.ValueType, float64)) {
	yield(desc("sagabench_store_connections_max", "Connections to the store's server that this process may have at once."),
		prometheus.GaugeValue, float64(most))
	yield(desc("sagabench_store_connection_wait_seconds_total", "Time that calls of the store waited for a connection, all added up."),
		prometheus.CounterValue, waited.Seconds())
}

func desc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
