package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

func (a *API) submit(c *gin.Context) { a.audit(c, ActionSubmit, a.accept(c)) }

// accept responds to a submit, and returns its gid.
func (a *API) accept(c *gin.Context) (gid string) {
	arrived := time.Now()
	var s submission
	err := a.decode(c, &s)
	var made *saga.Saga
	if err == nil {
		made, err = s.saga()
	}
	if err == nil && s.WaitResult {
		a.run(c, made, arrived)
		return s.GID
	}
	if err == nil {
		err = a.coordinator.Submit(c.Request.Context(), made)
	}
	if err != nil {
		fail(c, err)
	} else {
		succeed(c)
	}
	return s.GID
}

// errWaitEnds ends the wait for a saga before the client's own timeout does.
var errWaitEnds = errors.New("no end before its request_timeout")

// run responds when the saga has ended, or shortly before its client gives up: dtm's
// clients use request_timeout as their own timeout, too.
func (a *API) run(c *gin.Context, s *saga.Saga, arrived time.Time) {
	ctx := c.Request.Context()
	if s.RequestTimeout > 0 {
		spare := max(s.RequestTimeout/10, time.Second/2) // for the network
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, arrived.Add(s.RequestTimeout-spare), errWaitEnds)
		defer cancel()
	}
	ended, err := a.coordinator.Run(ctx, s)
	switch {
	case err == nil && ended.Status == store.StatusSucceeded:
		succeed(c)
	case err == nil:
		respond(c, http.StatusConflict, result{Result: resultFailure, Message: ended.Reason})
	case errors.Is(err, saga.ErrEndUnknown):
		respond(c, http.StatusInternalServerError, result{Message: err.Error()})
	case errors.Is(err, store.ErrNotFound): // it was submitted: 404 would deny that
		respond(c, http.StatusInternalServerError, result{Message: "the saga has ended, but how is not kept by the store"})
	case errors.Is(err, saga.ErrNotEnded):
		respond(c, http.StatusTooEarly, result{Result: resultOngoing, Message: err.Error()})
	default:
		fail(c, err)
	}
}

// prepare refuses sagas: clients prepare only transactions that they run themselves.
func (a *API) prepare(c *gin.Context) {
	var s struct {
		TransType string `json:"trans_type"`
	}
	err := a.decode(c, &s)
	if err == nil {
		err = checkType(s.TransType)
	}
	if err == nil {
		err = invalid("a saga is not prepared: submit it")
	}
	fail(c, err)
}
