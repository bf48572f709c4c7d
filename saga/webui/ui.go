package webui

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/internal/secret"
	"sagabench/saga"
	"sagabench/store"
)

//go:embed page
var files embed.FS

// Config is how the page behaves.
type Config struct {
	Tokens   secret.Tokens // to log in with; none: nobody has to
	Attempts *Attempts     // of the coordinator; nil: none are shown
	Logger   *slog.Logger  // nil: slog.Default

	// Audit is told of each request that would change something, or was refused, once it
	// is answered: the token of the login, what was asked, of which saga, and the status
	// of the answer; nil: nobody is. The gid is the client's, of any length and content.
	Audit func(r *http.Request, token secret.Text, action, gid string, status int)
}

// UI answers requests. Make it with New.
type UI struct {
	coordinator *saga.Coordinator
	store       store.Store
	cfg         Config
	log         *slog.Logger
	pages       map[string]*template.Template
	crossOrigin *http.CrossOriginProtection
	overview    overviewCache
	logouts     logouts
	failures    failures
	reading     chan struct{} // of maxReading
}

// New is the page of a coordinator, which runs over that store.
func New(c *saga.Coordinator, s store.Store, cfg Config) *UI {
	u := &UI{
		coordinator: c, store: s, cfg: cfg, log: cfg.Logger,
		pages: make(map[string]*template.Template), crossOrigin: http.NewCrossOriginProtection(), reading: make(chan struct{}, maxReading),
	}
	if u.log == nil {
		u.log = slog.Default()
	}
	if u.cfg.Attempts == nil {
		u.cfg.Attempts = NewAttempts()
	}
	for _, name := range []string{pageOverview, pageList, pageSaga, pageLogin, pageProblem} {
		t := template.New("layout.html").Funcs(template.FuncMap{"plural": plural})
		u.pages[name] = template.Must(t.ParseFS(files, "page/layout.html", "page/"+name))
	}
	return u
}

// The pages, by their templates.
const (
	pageOverview = "overview.html"
	pageList     = "list.html"
	pageSaga     = "saga.html"
	pageLogin    = "login.html"
	pageProblem  = "problem.html"
)

// Register adds the paths, which begin with /ui.
func (u *UI) Register(r gin.IRouter) {
	open := r.Group("/ui", u.secure)
	open.Match(reading, "/style.css", u.file("page/style.css", "text/css; charset=utf-8"))
	open.Match(reading, "/icon.svg", u.file("page/icon.svg", "image/svg+xml"))
	open.Match(reading, "/login", u.loginForm)
	open.POST("/login", u.ownOrigin, u.login)

	closed := open.Group("", u.loggedIn)
	closed.Match(reading, "", u.showOverview)
	closed.Match(reading, "/", u.showOverview)
	closed.Match(reading, "/sagas", u.showList)
	closed.Match(reading, "/sagas/:gid", u.showSaga)
	closed.Match(reading, "/find", u.find)
	closed.POST("/sagas/:gid/abort", u.ownOrigin, u.abort)
	closed.POST("/sagas/:gid/retry", u.ownOrigin, u.retry)
	closed.POST("/logout", u.ownOrigin, u.logout)
}

// reading are the methods that change nothing.
var reading = []string{http.MethodGet, http.MethodHead}

// policy lets a browser load our style and icon, and send our forms to us.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (u *UI) secure(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without any, forms would not say where they are from
	h.Set("Cache-Control", "no-store")
}

// ownOrigin refuses what a page of another site had the browser send.
func (u *UI) ownOrigin(c *gin.Context) {
	if err := u.crossOrigin.Check(c.Request); err != nil {
		u.problem(c, http.StatusForbidden, "This request was not made from this page.")
		c.Abort()
		u.audited(c, ActionRequest)
	}
}

// Actions that Config.Audit is told of.
const (
	ActionRequest = "request" // one that did not get as far as its endpoint
	actionLogin   = "login"
	actionLogout  = "logout"
	actionAbort   = "abort"
	actionRetry   = "retry"
)

// keyToken is where a request's context has the token that it was logged in with.
const keyToken = "webui.token"

func (u *UI) audited(c *gin.Context, action string) {
	if u.cfg.Audit == nil {
		return
	}
	token, _ := c.Value(keyToken).(secret.Text)
	u.cfg.Audit(c.Request, token, action, c.Param("gid"), c.Writer.Status())
}

func (u *UI) file(name, contentType string) gin.HandlerFunc {
	content, err := files.ReadFile(name)
	if err != nil { // it was embedded
		panic(err)
	}
	return func(c *gin.Context) { c.Data(http.StatusOK, contentType, content) }
}

// view is what the layout needs around a page's content.
type view struct {
	Title   string
	At      string // which of the links in the head leads here
	Links   []link
	Logout  bool
	Notice  string
	Now     moment
	Content any
}

// link leads to a list of sagas.
type link struct{ Name, URL string }

func (u *UI) show(c *gin.Context, status int, page string, v view) {
	v.Logout = u.cfg.Tokens.AreSet() && page != pageLogin
	v.Now = at(time.Now(), time.Now())
	if page != pageLogin {
		v.Links = []link{{overviewName, "/ui"}}
		for _, s := range statuses {
			v.Links = append(v.Links, link{s.String(), "/ui/sagas?status=" + s.String()})
		}
		v.Links = append(v.Links, link{allName, "/ui/sagas"})
	}
	var text bytes.Buffer
	if err := u.pages[page].Execute(&text, v); err != nil { // a fault of ours
		panic(err)
	}
	c.Data(status, "text/html; charset=utf-8", text.Bytes())
}

const overviewName, allName = "overview", "all"

func (u *UI) problem(c *gin.Context, status int, what string) {
	u.show(c, status, pageProblem, view{Title: http.StatusText(status), Content: what})
}

// fail tells what went wrong with the store or the coordinator.
func (u *UI) fail(c *gin.Context, err error) {
	status, why := http.StatusServiceUnavailable, err.Error()
	switch {
	case errors.Is(err, store.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, store.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, saga.ErrEnded):
		status = http.StatusConflict
	default:
		_ = c.Error(err) // for the log of whoever mounts the page
		why = saga.RedactError(err)
	}
	u.problem(c, status, why)
}
