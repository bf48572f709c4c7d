package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

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

func respond(c *gin.Context, status int, body any) { write(c, status, encode(body)) }

// encode returns the JSON of strings, numbers and times, which always have one.
func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return text
}

func write(c *gin.Context, status int, body []byte) {
	c.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // fails if the client has gone
}

func succeed(c *gin.Context) {
	write(c, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
}

var (
	// errTooLarge: the body is longer than MaxBodyBytes.
	errTooLarge = fmt.Errorf("body: more than %d bytes", MaxBodyBytes)
	// errDecoding: maxDecoding bytes of bodies are in memory.
	errDecoding = errors.New("body: too many large bodies at once")
)

// fail responds with an error of this package, of package saga or of package store.
func fail(c *gin.Context, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		respond(c, http.StatusRequestEntityTooLarge, result{Message: err.Error()})
	case errors.Is(err, saga.ErrBusy), errors.Is(err, errDecoding), errors.Is(err, inspect.ErrBusy):
		c.Header("Retry-After", "1")
		respond(c, http.StatusServiceUnavailable, result{Message: err.Error()})
	case errors.Is(err, store.ErrExists): // each store words it differently
		respond(c, http.StatusConflict, result{resultFailure, store.ErrExists.Error()})
	case errors.Is(err, saga.ErrEnded):
		respond(c, http.StatusConflict, result{resultFailure, err.Error()})
	case errors.Is(err, store.ErrNotFound):
		respond(c, http.StatusNotFound, result{Message: store.ErrNotFound.Error()})
	case errors.Is(err, store.ErrInvalid):
		respond(c, http.StatusBadRequest, result{Message: err.Error()})
	default:
		_ = c.Error(err) // for the server's log
		respond(c, http.StatusInternalServerError, result{Message: saga.RedactError(err)})
	}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", store.ErrInvalid, fmt.Errorf(format, args...))
}
