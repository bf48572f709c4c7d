package server

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// runSaga serves /bench/saga.
func (s *Server) runSaga(c *gin.Context) {
	// Fails as soon as the server waits for the last requests to end.
	if !s.gate.TryRLock() {
		answer(c, http.StatusServiceUnavailable, reply{Message: "the server is stopping"})
		return
	}
	defer s.gate.RUnlock()

	scenario, err := s.cfg.Scenario.with(c.Request.URL.RawQuery)
	if err != nil {
		answer(c, http.StatusBadRequest, reply{Message: err.Error()})
		return
	}
	sg := s.newSaga(scenario)
	began := time.Now()
	result, err := s.coordinator.Run(c.Request.Context(), sg)
	if err == nil {
		s.metrics.sagaDuration.Observe(time.Since(began).Seconds())
	}
	switch {
	case err == nil && result.Status == store.StatusSucceeded:
		write(c, http.StatusOK, succeeded(sg.GID))
	case err == nil:
		answer(c, http.StatusConflict, reply{Result: resultFailure, GID: sg.GID, Message: result.Reason})
	case errors.Is(err, store.ErrInvalid):
		answer(c, http.StatusBadRequest, reply{Message: err.Error()})
	default:
		answer(c, http.StatusServiceUnavailable, reply{GID: sg.GID, Message: err.Error()})
	}
}

// succeeded needs no escaping: that is what a gid's alphabet is for.
func succeeded(gid string) []byte {
	const before, after = `{"dtm_result":"` + resultSuccess + `","gid":"`, `"}`
	body := make([]byte, 0, len(before)+len(gid)+len(after))
	body = append(body, before...)
	body = append(body, gid...)
	return append(body, after...)
}

func (s *Server) newSaga(scenario Scenario) *saga.Saga {
	step := saga.Step{Payload: payload(scenario.Payload)}
	if scenario.Branches == BranchesHTTP {
		step.Action, step.Compensate = s.actionURL, s.compensateURL
	}
	steps := make([]saga.Step, scenario.Steps)
	for i := range steps {
		steps[i] = step
	}
	if scenario.Fail > 0 && rand.Float64() < scenario.Fail {
		steps[len(steps)-1].Action = s.refuseURL
	}
	return &saga.Saga{GID: saga.NewGID(), Steps: steps}
}
