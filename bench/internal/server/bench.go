package server

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
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
}

func newBench(c *saga.Coordinator, scenario Scenario, url string, token secret.Text) *bench {
	return &bench{
		coordinator: c,
		scenario:    scenario,
		urls:        BranchesOf(url, token),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "sagabench_saga_duration_seconds",
			Help:    "Time from a saga's submission to its end, of those that /bench/saga saw end.",
			Buckets: metrics.LatencyBuckets(),
		}),
	}
}

// register adds the endpoints. Those that make sagas are refused while the server stops.
// Branches are served until its sagas have ended.
func (b *bench) register(routes, submitting gin.IRouter) {
	submitting.GET("/bench/saga", b.runSaga)
	submitting.POST("/bench/saga", b.runSaga)
	routes.GET(actionPath, b.branches.action)
	routes.POST(actionPath, b.branches.action)
	routes.GET(compensatePath, b.branches.compensate)
	routes.POST(compensatePath, b.branches.compensate)
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
func (b *bench) runSaga(c *gin.Context) {
	scenario, err := b.scenario.with(c.Request.URL.RawQuery)
	if err != nil {
		respond(c, http.StatusBadRequest, reply{Message: err.Error()})
		return
	}
	sg := b.newSaga(scenario)
	began := time.Now()
	result, err := b.coordinator.Run(c.Request.Context(), sg)
	if err == nil {
		b.took.Observe(time.Since(began).Seconds())
	}
	switch {
	case err == nil && result.Status == store.StatusSucceeded:
		write(c, http.StatusOK, succeeded(sg.GID))
	case err == nil:
		respond(c, http.StatusConflict, reply{Result: resultFailure, GID: sg.GID, Message: result.Reason})
	case errors.Is(err, store.ErrInvalid):
		respond(c, http.StatusBadRequest, reply{Message: err.Error()})
	case errors.Is(err, saga.ErrBusy):
		busy(c, err.Error())
	case errors.Is(err, saga.ErrNotEnded): // not an error of the store
		respond(c, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: err.Error()})
	case errors.Is(err, errStopped):
		respond(c, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: errStopped.Error()})
	default:
		_ = c.Error(err)
		respond(c, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: saga.RedactError(err)})
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
