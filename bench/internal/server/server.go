package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sagabench/internal/outage"
	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/httpapi"
	"sagabench/saga/metrics"
	"sagabench/saga/webui"
	"sagabench/store"
)

// Deps are the objects that a server uses.
type Deps struct {
	Listener net.Listener // from Listen; Run closes it
	Store    store.Store  // Run leaves it open
	Saga     saga.Config  // its Observe and MaxWait are the server's to set
	Logger   *slog.Logger // nil: slog.Default; the coordinator's too, unless Saga has one
}

// Server is a coordinator behind HTTP. Make it with New.
type Server struct {
	cfg         Config
	listener    *limitListener
	log         *slog.Logger
	limited     *limitedLog // for messages that clients can cause
	caller      *branch.HTTP
	coordinator *saga.Coordinator
	stats       *stats
	metrics     *metrics.Metrics
	auth        *auth
	api         *httpapi.API
	ui          *webui.UI
	bench       *bench // nil without the bench's endpoints
	routes      *http.ServeMux
	http        *http.Server
	url         string

	draining atomic.Bool // told to stop, so not ready

	gate   sync.RWMutex            // requests that change something hold it for reading, stop for writing
	cutOff context.CancelCauseFunc // ends every request
}

// errStopped ends requests that are not answered within the grace.
var errStopped = errors.New("the server has stopped")

// writeTime is how long a client may take to read a response.
const writeTime = 10 * time.Second

// New returns a server and starts its coordinator, which recovers due sagas from now on.
// Call Run to serve and to stop it. The error wraps store.ErrInvalid and names the setting.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	logger := cmp.Or(deps.Logger, slog.Default())
	cfg, branchConns, err := cfg.fitOpenFiles(openFiles(), deps.Store, logger)
	if err != nil {
		return nil, err
	}
	addr := reachable(deps.Listener)
	s := &Server{
		cfg:      cfg,
		listener: newLimitListener(deps.Listener, cfg.MaxConns, cfg.perPeer()),
		log:      logger,
		routes:   http.NewServeMux(),
		url:      cfg.scheme() + "://" + addr.String(),
	}
	if warning := ClearText(cfg, deps.Listener); warning != "" {
		s.log.Warn(warning)
	}
	s.limited = newLimitedLog(s.log)
	s.auth = newAuth(cfg, s.limited)
	s.stats = &stats{store: deps.Store, outage: outage.Log{
		Logger: s.log, Failed: "the store does not answer", Recovered: "the store answers again",
	}}

	allow := slices.Clip(cfg.BranchAllow)
	if cfg.Bench {
		allow = append(allow, addr.String())
	}
	branchTLS, err := cfg.BranchTLS.Client()
	if err != nil {
		return nil, err
	}
	if s.caller, err = branch.NewHTTP(branch.HTTPConfig{
		Allow: allow, NoLoopback: !cfg.BranchLoopback, TLS: branchTLS, ConnsPerHost: cfg.BranchConns, Conns: branchConns,
	}); err != nil {
		return nil, err
	}
	attempts := webui.NewAttempts()
	if deps.Saga.Logger == nil {
		deps.Saga.Logger = s.log
	}
	deps.Saga.Observe = attempts.Observe
	s.metrics = metrics.Instrument(&deps.Saga)
	deps.Saga.MaxWait = cfg.MaxWait
	if s.coordinator, err = saga.New(deps.Store, s.caller, deps.Saga); err != nil {
		return nil, err
	}
	s.api = httpapi.New(s.coordinator, deps.Store, httpapi.Config{
		Version: version(), Admin: s.auth.isAdmin, Audit: s.auth.auditRequest, Failed: s.failed, Logger: s.log,
	})
	logins := cfg.Tokens
	if logins.AreSet() {
		logins = slices.Concat(logins, cfg.AdminTokens)
	}
	s.ui = webui.New(s.coordinator, deps.Store, webui.Config{
		Tokens: logins, Attempts: attempts, Audit: s.auth.audit, Failed: s.failed, Logger: s.log,
	})
	if cfg.Bench {
		s.bench = newBench(s.coordinator, cfg.Scenario, s.url, cfg.Tokens.First(), s.failed)
	}

	base, cutOff := context.WithCancelCause(context.Background())
	s.cutOff = cutOff
	s.addRoutes(s.routes.HandleFunc, deps.Store)
	if s.http, err = cfg.httpServer(http.HandlerFunc(s.serveHTTP), s.limited.standard()); err != nil {
		return nil, err
	}
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	return s, nil
}

// httpServer returns a server with the timeouts and limits of a Config.
func (c Config) httpServer(handler http.Handler, errorLog *log.Logger) (*http.Server, error) {
	h := &http.Server{
		Handler:     handler,
		ReadTimeout: c.Read, // header and body
		// From the end of the header: it includes reading the body and waiting for the saga.
		WriteTimeout:   c.Read + c.MaxWait + writeTime,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       errorLog,
		Protocols:      new(http.Protocols),
		ConnState:      trackIdle,
		ConnContext:    markReserved,
	}
	h.Protocols.SetHTTP1(true) // HTTP/2 would have many requests per connection, past the limits
	var err error
	if c.TLS.AreSet() {
		h.TLSConfig, err = c.TLS.Server()
	}
	return h, err
}

func serve(h *http.Server, l net.Listener) error {
	if h.TLSConfig != nil {
		return h.ServeTLS(l, "", "")
	}
	return h.Serve(l)
}

// URL returns the server's URL for programs on this machine, without a trailing slash.
func (s *Server) URL() string { return s.url }

// Run serves until ctx ends, and then stops as the package comment says, without an error.
// Call it once.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- serve(s.http, s.listener) }()
	select {
	case err := <-served:
		s.stop()
		return fmt.Errorf("serving %s: %w", s.url, err)
	case <-ctx.Done():
		s.draining.Store(true)
		time.Sleep(s.cfg.Drain)
		s.stop()
		<-served
		return nil
	}
}

// stop refuses new sagas, and waits for those in progress, up to the grace. The port stays
// open meanwhile: their branches may be this server's, and clients may query them.
func (s *Server) stop() {
	grace, cancel := context.WithTimeout(context.Background(), s.cfg.Grace)
	defer cancel()
	context.AfterFunc(grace, func() { s.cutOff(errStopped) })
	s.gate.Lock()
	s.coordinator.Close(grace)
	closeHTTP(s.http)
	s.caller.Close()
}

// closeHTTP lets responses in progress reach their clients, for up to a second. A profile or
// a connection without a request may take longer, and is cut off.
func closeHTTP(h *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		h.Close()
	}
}
