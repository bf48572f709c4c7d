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
	"sagabench/saga/inspect"
	"sagabench/store"
)

//go:embed page
var files embed.FS

// Config configures a UI.
type Config struct {
	Tokens   secret.Tokens // to log in with; none: no login is needed
	Attempts *Attempts     // of the coordinator; nil: no attempts are shown
	Logger   *slog.Logger  // nil: slog.Default

	// Audit is called after the response to each request that changes something or was
	// refused: the token of the login, what was asked, for which saga, and the response's
	// status. The gid is the client's, of any length and content. Nil: nothing is audited.
	Audit func(r *http.Request, token secret.Text, action, gid string, status int)
}

// UI serves the page. Make it with New.
type UI struct {
	coordinator *saga.Coordinator
	store       store.Store
	cfg         Config
	reader      *inspect.Reader
	pages       map[string]*template.Template
	crossOrigin *http.CrossOriginProtection
	overview    overviewCache
	logouts     logouts
	failures    failures
}

// New returns the page of a coordinator, which runs over that store.
func New(c *saga.Coordinator, s store.Store, cfg Config) *UI {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Attempts == nil {
		cfg.Attempts = NewAttempts()
	}
	u := &UI{
		coordinator: c, store: s, cfg: cfg, reader: inspect.NewReader(c, s, cfg.Logger),
		pages: make(map[string]*template.Template), crossOrigin: http.NewCrossOriginProtection(),
	}
	for _, name := range []string{pageOverview, pageList, pageSaga, pageLogin, pageProblem} {
		t := template.New("layout.html").Funcs(template.FuncMap{"plural": plural})
		u.pages[name] = template.Must(t.ParseFS(files, "page/layout.html", "page/"+name))
	}
	return u
}

// Templates of the pages.
const (
	pageOverview = "overview.html"
	pageList     = "list.html"
	pageSaga     = "saga.html"
	pageLogin    = "login.html"
	pageProblem  = "problem.html"
)

// Register adds the routes, which begin with /ui.
func (u *UI) Register(r gin.IRouter) {
	open := r.Group("/ui", u.setHeaders)
	open.Match(safeMethods, "/style.css", u.file("page/style.css", "text/css; charset=utf-8"))
	open.Match(safeMethods, "/icon.svg", u.file("page/icon.svg", "image/svg+xml"))
	open.Match(safeMethods, "/login", u.loginForm)
	open.POST("/login", u.requireOwnOrigin, u.login)

	closed := open.Group("", u.requireLogin)
	closed.Match(safeMethods, "", u.showOverview)
	closed.Match(safeMethods, "/", u.showOverview)
	closed.Match(safeMethods, "/sagas", u.showList)
	closed.Match(safeMethods, "/sagas/:gid", u.showSaga)
	closed.Match(safeMethods, "/find", u.find)
	closed.POST("/sagas/:gid/abort", u.requireOwnOrigin, u.abort)
	closed.POST("/sagas/:gid/retry", u.requireOwnOrigin, u.retry)
	closed.POST("/logout", u.requireOwnOrigin, u.logout)
}

// safeMethods change nothing.
var safeMethods = []string{http.MethodGet, http.MethodHead}

// policy allows our own style, icon and forms, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers of every response.
func (u *UI) setHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, a form's Origin would be null
	h.Set("Cache-Control", "no-store")
}

// requireOwnOrigin refuses requests that a page of another site made the browser send.
func (u *UI) requireOwnOrigin(c *gin.Context) {
	if err := u.crossOrigin.Check(c.Request); err != nil {
		u.problem(c, http.StatusForbidden, "This request was not made from this page.")
		c.Abort()
		u.audit(c, ActionRequest)
	}
}

// Actions passed to Config.Audit.
const (
	ActionRequest = "request" // refused before it reached its handler
	actionLogin   = "login"
	actionLogout  = "logout"
	actionAbort   = "abort"
	actionRetry   = "retry"
)

// keyToken is the key of the login's token in the context of a request.
const keyToken = "webui.token"

func (u *UI) audit(c *gin.Context, action string) {
	if u.cfg.Audit == nil {
		return
	}
	token, _ := c.Value(keyToken).(secret.Text)
	u.cfg.Audit(c.Request, token, action, c.Param("gid"), c.Writer.Status())
}

func (u *UI) file(name, contentType string) gin.HandlerFunc {
	content, err := files.ReadFile(name)
	if err != nil { // impossible: it is embedded
		panic(err)
	}
	return func(c *gin.Context) { c.Data(http.StatusOK, contentType, content) }
}

// view is the data of the layout, around the content of a page.
type view struct {
	Title   string
	Current string // name of the link to this page
	Links   []link
	Logout  bool // show the button
	Notice  string
	Now     moment
	Content any
}

// link is a link to a list of sagas.
type link struct{ Name, URL string }

func (u *UI) show(c *gin.Context, status int, page string, v view) {
	v.Logout = u.cfg.Tokens.AreSet() && page != pageLogin
	v.Now = at(time.Now(), time.Now())
	if page != pageLogin {
		v.Links = []link{{overviewName, "/ui"}}
		for _, s := range inspect.Statuses {
			v.Links = append(v.Links, link{s.String(), "/ui/sagas?status=" + s.String()})
		}
		v.Links = append(v.Links, link{allName, "/ui/sagas"})
	}
	var text bytes.Buffer
	if err := u.pages[page].Execute(&text, v); err != nil { // an error in the template
		panic(err)
	}
	c.Data(status, "text/html; charset=utf-8", text.Bytes())
}

const overviewName, allName = "overview", "all"

// problem shows an error.
func (u *UI) problem(c *gin.Context, status int, what string) {
	u.show(c, status, pageProblem, view{Title: http.StatusText(status), Content: what})
}

// fail shows an error of the store or the coordinator.
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
		_ = c.Error(err) // for the server's log
		why = saga.RedactError(err)
	}
	u.problem(c, status, why)
}
