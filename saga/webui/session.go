package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/internal/secret"
)

const (
	cookieName = "sagabench_ui"
	session    = 12 * time.Hour
	maxForm    = 8 << 10 // bytes
)

// A login is the time at which it ends, in Unix seconds, text that makes it another
// than all others, and a signature that only servers with the same token make.
func newSession(token secret.Text, now time.Time) string {
	login := strconv.FormatInt(now.Add(session).Unix(), 10) + "." + rand.Text()
	return login + "." + signature(token, login)
}

func signature(token secret.Text, login string) string { return token.Sign("ui session " + login) }

// cutSession returns the parts of a cookie, signed or not.
func cutSession(value string) (login, signed string, ends int64, ok bool) {
	cut := max(strings.LastIndexByte(value, '.'), 0)
	login, signed = value[:cut], strings.TrimPrefix(value[cut:], ".")
	seconds, _, _ := strings.Cut(login, ".")
	ends, err := strconv.ParseInt(seconds, 10, 64)
	return login, signed, ends, err == nil
}

// validSession returns the token that somebody logged in with.
func (u *UI) validSession(value string, now time.Time) (token secret.Text, valid bool) {
	login, signed, ends, ok := cutSession(value)
	for _, t := range u.cfg.Tokens {
		if subtle.ConstantTimeCompare([]byte(signed), []byte(signature(t, login))) == 1 {
			token, valid = t, true
		}
	}
	return token, valid && ok && now.Unix() < ends && !u.logouts.have(login)
}

// loggedIn lets in who has logged in, and has others do so.
func (u *UI) loggedIn(c *gin.Context) {
	if !u.cfg.Tokens.AreSet() {
		return
	}
	if cookie, err := c.Request.Cookie(cookieName); err == nil {
		if token, ok := u.validSession(cookie.Value, time.Now()); ok {
			c.Set(keyToken, token)
			return
		}
	}
	c.Abort()
	if !slices.Contains(reading, c.Request.Method) {
		u.problem(c, http.StatusUnauthorized, "You are not logged in, or no longer.")
		u.audited(c, ActionRequest)
		return
	}
	c.Redirect(http.StatusSeeOther, "/ui/login?to="+url.QueryEscape(c.Request.URL.RequestURI()))
}

// loginContent is where to go on to, and whether a token was wrong.
type loginContent struct {
	To    string
	Wrong bool
}

func (u *UI) loginForm(c *gin.Context) {
	u.show(c, http.StatusOK, pageLogin, view{Title: "Log in", Content: loginContent{To: ours(c.Query("to"))}})
}

func (u *UI) login(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	if err := c.Request.ParseForm(); err != nil {
		status := http.StatusBadRequest
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		u.problem(c, status, "The form cannot be read: "+err.Error())
		return
	}
	defer u.audited(c, actionLogin)
	if !u.failures.allow(c.Request.RemoteAddr, time.Now()) {
		c.Header("Retry-After", strconv.Itoa(int(failureTime.Seconds())))
		u.problem(c, http.StatusTooManyRequests, "Too many logins with a wrong token came from your address. Try again in a minute.")
		return
	}
	to := ours(c.Request.PostForm.Get("to"))
	token, ok := u.cfg.Tokens.Find(strings.TrimSpace(c.Request.PostForm.Get("token")))
	if !ok {
		u.failures.add(c.Request.RemoteAddr)
		u.show(c, http.StatusUnauthorized, pageLogin, view{Title: "Log in", Content: loginContent{to, true}})
		return
	}
	c.Set(keyToken, token)
	u.setCookie(c, newSession(token, time.Now()), int(session.Seconds()))
	c.Redirect(http.StatusSeeOther, to)
}

// logout ends the login at this server, also for whoever else has its cookie.
func (u *UI) logout(c *gin.Context) {
	if cookie, err := c.Request.Cookie(cookieName); err == nil {
		if login, _, ends, ok := cutSession(cookie.Value); ok && u.cfg.Tokens.AreSet() {
			u.logouts.add(login, ends, time.Now())
		}
	}
	u.setCookie(c, "", -1)
	c.Redirect(http.StatusSeeOther, "/ui/login")
	u.audited(c, actionLogout)
}

func (u *UI) setCookie(c *gin.Context, value string, maxAge int) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: cookieName, Value: value, Path: "/ui", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// Where a proxy in front ends TLS, it says so.
		Secure: c.Request.TLS != nil || c.GetHeader("X-Forwarded-Proto") == "https",
	})
}

// ours is a path of this page, whatever to is: a link must not lead elsewhere by
// way of the login.
func ours(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || path.Clean(u.Path) != u.Path || !strings.HasPrefix(u.Path, "/ui/") || strings.Contains(to, `\`) {
		return "/ui"
	}
	return to
}
