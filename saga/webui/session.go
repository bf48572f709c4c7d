package webui

import (
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
)

const (
	cookieName = "sagabench_ui"
	session    = 12 * time.Hour
	maxForm    = 8 << 10 // bytes
)

// A login is the time at which it ends, in Unix seconds, and a signature that
// only servers with the same token make.
func (u *UI) newSession(now time.Time) string {
	ends := strconv.FormatInt(now.Add(session).Unix(), 10)
	return ends + "." + u.signature(ends)
}

func (u *UI) signature(ends string) string { return u.cfg.Token.Sign("ui session until " + ends) }

func (u *UI) validSession(value string, now time.Time) bool {
	ends, signature, _ := strings.Cut(value, ".")
	if subtle.ConstantTimeCompare([]byte(signature), []byte(u.signature(ends))) != 1 {
		return false
	}
	seconds, err := strconv.ParseInt(ends, 10, 64)
	return err == nil && now.Unix() < seconds
}

// loggedIn lets in who has logged in, and has others do so.
func (u *UI) loggedIn(c *gin.Context) {
	if !u.cfg.Token.IsSet() {
		return
	}
	if cookie, err := c.Request.Cookie(cookieName); err == nil && u.validSession(cookie.Value, time.Now()) {
		return
	}
	c.Abort()
	if !slices.Contains(reading, c.Request.Method) {
		u.problem(c, http.StatusUnauthorized, "You are not logged in, or no longer.")
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
	to := ours(c.Request.PostForm.Get("to"))
	if !u.cfg.Token.Matches(strings.TrimSpace(c.Request.PostForm.Get("token"))) {
		u.log.Warn("refused a login", "from", c.Request.RemoteAddr)
		u.show(c, http.StatusUnauthorized, pageLogin, view{Title: "Log in", Content: loginContent{to, true}})
		return
	}
	u.setCookie(c, u.newSession(time.Now()), int(session.Seconds()))
	c.Redirect(http.StatusSeeOther, to)
}

func (u *UI) logout(c *gin.Context) {
	u.setCookie(c, "", -1)
	c.Redirect(http.StatusSeeOther, "/ui/login")
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
