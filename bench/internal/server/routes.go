package server

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"sagabench/store"
)

func (s *Server) routes(st store.Store) http.Handler {
	gin.SetMode(gin.ReleaseMode) // the only way: it is the process's, and decides what gin prints
	routes := gin.New()
	routes.RedirectTrailingSlash = false
	routes.Use(gin.CustomRecoveryWithWriter(nil, s.panicked))
	routes.NoRoute(notFound)

	routes.GET("/bench/saga", s.runSaga)
	routes.POST("/bench/saga", s.runSaga)
	routes.GET(actionPath, s.branches.action)
	routes.POST(actionPath, s.branches.action)
	routes.GET(compensatePath, s.branches.compensate)
	routes.POST(compensatePath, s.branches.compensate)
	routes.GET("/healthz", s.stats.health)
	routes.GET("/metrics", gin.WrapH(s.metrics.handler(s.coordinator, st, s.stats, &s.branches)))
	if s.cfg.Pprof {
		routes.GET("/debug/pprof/*name", gin.WrapH(profiles()))
	}
	return routes
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
