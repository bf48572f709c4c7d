package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
)

// Values of dtm_result. Clients look for these words anywhere in a body.
const (
	resultSuccess = "SUCCESS"
	resultFailure = "FAILURE"
	resultOngoing = "ONGOING"
)

// result is the response to a request that changes something.
type result struct {
	Result  string `json:"dtm_result,omitempty"`
	Message string `json:"message,omitempty"`
}

// respond writes a response of JSON, and returns its status.
func respond(w http.ResponseWriter, status int, body any) int {
	return write(w, status, encode(body))
}

// encode returns the JSON of strings, numbers and times, which always have one.
func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return text
}

func write(w http.ResponseWriter, status int, body []byte) int {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone
	return status
}

func succeed(w http.ResponseWriter) int {
	return write(w, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
}

var (
	// errTooLarge: the body is longer than MaxBodyBytes.
	errTooLarge = fmt.Errorf("body: more than %d bytes", MaxBodyBytes)
	// errDecoding: maxDecoding bytes of bodies are in memory.
	errDecoding = errors.New("body: too many large bodies at once")
)

// finish responds to a request that changed something, or failed with err, and returns the
// status.
func (a *API) finish(w http.ResponseWriter, r *http.Request, err error) int {
	if err != nil {
		return a.fail(w, r, err)
	}
	return succeed(w)
}

// fail responds with an error of this package, of package saga or of package store, and
// returns the status.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) int {
	switch {
	case errors.Is(err, errTooLarge):
		return respond(w, http.StatusRequestEntityTooLarge, result{Message: err.Error()})
	case errors.Is(err, saga.ErrBusy), errors.Is(err, errDecoding), errors.Is(err, inspect.ErrBusy):
		w.Header().Set("Retry-After", "1")
		return respond(w, http.StatusServiceUnavailable, result{Message: err.Error()})
	case errors.Is(err, store.ErrExists): // each store words it differently
		return respond(w, http.StatusConflict, result{resultFailure, store.ErrExists.Error()})
	case errors.Is(err, saga.ErrEnded):
		return respond(w, http.StatusConflict, result{resultFailure, err.Error()})
	case errors.Is(err, store.ErrNotFound):
		return respond(w, http.StatusNotFound, result{Message: store.ErrNotFound.Error()})
	case errors.Is(err, store.ErrInvalid):
		return respond(w, http.StatusBadRequest, result{Message: err.Error()})
	default:
		a.cfg.Failed(r, err)
		return respond(w, http.StatusInternalServerError, result{Message: saga.RedactError(err)})
	}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", store.ErrInvalid, fmt.Errorf(format, args...))
}
