package server

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Values of dtm_result, for a saga that has ended and for a branch.
const (
	resultSuccess = "SUCCESS"
	resultFailure = "FAILURE"
)

// reply is the JSON of a response.
type reply struct {
	Result  string `json:"dtm_result,omitempty"`
	GID     string `json:"gid,omitempty"`
	Message string `json:"message"`
}

func respond(c *gin.Context, status int, r reply) {
	body, err := json.Marshal(r)
	if err != nil { // impossible: strings always encode
		panic(err)
	}
	write(c, status, body)
}

// busy refuses a request that changed nothing and may be repeated.
func busy(c *gin.Context, why string) {
	c.Header("Retry-After", "1")
	respond(c, http.StatusServiceUnavailable, reply{Message: why})
}

func write(c *gin.Context, status int, body []byte) {
	c.Writer.Header().Set("Content-Type", "application/json")
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // fails if the client has gone
}

func notFound(c *gin.Context) {
	respond(c, http.StatusNotFound, reply{Message: "there is nothing at " + c.Request.Method + " " + c.Request.URL.Path})
}
