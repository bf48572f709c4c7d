package metrics_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/metrics"
	"sagabench/store/pebblestore"
)

// A program that embeds the coordinator registers its metrics beside its own. Serve the
// registry with package promhttp.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "metrics-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	storeConfig := pebblestore.DefaultConfig()
	storeConfig.Dir = dir
	store, err := pebblestore.Open(ctx, storeConfig)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	cfg := saga.DefaultConfig()
	m := metrics.Instrument(&cfg) // before the coordinator is started
	coordinator, err := saga.New(store, branch.NewFuncs(nil), cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close(ctx)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collector(coordinator, store, nil))

	// A step without URLs succeeds without a call.
	if _, err := coordinator.Run(ctx, &saga.Saga{GID: saga.NewGID(), Steps: make([]saga.Step, 2)}); err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "sagabench_sagas_total" {
			for _, m := range family.GetMetric() {
				fmt.Println(family.GetName(), m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// sagabench_sagas_total failed 0
	// sagabench_sagas_total succeed 1
}
