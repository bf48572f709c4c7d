package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/store"
)

// What dtm_result says. Clients look for these words anywhere in a body.
const (
	resultSuccess = "SUCCESS"
	resultFailure = "FAILURE"
	resultOngoing = "ONGOING"
)

// result is the answer of what does something.
type result struct {
	Result  string `json:"dtm_result,omitempty"`
	Message string `json:"message,omitempty"`
}

func answer(c *gin.Context, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // strings, numbers and times always encode
		panic(err)
	}
	write(c, status, text)
}

func write(c *gin.Context, status int, body []byte) {
	c.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // the client may be gone; nobody is left to tell
}

func succeed(c *gin.Context) {
	write(c, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
}

// errTooLarge: the body is longer than MaxBodyBytes.
var errTooLarge = fmt.Errorf("body: more than %d bytes", MaxBodyBytes)

// errDecoding: maxDecoding bytes of bodies are in memory.
var errDecoding = errors.New("body: too many large bodies at once")

// fail answers with an error of this package, of package saga or of package store.
func fail(c *gin.Context, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		answer(c, http.StatusRequestEntityTooLarge, result{Message: err.Error()})
	case errors.Is(err, saga.ErrBusy), errors.Is(err, errDecoding), errors.Is(err, errReading):
		busy(c, err)
	case errors.Is(err, store.ErrExists): // stores say it in words of their own
		answer(c, http.StatusConflict, result{resultFailure, store.ErrExists.Error()})
	case errors.Is(err, saga.ErrEnded):
		answer(c, http.StatusConflict, result{resultFailure, err.Error()})
	case errors.Is(err, store.ErrNotFound):
		answer(c, http.StatusNotFound, result{Message: store.ErrNotFound.Error()})
	case errors.Is(err, store.ErrInvalid):
		answer(c, http.StatusBadRequest, result{Message: err.Error()})
	default:
		_ = c.Error(err) // for the log of whoever mounts the API
		answer(c, http.StatusInternalServerError, result{Message: saga.RedactError(err)})
	}
}

// busy answers a request of which nothing was done, and that may come again.
func busy(c *gin.Context, err error) {
	c.Header("Retry-After", "1")
	answer(c, http.StatusServiceUnavailable, result{Message: err.Error()})
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", store.ErrInvalid, fmt.Errorf(format, args...))
}
