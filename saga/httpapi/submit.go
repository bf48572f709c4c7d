package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sagabench/saga"
	"sagabench/store"
)

func (a *API) submit(w http.ResponseWriter, r *http.Request) {
	gid, status := a.accept(w, r)
	a.audit(r, ActionSubmit, gid, status)
}

// accept responds to a submit, and returns its gid and the status.
func (a *API) accept(w http.ResponseWriter, r *http.Request) (gid string, status int) {
	arrived := time.Now()
	var s submission
	err := a.decode(r, &s)
	var made *saga.Saga
	if err == nil {
		made, err = s.saga()
	}
	if err == nil && s.WaitResult {
		return s.GID, a.run(w, r, made, arrived)
	}
	if err == nil {
		err = a.coordinator.Submit(r.Context(), made)
	}
	return s.GID, a.finish(w, r, err)
}

// errWaitEnds ends the wait for a saga before the client's own timeout does.
var errWaitEnds = errors.New("no end before its request_timeout")

// run responds when the saga has ended, or shortly before its client gives up: dtm's
// clients use request_timeout as their own timeout, too. It returns the status.
func (a *API) run(w http.ResponseWriter, r *http.Request, s *saga.Saga, arrived time.Time) int {
	ctx := r.Context()
	if s.RequestTimeout > 0 {
		spare := max(s.RequestTimeout/10, time.Second/2) // for the network
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, arrived.Add(s.RequestTimeout-spare), errWaitEnds)
		defer cancel()
	}
	ended, err := a.coordinator.Run(ctx, s)
	switch {
	case err == nil && ended.Status == store.StatusSucceeded:
		return succeed(w)
	case err == nil:
		return respond(w, http.StatusConflict, result{Result: resultFailure, Message: ended.Reason})
	case errors.Is(err, saga.ErrEndUnknown):
		return respond(w, http.StatusInternalServerError, result{Message: err.Error()})
	case errors.Is(err, store.ErrNotFound): // it was submitted: 404 would deny that
		return respond(w, http.StatusInternalServerError, result{Message: "the saga has ended, but how is not kept by the store"})
	case errors.Is(err, saga.ErrNotEnded):
		return respond(w, http.StatusTooEarly, result{Result: resultOngoing, Message: err.Error()})
	default:
		return a.fail(w, r, err)
	}
}

// prepare refuses sagas: clients prepare only transactions that they run themselves.
func (a *API) prepare(w http.ResponseWriter, r *http.Request) {
	var s struct {
		TransType string `json:"trans_type"`
	}
	err := a.decode(r, &s)
	if err == nil {
		err = checkType(s.TransType)
	}
	if err == nil {
		err = invalid("a saga is not prepared: submit it")
	}
	a.fail(w, r, err)
}
