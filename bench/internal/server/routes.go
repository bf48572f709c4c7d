package server

import (
	"fmt"
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
	routes.Use(gin.CustomRecoveryWithWriter(nil, s.panicked), s.onlyProbes, s.guard.check)
	routes.NoRoute(notFound)

	gated := routes.Group("/", s.whileOpen)
	s.api.Register(gated)
	if s.bench != nil {
		s.bench.register(routes, gated)
	}
	s.ui.Register(routes)
	routes.GET("/", func(c *gin.Context) { c.Redirect(http.StatusFound, "/ui") })
	routes.GET("/livez", s.live)
	routes.GET("/readyz", s.ready)
	routes.GET("/healthz", s.ready)
	metrics := gin.WrapH(s.metricsHandler(st))
	routes.GET("/metrics", metrics)
	routes.GET("/api/metrics", metrics)
	if s.cfg.Pprof {
		routes.GET("/debug/pprof/*name", gin.WrapH(profiles()))
	}
	return routes
}

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

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// version is what this program was built as.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
