package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/outage"
	"sagabench/internal/testkit"
	"sagabench/store"
	"sagabench/store/memstore"
)

// scrape reads /metrics: the values by name and labels, as Prometheus writes
// them; of a histogram the count.
func (at *site) scrape() map[string]float64 {
	at.t.Helper()
	r := at.get("/metrics")
	require.Equal(at.t, http.StatusOK, r.status, r.body)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(r.body))
	require.NoError(at.t, err)
	values := map[string]float64{}
	for name, family := range families {
		require.NotEmpty(at.t, family.GetHelp(), name)
		for _, m := range family.Metric {
			key := name
			for _, label := range m.Label {
				key += "{" + label.GetName() + "=" + label.GetValue() + "}"
			}
			values[key] = value(m)
		}
	}
	return values
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	default:
		return float64(m.Histogram.GetSampleCount())
	}
}

func TestMetrics_CountWhatHappened(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s)
		for range 3 {
			require.Equal(t, http.StatusOK, at.get("/bench/saga?branches=http").status)
		}
		require.Equal(t, http.StatusConflict, at.get("/bench/saga?branches=http&fail=1").status)
		require.Equal(t, http.StatusBadRequest, at.get("/bench/saga?steps=0").status)

		got := at.scrape()
		for name, want := range map[string]float64{
			"sagabench_sagas_submitted_total":                    4,
			"sagabench_sagas_total{outcome=succeed}":             3,
			"sagabench_sagas_total{outcome=failed}":              1,
			"sagabench_sagas_in_flight":                          0,
			"sagabench_saga_duration_seconds":                    4,
			"sagabench_store_call_duration_seconds":              3*3 + 5, // one saga at a time: a batch a change
			"sagabench_store_batch_changes":                      3*3 + 5,
			"sagabench_store_errors_total":                       0,
			"sagabench_sagas_recovered_total":                    0,
			"sagabench_sagas_put_off_total":                      0,
			"sagabench_sagas_lost_total":                         0,
			"sagabench_store_lost_writes_total":                  0,
			"sagabench_compensations_refused_total":              0,
			"sagabench_requests_refused_total":                   0,
			"sagabench_sagas_refused_total":                      0,
			"sagabench_branch_attempts_total{outcome=succeeded}": 3*2 + 1 + 2,
			"sagabench_branch_attempts_total{outcome=refused}":   1,
			"sagabench_branch_attempts_total{outcome=ongoing}":   0,
			"sagabench_branch_attempts_total{outcome=no answer}": 0,
			"sagabench_connections_kept_out_seconds_total":       0,
			"sagabench_unfinished":                               0,
			"sagabench_due":                                      0,
			"sagabench_oldest_unfinished_seconds":                0,
			"sagabench_branch_calls_total{op=action}":            3*2 + 2,
			"sagabench_branch_calls_total{op=compensate}":        2,
		} {
			require.Contains(t, got, name)
			require.Equal(t, want, got[name], name)
		}
		require.GreaterOrEqual(t, got["sagabench_store_round_trips_total"], 14.0)
		fsyncs, known := got["sagabench_store_fsyncs_total"]
		require.Equal(t, s.(store.CounterSource).Counters().Fsyncs >= 0, known)
		require.True(t, !known || fsyncs >= 14)
		_, shared := s.(store.ConnectionPool)
		require.Equal(t, shared, got["sagabench_store_connections_max"] >= 2)
		waited, known := got["sagabench_store_connection_wait_seconds_total"]
		require.Equal(t, shared, known)
		require.GreaterOrEqual(t, waited, 0.0)
		require.NotZero(t, got["go_goroutines"])
		require.Contains(t, got, "process_cpu_seconds_total")
	})
}

func TestMetrics_SayWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	for _, err := range s.Apply(t.Context(), []store.Change{
		&store.Create{GID: "later", Body: []byte(`{}`), Steps: 1, Owner: "other", Due: time.Hour},
	}) {
		require.NoError(t, err)
	}
	got := start(t, s).scrape()
	require.EqualValues(t, 1, got["sagabench_unfinished"])
	require.EqualValues(t, 0, got["sagabench_due"])
	require.Contains(t, got, "sagabench_oldest_unfinished_seconds")
}

// plain hides what a store can do beside the contract.
type plain struct{ store.Store }

func TestMetrics_LeaveOutWhatTheStoreCannotSay(t *testing.T) {
	t.Parallel()
	got := start(t, plain{testkit.OpenPebble(t)}).scrape()
	require.NotContains(t, got, "sagabench_store_round_trips_total")
	require.NotContains(t, got, "sagabench_store_fsyncs_total")
	require.Contains(t, got, "sagabench_unfinished")
}

func TestServer_SaysWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	at := start(t, testkit.OpenRedis(t, redis), func(c *Config, _ *Deps) { c.MaxWait = time.Hour })
	require.Equal(t, http.StatusOK, at.get("/healthz").status)
	require.Equal(t, http.StatusOK, at.get("/bench/saga").status)

	require.NoError(t, redis.Kill())
	r := at.get("/bench/saga")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Contains(t, r.reply(t).Message, "the store did not confirm the saga")
	require.NotContains(t, r.body, redis.Addr())
	require.NotEmpty(t, r.reply(t).GID)
	require.NotContains(t, at.eventually("/healthz", http.StatusServiceUnavailable).body, redis.Addr())
	require.Contains(t, at.log.String(), redis.Addr())
	require.NotContains(t, at.scrape(), "sagabench_unfinished")

	require.NoError(t, redis.Restart(t.Context()))
	at.eventually("/healthz", http.StatusOK)
	r = at.get("/bench/saga")
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Contains(t, at.scrape(), "sagabench_unfinished")
}

// asked counts the calls of Stats.
type asked struct {
	store.Store
	calls atomic.Int64
	err   error
}

func (a *asked) Stats(context.Context) (store.Stats, error) {
	return store.Stats{Unfinished: a.calls.Add(1)}, a.err
}

func TestStats_AsksTheStoreOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stats{store: &asked{Store: memstore.New(0)}, outage: outage.Log{Logger: slog.New(slog.DiscardHandler)}}
		for second := range int64(3) {
			for range 100 {
				got, err := s.get()
				require.NoError(t, err)
				require.Equal(t, second+1, got.Unfinished)
			}
			time.Sleep(statsTTL)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		away := &asked{Store: memstore.New(0), err: errors.New("away")}
		s := &stats{store: away, outage: outage.Log{Logger: slog.New(slog.DiscardHandler)}}
		for range 100 {
			_, err := s.get()
			require.ErrorIs(t, err, away.err)
		}
		require.EqualValues(t, 1, away.calls.Load(), "a failure is kept too")
	})
}

// Whoever operates a server finds every metric of ours in the documentation.
func TestMetrics_AreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	for name := range start(t, testkit.OpenPebble(t)).scrape() {
		name, _, _ = strings.Cut(name, "{")
		if strings.HasPrefix(name, "sagabench_") {
			require.Contains(t, string(text), "`"+name+"`")
		}
	}
}
