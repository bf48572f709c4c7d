package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
)

// Paths of the branch endpoints, and the parameter that makes one refuse.
const (
	actionPath     = "/bench/branch/action"
	compensatePath = "/bench/branch/compensate"
	refuse         = "refuse=true"
)

// branches are the endpoints that the bench's sagas call: they do nothing but
// count.
type branches struct {
	actions, compensations atomic.Int64
}

func (b *branches) action(c *gin.Context) {
	b.actions.Add(1)
	serveBranch(c)
}

func (b *branches) compensate(c *gin.Context) {
	b.compensations.Add(1)
	serveBranch(c)
}

func serveBranch(c *gin.Context) {
	// Read to its end: the connection could not be used again otherwise.
	n, err := io.Copy(io.Discard, io.LimitReader(c.Request.Body, saga.MaxPayloadBytes+1))
	switch {
	case err != nil:
		answer(c, http.StatusBadRequest, reply{Message: "reading the body: " + err.Error()})
	case n > saga.MaxPayloadBytes:
		answer(c, http.StatusRequestEntityTooLarge, reply{Message: "body: more than 1 MiB"})
	case refused(c.Request.URL.RawQuery):
		answer(c, http.StatusConflict, reply{Result: resultFailure, Message: "refused, as " + refuse + " asks"})
	default:
		write(c, http.StatusOK, []byte(`{"dtm_result":"`+resultSuccess+`"}`))
	}
}

func refused(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter == refuse {
			return true
		}
	}
	return false
}
