package server

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sagabench/internal/secret"
	"sagabench/saga"
	"sagabench/saga/metrics"
	"sagabench/store"
)

// bench serves the bench's endpoints.
type bench struct {
	coordinator *saga.Coordinator
	scenario    Scenario
	branches    branches
	took        prometheus.Histogram
	urls        Branches
	failed      func(*http.Request, error) // logs an error that the response leaves out
}

func newBench(c *saga.Coordinator, scenario Scenario, url string, token secret.Text, failed func(*http.Request, error)) *bench {
	return &bench{
		coordinator: c,
		scenario:    scenario,
		urls:        BranchesOf(url, token),
		failed:      failed,
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_saga_duration_seconds",
			Help:    "Time from a saga's submission to its end, of those that /bench/saga saw end.",
			Buckets: metrics.LatencyBuckets(),
		}),
	}
}

// register adds the endpoints. Those that make sagas are refused while the server stops.
// Branches are served until its sagas have ended.
func (b *bench) register(handle, gated handleFunc) {
	for _, method := range []string{"GET ", "POST "} {
		gated(method+"/bench/saga", b.runSaga)
		handle(method+actionPath, b.branches.action)
		handle(method+compensatePath, b.branches.compensate)
	}
}

func (b *bench) collectors() []prometheus.Collector {
	calls := func(op string, read func() int64) prometheus.Collector {
		return counter("sagabench_branch_calls_total", "Calls that this server's branch endpoints got, by op: action or compensate.",
			prometheus.Labels{"op": op}, read)
	}
	return []prometheus.Collector{
		b.took, calls("action", b.branches.actions.Load), calls("compensate", b.branches.compensations.Load),
	}
}

// runSaga serves /bench/saga.
func (b *bench) runSaga(w http.ResponseWriter, r *http.Request) {
	scenario, err := b.scenario.with(r.URL.RawQuery)
	if err != nil {
		respond(w, http.StatusBadRequest, reply{Message: err.Error()})
		return
	}
	sg := b.newSaga(scenario)
	began := time.Now()
	result, err := b.coordinator.Run(r.Context(), sg)
	if err == nil {
		b.took.Observe(time.Since(began).Seconds())
	}
	switch {
	case err == nil && result.Status == store.StatusSucceeded:
		write(w, http.StatusOK, succeeded(sg.GID))
	case err == nil:
		respond(w, http.StatusConflict, reply{Result: resultFailure, GID: sg.GID, Message: result.Reason})
	case errors.Is(err, store.ErrInvalid):
		respond(w, http.StatusBadRequest, reply{Message: err.Error()})
	case errors.Is(err, saga.ErrBusy):
		busy(w, err.Error())
	case errors.Is(err, saga.ErrNotEnded): // not an error of the store
		respond(w, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: err.Error()})
	case errors.Is(err, errStopped):
		respond(w, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: errStopped.Error()})
	default:
		b.failed(r, err)
		respond(w, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: saga.RedactError(err)})
	}
}

// succeeded returns a response without encoding/json: a gid needs no escaping.
func succeeded(gid string) []byte {
	const before, after = `{"dtm_result":"` + resultSuccess + `","gid":"`, `"}`
	body := make([]byte, 0, len(before)+len(gid)+len(after))
	body = append(body, before...)
	body = append(body, gid...)
	return append(body, after...)
}

func (b *bench) newSaga(scenario Scenario) *saga.Saga {
	refused := scenario.Fail > 0 && rand.Float64() < scenario.Fail
	return &saga.Saga{GID: saga.NewGID(), Steps: scenario.SagaSteps(b.urls, refused)}
}
