package httpapi

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
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
	Audit  func(r *http.Request, action, gid string, status int)
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
	return &API{coordinator: c, cfg: cfg, reader: inspect.NewReader(c, s, cfg.Logger), decoding: semaphore.NewWeighted(maxDecoding)}
}

// Register adds the API's routes, which begin with /api/.
func (a *API) Register(r gin.IRouter) {
	r.Any("/api/ping", func(c *gin.Context) { write(c, http.StatusOK, []byte(`{"msg":"pong"}`)) })

	r.GET("/api/dtmsvr/newGid", newGID)
	r.GET("/api/dtmsvr/version", a.version)
	r.POST("/api/dtmsvr/prepare", a.prepare)
	r.POST("/api/dtmsvr/submit", a.submit)
	r.POST("/api/dtmsvr/abort", a.abort)
	r.POST("/api/dtmsvr/forceStop", a.forceStop)
	r.POST("/api/dtmsvr/resetNextCronTime", a.resetNextCronTime)
	r.GET("/api/dtmsvr/resetCronTime", a.resetCronTime)
	r.GET("/api/dtmsvr/query", a.query)
	r.GET("/api/dtmsvr/all", a.all)
}

// Actions passed to Config.Audit.
const (
	ActionSubmit    = "submit"
	actionAbort     = "abort"
	actionForceStop = "force-stop"
	actionRetry     = "retry"
	actionRetryAll  = "retry-all"
)

func (a *API) audit(c *gin.Context, action, gid string) {
	if a.cfg.Audit != nil {
		a.cfg.Audit(c.Request, action, gid, c.Writer.Status())
	}
}

func newGID(c *gin.Context) {
	respond(c, http.StatusOK, struct {
		GID    string `json:"gid"`
		Result string `json:"dtm_result"`
	}{saga.NewGID(), resultSuccess})
}

func (a *API) version(c *gin.Context) {
	respond(c, http.StatusOK, struct {
		Version string `json:"version"`
	}{a.cfg.Version})
}
