package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"sagabench/internal/peer"
	"sagabench/internal/secret"
)

const (
	cookieName = "sagabench_ui"
	session    = 12 * time.Hour
	maxForm    = 8 << 10 // bytes
)

// newSession returns a cookie's value: the Unix time at which the login ends, a random
// text that makes it unique, and a signature that only servers with the same token can make.
func newSession(token secret.Text, now time.Time) string {
	login := strconv.FormatInt(now.Add(session).Unix(), 10) + "." + rand.Text()
	return login + "." + signature(token, login)
}

func signature(token secret.Text, login string) string { return token.Sign("ui session " + login) }

// validSession returns the token that a cookie was made with, if the login is valid.
func (u *UI) validSession(cookie string, now time.Time) (token secret.Text, valid bool) {
	cut := max(strings.LastIndexByte(cookie, '.'), 0)
	login, signed := cookie[:cut], strings.TrimPrefix(cookie[cut:], ".")
	seconds, _, _ := strings.Cut(login, ".")
	if ends, err := strconv.ParseInt(seconds, 10, 64); err != nil || now.Unix() >= ends || u.logouts.has(cookie) {
		return secret.Text{}, false
	}
	for _, t := range u.cfg.Tokens {
		if subtle.ConstantTimeCompare([]byte(signed), []byte(signature(t, login))) == 1 {
			return t, true
		}
	}
	return secret.Text{}, false
}

// maxLogouts bounds the logouts remembered. Making that many takes the token.
const maxLogouts = 10_000

// logouts remembers the cookies of logins that were ended at this server.
type logouts struct {
	mu      sync.Mutex
	cookies map[string]bool
}

func (l *logouts) add(cookie string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cookies == nil {
		l.cookies = make(map[string]bool)
	}
	for other := range l.cookies {
		if len(l.cookies) < maxLogouts {
			break
		}
		delete(l.cookies, other)
	}
	l.cookies[strings.Clone(cookie)] = true // a clone, since it is part of the whole header
}

func (l *logouts) has(cookie string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cookies[cookie]
}

// requireLogin leads requests without a valid login to the login form.
func (u *UI) requireLogin(next handler) handler {
	return func(x *exchange) {
		loggedIn := !u.cfg.Tokens.AreSet()
		if cookie, err := x.r.Cookie(cookieName); err == nil && !loggedIn {
			x.token, loggedIn = u.validSession(cookie.Value, time.Now())
		}
		switch {
		case loggedIn:
			next(x)
		case x.r.Method == http.MethodPost:
			u.problem(x, http.StatusUnauthorized, "You are not logged in, or no longer.")
			u.audit(x, ActionRequest)
		default:
			x.redirect("/ui/login?to=" + url.QueryEscape(x.r.URL.RequestURI()))
		}
	}
}

// loginContent holds the page to go to after the login, and whether the token was wrong.
type loginContent struct {
	To    string
	Wrong bool
}

func (u *UI) loginForm(x *exchange) {
	u.show(x, http.StatusOK, pageLogin, view{Title: "Log in", Content: loginContent{To: ownPath(x.parameter("to"))}})
}

func (u *UI) login(x *exchange) {
	x.r.Body = http.MaxBytesReader(x.w, x.r.Body, maxForm)
	if err := x.r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		u.problem(x, status, "The form cannot be read: "+err.Error())
		return
	}
	defer u.audit(x, actionLogin)
	if !u.failures.allow(x.r.RemoteAddr, time.Now()) {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(failureTime.Seconds())))
		u.problem(x, http.StatusTooManyRequests, "Too many logins with a wrong token came from your address. Try again in a minute.")
		return
	}
	to := ownPath(x.r.PostForm.Get("to"))
	token, ok := u.cfg.Tokens.Find(strings.TrimSpace(x.r.PostForm.Get("token")))
	if !ok {
		u.failures.add(x.r.RemoteAddr)
		u.show(x, http.StatusUnauthorized, pageLogin, view{Title: "Log in", Content: loginContent{to, true}})
		return
	}
	x.token = token
	u.setCookie(x, newSession(token, time.Now()), int(session.Seconds()))
	x.redirect(to)
}

// logout ends the login at this server, also for copies of its cookie.
func (u *UI) logout(x *exchange) {
	if cookie, err := x.r.Cookie(cookieName); err == nil && u.cfg.Tokens.AreSet() {
		u.logouts.add(cookie.Value)
	}
	u.setCookie(x, "", -1)
	x.redirect("/ui/login")
	u.audit(x, actionLogout)
}

func (u *UI) setCookie(x *exchange, value string, maxAge int) {
	http.SetCookie(x.w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/ui", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: x.r.TLS != nil || x.r.Header.Get("X-Forwarded-Proto") == "https", // set by a proxy that ends TLS
	})
}

// ownPath returns to if it is a path of this page, and else /ui: a link must not lead to
// another site by way of the login.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || path.Clean(u.Path) != u.Path || !strings.HasPrefix(u.Path, "/ui/") || strings.Contains(to, `\`) {
		return "/ui"
	}
	return to
}

// Limits on wrong logins.
const (
	failuresAllowed = 10 // by one address in failureTime
	failureTime     = time.Minute
	maxFailing      = 10_000 // addresses counted separately; the others count as one
)

// failures counts wrong logins by address, against guessing.
type failures struct {
	mu    sync.Mutex
	since time.Time
	count map[netip.Addr]int
}

// allow reports whether this address may try a login.
func (f *failures) allow(remote string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= failureTime {
		f.since, f.count = now, make(map[netip.Addr]int)
	}
	return f.count[f.key(remote)] < failuresAllowed
}

// add counts a wrong login.
func (f *failures) add(remote string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[f.key(remote)]++
}

// key returns the address or network that a login counts for.
func (f *failures) key(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	key := peer.Of(at.Addr())
	if _, known := f.count[key]; !known && len(f.count) >= maxFailing {
		return netip.Addr{}
	}
	return key
}
