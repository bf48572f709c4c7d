package webui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
)

// A cookie that somebody copied is worth nothing after the logout; others' logins
// go on.
func TestUI_Logout_EndsTheLoginForGood(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	mine, theirs := at.logIn(theToken).Cookies()[0], at.logIn(theToken).Cookies()[0]
	require.NotEqual(t, mine.Value, theirs.Value)
	at.client.Jar = nil
	with := func(method, path string, cookie *http.Cookie) answer {
		request := at.request(method, path, nil)
		request.AddCookie(cookie)
		return at.do(request)
	}
	require.Equal(t, http.StatusOK, with(http.MethodGet, "/ui", mine).StatusCode)
	require.Equal(t, http.StatusSeeOther, with(http.MethodPost, "/ui/logout", mine).StatusCode)
	require.Equal(t, http.StatusSeeOther, with(http.MethodGet, "/ui", mine).StatusCode)
	require.Equal(t, http.StatusUnauthorized, with(http.MethodPost, "/ui/sagas/x/abort", mine).StatusCode)
	require.Equal(t, http.StatusOK, with(http.MethodGet, "/ui", theirs).StatusCode)
	require.Equal(t, http.StatusUnauthorized, with(http.MethodPost, "/ui/logout", mine).StatusCode)
}

// A token that is taken away ends the logins that were made with it.
func TestUI_Login_EndsWithItsToken(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-all"
	at := start(t, testkit.OpenPebble(t), next+" "+theToken)
	require.Equal(t, http.StatusSeeOther, at.logIn(theToken).StatusCode)
	at.page("/ui")
	at.ui.cfg.Tokens = secret.NewTokens(next)
	require.Equal(t, http.StatusSeeOther, at.get("/ui").StatusCode)
}

func TestUI_Login_IsThrottled(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	for range failuresAllowed {
		require.Equal(t, http.StatusUnauthorized, at.logIn("wrong-wrong-wrong-wrong").StatusCode)
	}
	for _, token := range []string{"wrong-wrong-wrong-wrong", theToken} { // which it does not tell apart
		a := at.logIn(token)
		require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
		require.Equal(t, "60", a.Header.Get("Retry-After"))
		require.Empty(t, a.Cookies())
	}
	request := at.request(http.MethodPost, "/ui/login", url.Values{"token": {theToken}})
	request.Header.Set("X-Forwarded-For", "192.0.2.1") // anybody can write that
	require.Equal(t, http.StatusTooManyRequests, at.do(request).StatusCode)
}

func TestFailures_AreCountedByAddress(t *testing.T) {
	t.Parallel()
	f, now := &failures{}, time.Now()
	fail := func(from string) {
		for range failuresAllowed {
			require.True(t, f.allow(from, now), from)
			f.add(from)
		}
		require.False(t, f.allow(from, now), from)
	}
	fail("192.0.2.1:1000")
	require.False(t, f.allow("192.0.2.1:2000", now), "another port of his")
	require.False(t, f.allow("[::ffff:192.0.2.1]:1", now))
	fail("192.0.2.2:1000")
	fail("[2001:db8::1]:1")
	require.False(t, f.allow("[2001:db8::2]:1", now), "another address of his")
	fail("[2001:db8:0:1::1]:1")
	require.True(t, f.allow("192.0.2.1:1000", now.Add(failureTime)), "after a while again")

	// Whoever has many addresses does not fill the memory.
	for i := range 3 * maxFailing {
		f.add(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	require.LessOrEqual(t, len(f.count), maxFailing+1)
	require.False(t, f.allow("10.200.0.1:1", now.Add(failureTime)))
}

func TestValidSession_RefusesMalformedCookies(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", ".", "..", "x", "1", "1.", ".1", strings.Repeat(".", 9), "99999999999999999999.x.y"} {
		_, valid := (&UI{cfg: Config{Tokens: secret.NewTokens(theToken)}}).validSession(value, time.Now())
		require.False(t, valid, value)
	}
}

// Whoever has a token does not fill the memory with what is to be remembered of logouts.
func TestLogouts_AreBounded(t *testing.T) {
	t.Parallel()
	var l logouts
	header := strings.Repeat("x", 16<<10)
	l.add(header[:40])
	for login := range l.cookies {
		require.NotSame(t, unsafe.StringData(header), unsafe.StringData(login), "it keeps the header it came in")
	}
	for i := range maxLogouts + 1000 {
		l.add(fmt.Sprint(i))
	}
	require.LessOrEqual(t, len(l.cookies), maxLogouts)
	require.True(t, l.has(fmt.Sprint(maxLogouts+999)), "the last one is there")
}
