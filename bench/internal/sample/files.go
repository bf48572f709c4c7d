package sample

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sagabench/bench/internal/result"
)

// metricSagas counts the sagas that ended, by the app servers' own count.
const metricSagas = "sagabench_sagas_total"

// FromFiles returns what app servers used between two readings of their /metrics, which were
// saved to files, one per server. The sagas that ended between them are nil if the servers do
// not count them. elapsed is the time in which they worked.
func FromFiles(before, after []string, elapsed time.Duration) (u Usage, sagas *float64, err error) {
	b, errB := readFiles(before)
	a, errA := readFiles(after)
	if err := errors.Join(errB, errA); err != nil {
		return u, nil, err
	}
	u.Elapsed = elapsed
	perS := func(x *float64) *float64 { return perSecond(x, elapsed) }
	cpu := a.since(b, metricCPU)
	u.Total = result.Cost{
		AppCPUUS: times(cpu, microseconds), StoreRoundTrips: a.since(b, metricRoundTrips), StoreFsyncs: a.since(b, metricFsyncs),
	}
	u.Resources = result.Resources{
		AppCores: perS(cpu), AppCoresUsable: cmp.Or(a.value(metricCores), a.value(metricGoCores)), StoreFsyncsPerS: perS(u.Total.StoreFsyncs),
		StoreCallsInFlight: perS(a.since(b, metricCalls+"_sum")), StoreConns: a.value(metricConns),
		StoreConnWaits: perS(a.since(b, metricConnWaits)), AppAcceptWait: perS(a.since(b, metricAcceptWait)),
	}
	return u, a.since(b, metricSagas), nil
}

func readFiles(paths []string) (metrics, error) {
	sum, servers := metrics{}, map[string]int{}
	for _, path := range paths {
		families, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("read metrics of %s: %w", path, err)
		}
		for name, x := range sums(families) {
			sum[name] += x
			servers[name]++
		}
	}
	maps.DeleteFunc(sum, func(name string, _ float64) bool { return servers[name] < len(paths) })
	return sum, nil
}

func readFile(path string) (map[string]*dto.MetricFamily, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(f)
}
