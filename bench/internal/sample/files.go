package sample

import (
	"errors"
	"io"
	"os"
	"time"
)

// metricSagas counts the sagas that ended, by the app servers' own count.
const metricSagas = "sagabench_sagas_total"

// FromFiles returns what app servers used between two readings of their /metrics, which were
// saved to files, one per server. The sagas that ended between them are nil if the servers do
// not count them. elapsed is the time in which they worked.
func FromFiles(before, after []string, elapsed time.Duration) (u Usage, sagas *float64, err error) {
	open := func(path string) (io.ReadCloser, error) { return os.Open(path) }
	b, errB := readMetrics(before, open)
	a, errA := readMetrics(after, open)
	if err := errors.Join(errB, errA); err != nil {
		return u, nil, err
	}
	u.Elapsed = elapsed
	a.addTo(&u, b, len(after), elapsed)
	return u, a.since(b, metricSagas), nil
}
