package httpapi

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"sagabench/saga"
	"sagabench/store"
)

// Config is how the API behaves.
type Config struct {
	Version string // what /version answers
	// Admin reports whether a request may force sagas to stop; nil: none may.
	Admin func(*http.Request) bool
	// Audit is told of each request that would change something, once it is answered: what
	// was asked, of which saga, and the status of the answer; nil: nobody is. The gid
	// is the client's, of any length and content.
	Audit  func(r *http.Request, action, gid string, status int)
	Logger *slog.Logger // nil: slog.Default
}

// API answers requests. Make it with New.
type API struct {
	coordinator *saga.Coordinator
	store       store.Store
	cfg         Config
	log         *slog.Logger
	bodies      sync.Pool           // of *bytes.Buffer
	decoding    *semaphore.Weighted // of maxDecoding
	reading     *semaphore.Weighted // of maxReading
}

// New is the API of a coordinator, which runs over that store.
func New(c *saga.Coordinator, s store.Store, cfg Config) *API {
	a := &API{coordinator: c, store: s, cfg: cfg, log: cfg.Logger, decoding: semaphore.NewWeighted(maxDecoding), reading: semaphore.NewWeighted(maxReading)}
	if a.log == nil {
		a.log = slog.Default()
	}
	return a
}

// Register adds the API's paths, which begin with /api/.
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

// Actions that Config.Audit is told of.
const (
	ActionSubmit    = "submit"
	actionAbort     = "abort"
	actionForceStop = "force-stop"
	actionRetry     = "retry"
	actionRetryAll  = "retry-all"
)

func (a *API) audited(c *gin.Context, action, gid string) {
	if a.cfg.Audit != nil {
		a.cfg.Audit(c.Request, action, gid, c.Writer.Status())
	}
}

func newGID(c *gin.Context) {
	answer(c, http.StatusOK, struct {
		GID    string `json:"gid"`
		Result string `json:"dtm_result"`
	}{saga.NewGID(), resultSuccess})
}

func (a *API) version(c *gin.Context) {
	answer(c, http.StatusOK, struct {
		Version string `json:"version"`
	}{a.cfg.Version})
}
