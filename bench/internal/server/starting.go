package server

import (
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
)

// Starting responds on a server's port while its store does not answer yet: /livez with
// 200, all else with 503. Make it with NewStarting.
type Starting struct {
	http   *http.Server
	served chan struct{}
}

// NewStarting begins to respond on a listener from Listen. Call Stop before New.
func NewStarting(cfg Config, listener net.Listener) (*Starting, error) {
	if lowered, _, err := cfg.fitOpenFiles(openFiles(), nil, slog.New(slog.DiscardHandler)); err == nil {
		cfg = lowered // New logs it
	}
	// A duplicate, since http.Server closes its listener. Both have the same queue of
	// connections, so none is lost between Stop and New.
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	duplicate, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	s := &Starting{served: make(chan struct{})}
	if s.http, err = cfg.httpServer(http.HandlerFunc(starting), log.New(io.Discard, "", 0)); err != nil {
		duplicate.Close()
		return nil, err
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.served)
		_ = serve(s.http, newLimitListener(duplicate, cfg.MaxConns, cfg.perPeer())) // until Stop
	}()
	return s, nil
}

func starting(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/livez" || r.URL.Path == "/api/ping" {
		_, _ = w.Write([]byte(`{"message":"ok"}`))
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"message":"the server is starting: its store does not answer yet"}`))
}

// Stop ends it. The listener stays open.
func (s *Starting) Stop() {
	closeHTTP(s.http)
	<-s.served
}
