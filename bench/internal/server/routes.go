package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"sagabench/store"
)

func (s *Server) newRoutes(st store.Store) *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // the only way: it is the process's, and decides what gin prints
	routes := gin.New()
	routes.RedirectTrailingSlash = false
	routes.Use(gin.CustomRecoveryWithWriter(nil, s.panicked), s.logErrors, s.onlyProbes, s.guard.check)
	routes.NoRoute(notFound)

	gated := routes.Group("/", s.whileOpen)
	s.api.Register(gated)
	if s.bench != nil {
		s.bench.register(routes, gated)
	}
	s.ui.Register(routes)
	routes.Match(reading, "/", func(c *gin.Context) { c.Redirect(http.StatusFound, "/ui") })
	routes.Match(reading, "/livez", s.live)
	routes.Match(reading, "/readyz", s.ready)
	routes.Match(reading, "/healthz", s.ready)
	metrics := gin.WrapH(s.metricsHandler(st))
	routes.Match(reading, "/metrics", metrics)
	routes.Match(reading, "/api/metrics", metrics)
	if s.cfg.Pprof {
		routes.GET(profilePath+"*name", s.guard.admin, gin.WrapH(profiles()))
	}
	return routes
}

// reading are the methods of what changes nothing.
var reading = []string{http.MethodGet, http.MethodHead}

// stopping is what a server answers that was told to stop.
const stopping = "the server is stopping"

// reads change nothing: they are answered as long as the port is open.
var reads = map[string]bool{
	"/api/ping": true, "/api/dtmsvr/query": true, "/api/dtmsvr/all": true, "/api/dtmsvr/newGid": true, "/api/dtmsvr/version": true,
}

// whileOpen refuses other requests as soon as the server waits for the last ones to
// end.
func (s *Server) whileOpen(c *gin.Context) {
	if reads[c.FullPath()] {
		return
	}
	if !s.gate.TryRLock() {
		busy(c, stopping)
		c.Abort()
		return
	}
	defer s.gate.RUnlock()
	c.Next()
}

func (s *Server) panicked(c *gin.Context, value any) {
	s.log.Error("panic in a request", "method", c.Request.Method, "path", c.Request.URL.Path,
		"panic", fmt.Sprint(value), "stack", string(debug.Stack()))
	answer(c, http.StatusInternalServerError, reply{Message: "internal error; the server's log has the details"})
	c.Abort()
}

// logErrors logs why requests failed that were not at fault themselves: their
// answers do not say it. Of an outage one line in a while will do.
func (s *Server) logErrors(c *gin.Context) {
	c.Next()
	for _, err := range c.Errors {
		s.seldom.first(1, slog.LevelWarn, "a request failed", c.FullPath(), "method", c.Request.Method, "path", c.FullPath(), "error", err.Err)
	}
}

const profilePath = "/debug/pprof/"

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(profilePath, pprof.Index)
	mux.HandleFunc(profilePath+"cmdline", pprof.Cmdline)
	mux.HandleFunc(profilePath+"profile", pprof.Profile)
	mux.HandleFunc(profilePath+"symbol", pprof.Symbol)
	mux.HandleFunc(profilePath+"trace", pprof.Trace)
	return mux
}

// version is what this program was built as.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
