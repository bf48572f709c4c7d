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

func (a *API) submit(c *gin.Context) { a.audited(c, ActionSubmit, a.accept(c)) }

// accept answers a submit, and returns its gid.
func (a *API) accept(c *gin.Context) (gid string) {
	arrived := time.Now()
	var s submission
	if err := a.decode(c, &s); err != nil {
		fail(c, err)
		return s.GID
	}
	gid = s.GID
	made, err := s.saga()
	switch {
	case err != nil:
		fail(c, err)
	case s.WaitResult:
		a.run(c, made, arrived)
	default:
		if err := a.coordinator.Submit(c.Request.Context(), made); err != nil {
			fail(c, err)
			return gid
		}
		succeed(c)
	}
	return gid
}

// errWaitEnds is why the wait for a saga's end is over while its client still waits.
var errWaitEnds = errors.New("no end before its request_timeout")

// run answers when the saga has ended, or before its submitter waits no longer:
// dtm's clients take request_timeout for their own timeout, too.
func (a *API) run(c *gin.Context, s *saga.Saga, arrived time.Time) {
	ctx := c.Request.Context()
	if s.RequestTimeout > 0 {
		spare := max(s.RequestTimeout/10, time.Second/2) // for the way of request and answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, arrived.Add(s.RequestTimeout-spare), errWaitEnds)
		defer cancel()
	}
	ended, err := a.coordinator.Run(ctx, s)
	switch {
	case err == nil && ended.Status == store.StatusSucceeded:
		succeed(c)
	case err == nil:
		answer(c, http.StatusConflict, result{Result: resultFailure, Message: ended.Reason})
	case errors.Is(err, saga.ErrEndUnknown):
		answer(c, http.StatusInternalServerError, result{Message: err.Error()})
	case errors.Is(err, store.ErrNotFound):
		// Not of this request: it is there, or was when it ended.
		answer(c, http.StatusInternalServerError, result{Message: "the saga has ended, but how is not kept by the store"})
	case errors.Is(err, saga.ErrNotEnded):
		answer(c, http.StatusTooEarly, result{Result: resultOngoing, Message: err.Error()})
	default:
		fail(c, err)
	}
}

// prepare is the first of two calls by clients that run a transaction
// themselves. Sagas are run by the coordinator, so no client prepares them.
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
