package server

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Starting answers on a server's port before there is a server: /livez says that the
// process lives, all else that it is not ready. Make it with NewStarting.
type Starting struct {
	listener *lent
	http     *http.Server
	served   chan struct{}
}

// NewStarting begins to answer on a listener from Listen. Stop must follow before the
// listener is used again.
func NewStarting(cfg Config, listener net.Listener) *Starting {
	if lowered, _, err := cfg.withinFiles(openFiles(), nil, slog.New(slog.DiscardHandler)); err == nil {
		cfg = lowered // New says so
	}
	s := &Starting{
		listener: &lent{TCPListener: listener.(*net.TCPListener)},
		http: &http.Server{
			Handler: http.HandlerFunc(starting), ReadTimeout: cfg.Read, WriteTimeout: cfg.Read + writeTime,
			MaxHeaderBytes: 16 << 10, ConnState: noteState, ErrorLog: log.New(io.Discard, "", 0),
		},
		served: make(chan struct{}),
	}
	s.http.SetKeepAlivesEnabled(false)
	serve := s.http.Serve
	if tlsConfig, err := cfg.TLS.Server(); err == nil { // Listen has checked what is set
		s.http.TLSConfig = tlsConfig
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	s.http.Protocols = new(http.Protocols)
	s.http.Protocols.SetHTTP1(true)
	go func() {
		defer close(s.served)
		_ = serve(newBounded(s.listener, cfg.MaxConns, cfg.perPeer())) // until Stop
	}()
	return s
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

// Stop ends it. The listener stays open: who connects meanwhile is answered by the
// server.
func (s *Starting) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.served
	_ = s.listener.SetDeadline(time.Time{})
}

// lent is a listener that closing ends for its user only.
type lent struct {
	*net.TCPListener
	closed atomic.Bool
}

// Accept implements net.Listener.
func (l *lent) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err != nil && l.closed.Load() { // a deadline, which net/http would take to pass
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close implements net.Listener: it ends Accept.
func (l *lent) Close() error {
	l.closed.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}
