package webui

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"time"

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
	// Failed is called with an error that the response leaves out. Nil: it is logged.
	Failed func(*http.Request, error)
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
	if cfg.Failed == nil {
		cfg.Failed = func(r *http.Request, err error) {
			cfg.Logger.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
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

// Register passes each route to handle, which is http.ServeMux's HandleFunc or like it. The
// paths begin with /ui. The handlers of GET serve HEAD, too.
func (u *UI) Register(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	for pattern, h := range map[string]handler{
		"GET /ui/style.css": u.file("page/style.css", "text/css; charset=utf-8"),
		"GET /ui/icon.svg":  u.file("page/icon.svg", "image/svg+xml"),
		"GET /ui/login":     u.loginForm,
		"POST /ui/login":    u.requireOwnOrigin(u.login),

		"GET /ui":                    u.requireLogin(u.showOverview),
		"GET /ui/{$}":                u.requireLogin(u.showOverview),
		"GET /ui/sagas":              u.requireLogin(u.showList),
		"GET /ui/sagas/{gid}":        u.requireLogin(u.showSaga),
		"GET /ui/find":               u.requireLogin(u.find),
		"POST /ui/sagas/{gid}/abort": u.requireLogin(u.requireOwnOrigin(u.abort)),
		"POST /ui/sagas/{gid}/retry": u.requireLogin(u.requireOwnOrigin(u.retry)),
		"POST /ui/logout":            u.requireLogin(u.requireOwnOrigin(u.logout)),
	} {
		handle(pattern, func(w http.ResponseWriter, r *http.Request) {
			setHeaders(w.Header())
			h(&exchange{w: w, r: r})
		})
	}
}

// handler serves a route.
type handler func(*exchange)

// exchange is a request and its response.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	token  secret.Text // of the login
	status int         // of the response
}

// gid returns the gid in the request's path, or an empty one.
func (x *exchange) gid() string { return x.r.PathValue("gid") }

// parameter returns a parameter of the request's query, or an empty one.
func (x *exchange) parameter(name string) string { return x.r.URL.Query().Get(name) }

func (x *exchange) write(status int, contentType string, body []byte) {
	x.status = status
	x.w.Header().Set("Content-Type", contentType)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body))) // for HEAD, and for pages too long for net/http to add it
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // fails if the client has gone
}

// redirect sends the browser to another page of ours, by GET.
func (x *exchange) redirect(url string) {
	x.status = http.StatusSeeOther
	http.Redirect(x.w, x.r, url, x.status)
}

// policy allows our own style, icon and forms, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets the headers of every response.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, a form's Origin would be null
	h.Set("Cache-Control", "no-store")
}

// requireOwnOrigin refuses requests that a page of another site made the browser send.
func (u *UI) requireOwnOrigin(next handler) handler {
	return func(x *exchange) {
		if err := u.crossOrigin.Check(x.r); err != nil {
			u.problem(x, http.StatusForbidden, "This request was not made from this page.")
			u.audit(x, ActionRequest)
			return
		}
		next(x)
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

func (u *UI) audit(x *exchange, action string) {
	if u.cfg.Audit != nil {
		u.cfg.Audit(x.r, x.token, action, x.gid(), x.status)
	}
}

func (u *UI) file(name, contentType string) handler {
	content, err := files.ReadFile(name)
	if err != nil { // impossible: it is embedded
		panic(err)
	}
	return func(x *exchange) { x.write(http.StatusOK, contentType, content) }
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

func (u *UI) show(x *exchange, status int, page string, v view) {
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
	x.write(status, "text/html; charset=utf-8", text.Bytes())
}

const overviewName, allName = "overview", "all"

// problem shows an error.
func (u *UI) problem(x *exchange, status int, what string) {
	u.show(x, status, pageProblem, view{Title: http.StatusText(status), Content: what})
}

// fail shows an error of the store or the coordinator.
func (u *UI) fail(x *exchange, err error) {
	status, why := http.StatusServiceUnavailable, err.Error()
	switch {
	case errors.Is(err, store.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, store.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, saga.ErrEnded):
		status = http.StatusConflict
	case errors.Is(err, inspect.ErrBusy): // the store is well
		x.w.Header().Set("Retry-After", "1")
	default:
		u.cfg.Failed(x.r, err)
		why = saga.RedactError(err)
	}
	u.problem(x, status, why)
}
