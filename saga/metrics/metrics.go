// Package metrics exports to Prometheus what a coordinator and its store count.
//
// Make a [Metrics] before the coordinator, as it sets hooks of its configuration, and
// register its collector afterwards. The names of all metrics begin with sagabench_.
package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// Metrics holds the histograms and the attempts by outcome. All other metrics are read
// from the coordinator and the store during a scrape.
type Metrics struct {
	callDuration prometheus.Histogram
	batchChanges prometheus.Histogram
	attempts     [len(outcomes)]atomic.Int64
}

// outcomes are the labels of package saga's outcomes, which count from 1.
var outcomes = [...]string{"succeeded", "refused", "ongoing", "no answer"}

// Instrument sets cfg.Observe and cfg.Commit.Observe. Hooks that are set already are
// called as well.
func Instrument(cfg *saga.Config) *Metrics {
	m := &Metrics{
		callDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_store_call_duration_seconds",
			Help:    "Time the store took to write a batch of changes.",
			Buckets: LatencyBuckets(),
		}),
		batchChanges: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_store_batch_changes",
			Help:    "Changes per batch written to the store.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13), // to 4096
		}),
	}
	observeAttempt, observeBatch := cfg.Observe, cfg.Commit.Observe
	cfg.Observe = func(a saga.Attempt) {
		m.attempts[a.Outcome-machine.Succeeded].Add(1)
		if observeAttempt != nil {
			observeAttempt(a)
		}
	}
	cfg.Commit.Observe = func(changes int, took time.Duration) {
		m.callDuration.Observe(took.Seconds())
		m.batchChanges.Observe(float64(changes))
		if observeBatch != nil {
			observeBatch(changes, took)
		}
	}
	return m
}

// LatencyBuckets returns the bounds of the histograms of time, in seconds: from 50 µs
// to 13 s, each twice the one before.
func LatencyBuckets() []float64 { return prometheus.ExponentialBuckets(50e-6, 2, 19) }

// StatsTimeout bounds the call of Store.Stats during a scrape.
const StatsTimeout = time.Second

// Collector returns a collector for a coordinator, which was started with the instrumented
// configuration, and for its store. A metric that the store does not offer is absent.
//
// The number of unfinished sagas comes from stats; nil: each scrape calls Store.Stats.
func (m *Metrics) Collector(c *saga.Coordinator, s store.Store, stats func() (store.Stats, error)) prometheus.Collector {
	if stats == nil {
		stats = func() (store.Stats, error) {
			ctx, cancel := context.WithTimeout(context.Background(), StatsTimeout)
			defer cancel()
			return s.Stats(ctx)
		}
	}
	return &collector{metrics: m, coordinator: c, store: s, stats: stats}
}
