package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// probes are answered without a token, on reserved connections, and while the server stops.
var probes = map[string]bool{"/livez": true, "/readyz": true, "/healthz": true, "/api/ping": true}

// metricsPaths are answered on reserved connections too: they say for how long clients have
// been turned away.
var metricsPaths = map[string]bool{"/metrics": true, "/api/metrics": true}

// limitReserved is middleware. It refuses all but probes and metrics on a reserved
// connection, which it closes after the request. While the server drains it closes every
// connection after its request, so that clients connect to another server.
func (s *Server) limitReserved(c *gin.Context) {
	reserved := c.Request.Context().Value(reservedKey{}) != nil
	if reserved || s.draining.Load() {
		c.Header("Connection", "close")
	}
	if reserved { // otherwise net/http would wait for the rest of a body for Config.Read
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(minIdle))
	}
	if path := c.Request.URL.Path; reserved && !probes[path] && !metricsPaths[path] {
		busy(c, "all connections of this server are in use")
		c.Abort()
	}
}

// live serves /livez: the process answers, whatever the state of its store.
func (s *Server) live(c *gin.Context) { write(c, http.StatusOK, []byte(`{"message":"ok"}`)) }

// ready serves /readyz and /healthz: requests may be sent here. Its response does not say
// where the store is, since no token is needed.
func (s *Server) ready(c *gin.Context) {
	if s.draining.Load() {
		busy(c, stopping)
		return
	}
	if _, err := s.stats.get(); err != nil {
		respond(c, http.StatusServiceUnavailable, reply{Message: "the store does not answer; the server's log has the details"})
		return
	}
	s.live(c)
}
