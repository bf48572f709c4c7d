package server

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
)

// What dtm_result says of a saga that has ended, and of a branch.
const (
	resultSuccess = "SUCCESS"
	resultFailure = "FAILURE"
)

// reply is every JSON answer that is not worth writing by hand.
type reply struct {
	Result  string `json:"dtm_result,omitempty"`
	GID     string `json:"gid,omitempty"`
	Message string `json:"message"`
}

func answer(c *gin.Context, status int, r reply) {
	body, err := json.Marshal(r)
	if err != nil { // strings alone always encode
		panic(err)
	}
	write(c, status, body)
}

// busy answers a request of which nothing was done, and that may come again.
func busy(c *gin.Context, why string) {
	c.Header("Retry-After", "1")
	answer(c, http.StatusServiceUnavailable, reply{Message: why})
}

func write(c *gin.Context, status int, body []byte) {
	c.Writer.Header().Set("Content-Type", "application/json")
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // the client may be gone; nobody is left to tell
}

func notFound(c *gin.Context) {
	answer(c, http.StatusNotFound, reply{Message: "there is nothing at " + c.Request.Method + " " + c.Request.URL.Path})
}
