package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"path"
	"runtime/debug"
	"strings"

	"sagabench/store"
)

// serveHTTP serves every request.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recoverPanic(w, r)
	switch {
	case !s.limitReserved(w, r), !s.auth.authenticate(w, r): // they have responded
	case unclean(r.URL.Path), r.Method == http.MethodHead && !allowsHead(r.URL.Path):
		notFound(w, r)
	default:
		s.routes.ServeHTTP(w, r)
	}
}

// handleFunc adds a route, as http.ServeMux's HandleFunc does.
type handleFunc = func(pattern string, handler func(http.ResponseWriter, *http.Request))

// addRoutes passes each route to handle.
func (s *Server) addRoutes(handle handleFunc, st store.Store) {
	gated := func(pattern string, handler func(http.ResponseWriter, *http.Request)) {
		handle(pattern, s.refuseWhileStopping(handler))
	}
	handle("/", notFound)
	s.api.Register(gated)
	if s.bench != nil {
		s.bench.register(handle, gated)
	}
	s.ui.Register(handle)
	handle("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ui", http.StatusFound) })
	handle("GET /livez", s.live)
	handle("GET /readyz", s.ready)
	handle("GET /healthz", s.ready)
	metrics := s.metricsHandler(st).ServeHTTP
	handle("GET /metrics", metrics)
	handle("GET /api/metrics", metrics)
	if s.cfg.Pprof {
		handle("GET "+profilePath, s.auth.requireAdmin(profiles().ServeHTTP))
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

// unclean reports whether http.ServeMux would redirect to another path, or refuse this one.
func unclean(p string) bool {
	clean := path.Clean("/" + p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return p != clean
}

// allowsHead reports whether the path's handler of GET, which http.ServeMux also runs for
// HEAD, changes nothing.
func allowsHead(path string) bool {
	return probes[path] || metricsPaths[path] || path == "/" || onPage(path)
}

// safeMethods change nothing.
var safeMethods = []string{http.MethodGet, http.MethodHead}

// stopping is the message of a server that was told to stop.
const stopping = "the server is stopping"

// readOnly paths are served until the port is closed.
var readOnly = map[string]bool{
	"/api/ping": true, "/api/dtmsvr/query": true, "/api/dtmsvr/all": true, "/api/dtmsvr/newGid": true, "/api/dtmsvr/version": true,
}

// refuseWhileStopping returns a handler that refuses requests that change something once
// the server waits for the last of them.
func (s *Server) refuseWhileStopping(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !readOnly[r.URL.Path] {
			if !s.gate.TryRLock() {
				busy(w, stopping)
				return
			}
			defer s.gate.RUnlock()
		}
		next(w, r)
	}
}

// recoverPanic responds to a request whose handler panicked.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	if value := recover(); value != nil {
		s.log.Error("panic in a request", "method", r.Method, "path", r.URL.Path,
			"panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		respond(w, http.StatusInternalServerError, reply{Message: "internal error; the server's log has the details"})
	}
}

// failed logs an error that the response leaves out.
func (s *Server) failed(r *http.Request, err error) {
	_, path, _ := strings.Cut(r.Pattern, " ")
	s.limited.log(slog.LevelWarn, "a request failed", path, "method", r.Method, "path", path, "error", err)
}

// version returns the version that this program was built as.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
