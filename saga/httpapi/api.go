package httpapi

import (
	"log/slog"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"

	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
)

// Config configures an API.
type Config struct {
	Version string // what /version returns
	// Admin reports whether a request may force sagas to stop. Nil: none may.
	Admin func(*http.Request) bool
	// Audit is called after the response to each request that changes something: what
	// was asked, for which saga, and the response's status. The gid is the client's, of
	// any length and content. Nil: nothing is audited.
	Audit func(r *http.Request, action, gid string, status int)
	// Failed is called with the cause of each response 500, which leaves it out. Nil: it is
	// logged.
	Failed func(*http.Request, error)
	Logger *slog.Logger // nil: slog.Default
}

// API serves dtm's HTTP API. Make it with New.
type API struct {
	coordinator *saga.Coordinator
	cfg         Config
	reader      *inspect.Reader
	bodies      sync.Pool           // of *bytes.Buffer
	decoding    *semaphore.Weighted // of maxDecoding bytes
}

// New returns the API of a coordinator, which runs over that store.
func New(c *saga.Coordinator, s store.Store, cfg Config) *API {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Failed == nil {
		cfg.Failed = func(r *http.Request, err error) {
			cfg.Logger.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
	}
	return &API{coordinator: c, cfg: cfg, reader: inspect.NewReader(c, s, cfg.Logger), decoding: semaphore.NewWeighted(maxDecoding)}
}

// Register passes each route to handle, which is http.ServeMux's HandleFunc or like it. The
// paths begin with /api/.
func (a *API) Register(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	handle("/api/ping", ping)
	handle("GET /api/dtmsvr/newGid", newGID)
	handle("GET /api/dtmsvr/version", a.version)
	handle("POST /api/dtmsvr/prepare", a.prepare)
	handle("POST /api/dtmsvr/submit", a.submit)
	handle("POST /api/dtmsvr/abort", a.abort)
	handle("POST /api/dtmsvr/forceStop", a.forceStop)
	handle("POST /api/dtmsvr/resetNextCronTime", a.resetNextCronTime)
	handle("GET /api/dtmsvr/resetCronTime", a.resetCronTime)
	handle("GET /api/dtmsvr/query", a.query)
	handle("GET /api/dtmsvr/all", a.all)
}

// Actions passed to Config.Audit.
const (
	ActionSubmit    = "submit"
	actionAbort     = "abort"
	actionForceStop = "force-stop"
	actionRetry     = "retry"
	actionRetryAll  = "retry-all"
)

func (a *API) audit(r *http.Request, action, gid string, status int) {
	if a.cfg.Audit != nil {
		a.cfg.Audit(r, action, gid, status)
	}
}

func ping(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, []byte(`{"msg":"pong"}`))
}

func newGID(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, struct {
		GID    string `json:"gid"`
		Result string `json:"dtm_result"`
	}{saga.NewGID(), resultSuccess})
}

func (a *API) version(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, struct {
		Version string `json:"version"`
	}{a.cfg.Version})
}
