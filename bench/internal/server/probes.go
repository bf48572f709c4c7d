package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// probes are the paths that always answer: without a token, while all connections are
// in use, and while the server drains.
var probes = map[string]bool{"/livez": true, "/readyz": true, "/healthz": true, "/api/ping": true}

// metricsPaths are answered on connections of the reserve too: they say how long clients
// have been turned away.
var metricsPaths = map[string]bool{"/metrics": true, "/api/metrics": true}

// onlyProbes turns other requests away from connections of the reserve, and ends such
// a connection after its request. While the server drains, clients are told to connect
// anew, which leads them to another one.
func (s *Server) onlyProbes(c *gin.Context) {
	reserve := c.Request.Context().Value(reserveKey{}) != nil
	if reserve || s.draining.Load() {
		c.Header("Connection", "close")
	}
	if reserve { // net/http waits for the rest of a body, and would do so for all of Config.Read
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(minIdle))
	}
	if path := c.Request.URL.Path; reserve && !probes[path] && !metricsPaths[path] {
		busy(c, "all connections of this server are in use")
		c.Abort()
	}
}

// live serves /livez: the process answers, however its store and its sagas are.
func (s *Server) live(c *gin.Context) { write(c, http.StatusOK, []byte(`{"message":"ok"}`)) }

// ready serves /readyz and /healthz: requests may be sent here.
func (s *Server) ready(c *gin.Context) {
	if s.draining.Load() {
		busy(c, stopping)
		return
	}
	s.stats.health(c)
}
