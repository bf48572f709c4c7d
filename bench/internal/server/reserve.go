package server

import (
	"errors"
	"net/http"
	"time"

	"sagabench/store"
)

// probes are answered without a token, on reserved connections, and while the server stops.
var probes = map[string]bool{"/livez": true, "/readyz": true, "/healthz": true, "/api/ping": true}

// metricsPaths are answered on reserved connections too: they say for how long clients have
// been turned away.
var metricsPaths = map[string]bool{"/metrics": true, "/api/metrics": true}

// limitReserved reports whether a request may proceed. Otherwise it has responded. It
// refuses all but probes and metrics on a reserved connection, which it closes after the
// request. While the server drains it closes every connection after its request, so that
// clients connect to another server.
func (s *Server) limitReserved(w http.ResponseWriter, r *http.Request) bool {
	reserved := r.Context().Value(reservedKey{}) != nil
	if reserved || s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	if reserved { // otherwise net/http would wait for the rest of a body for Config.Read
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(minIdle))
	}
	if path := r.URL.Path; reserved && !probes[path] && !metricsPaths[path] {
		busy(w, "all connections of this server are in use")
		return false
	}
	return true
}

// live serves /livez: the process answers, whatever the state of its store.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, []byte(`{"message":"ok"}`))
}

// ready serves /readyz and /healthz: requests may be sent here. Its response does not say
// where the store is, since no token is needed.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		busy(w, stopping)
		return
	}
	// A server of several that is lost holds up its own sagas, on every host.
	if _, err := s.stats.get(); err != nil && !errors.Is(err, store.ErrPartial) {
		respond(w, http.StatusServiceUnavailable, reply{Message: "the store does not answer; the server's log has the details"})
		return
	}
	s.live(w, r)
}
