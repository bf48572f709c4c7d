package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/saga"
	"sagabench/saga/httpapi"
	"sagabench/saga/metrics"
	"sagabench/saga/webui"
	"sagabench/store"
)

// Deps is what a server works with.
type Deps struct {
	Listener net.Listener // from Listen; Run closes it
	Store    store.Store  // open; stays open
	Saga     saga.Config  // its Observe and MaxWait are the server's to set
	Logger   *slog.Logger // nil: slog.Default; the coordinator's too, unless Saga has one
}

// Server is a coordinator behind HTTP. Make it with New.
type Server struct {
	cfg         Config
	listener    *bounded
	log         *slog.Logger
	seldom      *seldom // for what may come in floods
	caller      *saga.HTTPCaller
	coordinator *saga.Coordinator
	stats       *stats
	metrics     *metrics.Metrics
	guard       *guard
	api         *httpapi.API
	ui          *webui.UI
	bench       *bench // nil without the bench's endpoints
	routes      *gin.Engine
	http        *http.Server
	url         string

	draining atomic.Bool // from the signal on: it is not ready any more

	gate   sync.RWMutex            // held for reading by every gated request, for writing to keep out new ones
	cutOff context.CancelCauseFunc // ends every request
}

// errStopped is why a request was not answered within the grace.
var errStopped = errors.New("the server has stopped")

// writeTime is for an answer to be taken by its client.
const writeTime = 10 * time.Second

// New makes a server and starts its coordinator, which takes over due sagas from
// now on. Run must follow, to serve and to stop it. The error wraps
// store.ErrInvalid and names the setting.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	log := deps.Logger
	if log == nil {
		log = slog.Default()
	}
	cfg, branchConns, err := cfg.withinFiles(openFiles(), deps.Store, log)
	if err != nil {
		return nil, err
	}
	addr := reachable(deps.Listener)
	s := &Server{
		cfg:      cfg,
		listener: newBounded(deps.Listener, cfg.MaxConns, cfg.perPeer()),
		log:      log,
		url:      cfg.scheme() + "://" + addr.String(),
	}
	if warning := ClearText(cfg, deps.Listener); warning != "" {
		s.log.Warn(warning)
	}
	s.seldom = newSeldom(s.log)
	s.guard = newGuard(cfg, s.seldom)
	s.stats = &stats{store: deps.Store, log: s.log}

	allow := slices.Clip(cfg.BranchAllow)
	if cfg.Bench {
		allow = append(allow, addr.String())
	}
	branchTLS, err := cfg.BranchTLS.Client()
	if err != nil {
		return nil, err
	}
	if s.caller, err = (saga.HTTPConfig{Allow: allow, NoLoopback: !cfg.BranchLoopback, TLS: branchTLS}).NewCaller(); err != nil {
		return nil, err
	}
	s.caller.LimitConnections(cfg.BranchConns, branchConns)
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
		Version: version(), Admin: s.guard.isAdmin, Audit: s.guard.auditedRequest, Logger: s.log,
	})
	logins := cfg.Tokens
	if logins.AreSet() {
		logins = slices.Concat(logins, cfg.AdminTokens)
	}
	s.ui = webui.New(s.coordinator, deps.Store, webui.Config{Tokens: logins, Attempts: attempts, Audit: s.guard.audited, Logger: s.log})
	if cfg.Bench {
		s.bench = newBench(s.coordinator, cfg.Scenario, s.url, cfg.Tokens.First())
	}

	base, cutOff := context.WithCancelCause(context.Background())
	s.cutOff = cutOff
	s.routes = s.newRoutes(deps.Store)
	s.http = &http.Server{
		Handler:     s.routes,
		ReadTimeout: cfg.Read, // of the header as well
		// It runs from the end of the header, so it holds reading the body and
		// waiting for the saga, too.
		WriteTimeout:   cfg.Read + cfg.MaxWait + writeTime,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       s.seldom.standard(),
		Protocols:      new(http.Protocols),
		BaseContext:    func(net.Listener) context.Context { return base },
		ConnState:      noteState,
		ConnContext:    noteReserve,
	}
	s.http.Protocols.SetHTTP1(true) // the limits on connections are limits on requests
	if cfg.TLS.AreSet() {
		if s.http.TLSConfig, err = cfg.TLS.Server(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// URL is where programs on this machine reach the server, without a slash at its
// end.
func (s *Server) URL() string { return s.url }

// Run serves until ctx ends, and then stops as the package comment says, which
// is no error. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.serve() }()
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

// stop ends everything: no new sagas are taken, and after the grace it no longer
// waits. The port stays open until the sagas have ended, for their branches may be
// this server's, and whoever submitted them may ask about them.
func (s *Server) stop() {
	grace, cancel := context.WithTimeout(context.Background(), s.cfg.Grace)
	defer cancel()
	context.AfterFunc(grace, func() { s.cutOff(errStopped) })
	s.gate.Lock()
	s.coordinator.Close(grace)
	s.closeHTTP()
	s.caller.Close()
}

// closeHTTP lets answers that are being written reach their clients. It does
// not wait for more: only what may as well be cut off takes longer, such as a
// profile, or a connection that never sent a request.
func (s *Server) closeHTTP() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
}
