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
	gin.SetMode(gin.ReleaseMode) // of the process: gin has no other way to be quiet
	routes := gin.New()
	routes.RedirectTrailingSlash = false
	routes.Use(gin.CustomRecoveryWithWriter(nil, s.panicked), s.logErrors, s.limitReserved, s.auth.authenticate)
	routes.NoRoute(notFound)

	gated := routes.Group("/", s.refuseWhileStopping)
	s.api.Register(gated)
	if s.bench != nil {
		s.bench.register(routes, gated)
	}
	s.ui.Register(routes)
	routes.Match(safeMethods, "/", func(c *gin.Context) { c.Redirect(http.StatusFound, "/ui") })
	routes.Match(safeMethods, "/livez", s.live)
	routes.Match(safeMethods, "/readyz", s.ready)
	routes.Match(safeMethods, "/healthz", s.ready)
	metrics := gin.WrapH(s.metricsHandler(st))
	routes.Match(safeMethods, "/metrics", metrics)
	routes.Match(safeMethods, "/api/metrics", metrics)
	if s.cfg.Pprof {
		routes.GET(profilePath+"*name", s.auth.requireAdmin, gin.WrapH(profiles()))
	}
	return routes
}

// safeMethods change nothing.
var safeMethods = []string{http.MethodGet, http.MethodHead}

// stopping is the message of a server that was told to stop.
const stopping = "the server is stopping"

// readOnly paths are served until the port is closed.
var readOnly = map[string]bool{
	"/api/ping": true, "/api/dtmsvr/query": true, "/api/dtmsvr/all": true, "/api/dtmsvr/newGid": true, "/api/dtmsvr/version": true,
}

// refuseWhileStopping is middleware. It refuses requests that change something once the
// server waits for the last of them.
func (s *Server) refuseWhileStopping(c *gin.Context) {
	if readOnly[c.FullPath()] {
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

// panicked responds to a request whose handler panicked.
func (s *Server) panicked(c *gin.Context, value any) {
	s.log.Error("panic in a request", "method", c.Request.Method, "path", c.Request.URL.Path,
		"panic", fmt.Sprint(value), "stack", string(debug.Stack()))
	respond(c, http.StatusInternalServerError, reply{Message: "internal error; the server's log has the details"})
	c.Abort()
}

// logErrors is middleware. It logs the errors that responses leave out.
func (s *Server) logErrors(c *gin.Context) {
	c.Next()
	for _, err := range c.Errors {
		s.limited.log(slog.LevelWarn, "a request failed", c.FullPath(), "method", c.Request.Method, "path", c.FullPath(), "error", err.Err)
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

// version returns the version that this program was built as.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
