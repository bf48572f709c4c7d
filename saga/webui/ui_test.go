package webui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/inspect"
	"sagabench/store"
	"sagabench/store/memstore"
	"sagabench/store/pebblestore"
)

// open needs no login.
var open = map[string]bool{
	"GET /ui/style.css": true, "GET /ui/icon.svg": true, "GET /ui/login": true, "POST /ui/login": true,
	"HEAD /ui/style.css": true, "HEAD /ui/icon.svg": true, "HEAD /ui/login": true,
}

func TestUI_EveryRoute_WantsALogin(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	at.putOff(&saga.Saga{GID: "held", Steps: []saga.Step{at.step("/away", "")}})
	routes := at.routes
	require.Len(t, routes, 20)
	sign := func(token string, ends time.Time) string {
		return newSession(secret.New(token), ends.Add(-session))
	}
	for name, cookie := range map[string]string{
		"none": "", "nonsense": "x", "the token": theToken, "no signature": fmt.Sprint(time.Now().Add(time.Hour).Unix()) + ".",
		"of another token": sign("another-token-than-theirs", time.Now().Add(time.Hour)),
		"ended":            sign(theToken, time.Now().Add(-time.Second)),
		"longer than ours": fmt.Sprint(time.Now().Add(time.Hour*24).Unix()) + "." + strings.SplitN(sign(theToken, time.Now().Add(time.Hour)), ".", 2)[1],
		"another's text":   strings.Replace(sign(theToken, time.Now().Add(time.Hour)), ".", ".X", 1),
	} {
		for _, route := range routes {
			if open[route.Method+" "+route.Path] {
				continue
			}
			request := at.request(route.Method, strings.ReplaceAll(route.Path, "{gid}", "held"), nil)
			if cookie != "" {
				request.AddCookie(&http.Cookie{Name: cookieName, Value: cookie})
			}
			a := at.do(request)
			where := name + ": " + route.Method + " " + route.Path
			if slices.Contains(safeMethods, route.Method) {
				require.Equal(t, http.StatusSeeOther, a.StatusCode, where)
				require.True(t, strings.HasPrefix(a.Header.Get("Location"), "/ui/login?to=%2Fui"), where)
			} else {
				require.Equal(t, http.StatusUnauthorized, a.StatusCode, where)
			}
			require.NotContains(t, a.body, "deferred", where)
		}
	}
	info, err := at.coordinator.Get(t.Context(), "held")
	require.NoError(t, err)
	require.Equal(t, store.StatusSubmitted, info.Status)
}

func TestUI_Login(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	for _, wrong := range []string{"", "wrong-wrong-wrong-wrong", theToken[1:], theToken + "x"} {
		a := at.logIn(wrong)
		require.Equal(t, http.StatusUnauthorized, a.StatusCode)
		require.Empty(t, a.Cookies())
		require.Contains(t, a.body, "not the token of this server")
	}
	a := at.logIn(" " + theToken + "\n")
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	require.Equal(t, "/ui", a.Header.Get("Location"))
	require.Len(t, a.Cookies(), 1)
	cookie := a.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/ui", cookie.Path)
	require.Equal(t, int(session.Seconds()), cookie.MaxAge)
	require.False(t, cookie.Secure)
	require.NotContains(t, cookie.Value, theToken)
	at.page("/ui")

	behindTLS := at.request(http.MethodPost, "/ui/login", url.Values{"token": {theToken}})
	behindTLS.Header.Set("X-Forwarded-Proto", "https")
	require.True(t, at.do(behindTLS).Cookies()[0].Secure)

	require.Equal(t, http.StatusSeeOther, at.post("/ui/logout", nil).StatusCode)
	require.Equal(t, http.StatusSeeOther, at.get("/ui").StatusCode)
}

func TestUI_Login_LeadsToThisPageOnly(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	for to, want := range map[string]string{
		"":                            "/ui",
		"/ui/sagas/x":                 "/ui/sagas/x",
		"/ui/sagas?status=failed":     "/ui/sagas?status=failed",
		"//evil.example/ui/":          "/ui",
		"https://evil.example/ui/":    "/ui",
		"/bench/saga":                 "/ui",
		"/ui/\\evil.example":          "/ui",
		"javascript:alert(1)//ui/":    "/ui",
		"/ui/../bench/saga":           "/ui",
		"/ui/sagas/%2e%2e/bench/saga": "/ui",
	} {
		a := at.post("/ui/login", url.Values{"token": {theToken}, "to": {to}})
		require.Equal(t, http.StatusSeeOther, a.StatusCode, to)
		require.Equal(t, want, a.Header.Get("Location"), to)
	}
}

func TestUI_RefusesWhatAnotherSiteSends(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", theToken} {
		at := start(t, testkit.OpenPebble(t), token)
		at.putOff(&saga.Saga{GID: "held", Steps: []saga.Step{at.step("/away", "")}})
		if token != "" {
			at.logIn(token)
		}
		for _, route := range at.routes {
			if route.Method != http.MethodPost {
				continue
			}
			for header, value := range map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
				request := at.request(route.Method, strings.ReplaceAll(route.Path, "{gid}", "held"), url.Values{"token": {token}})
				request.Header.Set(header, value)
				require.Equal(t, http.StatusForbidden, at.do(request).StatusCode, route.Path)
			}
		}
		info, err := at.coordinator.Get(t.Context(), "held")
		require.NoError(t, err)
		require.Equal(t, 1, info.State.Retries[0].Tries)
		require.Equal(t, store.StatusSubmitted, info.Status)
	}
}

func TestUI_LimitsItsForm(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	require.Equal(t, http.StatusRequestEntityTooLarge, at.logIn(strings.Repeat("x", maxForm)).StatusCode)
	request := at.request(http.MethodPost, "/ui/login", url.Values{"token": {"%"}})
	request.URL.RawQuery = "%zz"
	require.Equal(t, http.StatusBadRequest, at.do(request).StatusCode)
}

func TestUI_EveryAnswer_HasThePolicy(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), theToken)
	at.run(&saga.Saga{GID: "done", Steps: make([]saga.Step, 1)})
	at.logIn(theToken)
	for _, route := range at.routes {
		a := at.do(at.request(route.Method, strings.ReplaceAll(route.Path, "{gid}", "done"), nil))
		require.Equal(t, policy, a.Header.Get("Content-Security-Policy"), route.Path)
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), route.Path)
		require.Equal(t, "no-store", a.Header.Get("Cache-Control"), route.Path)
		require.True(t, a.body == "" || a.Header.Get("Content-Type") != "", route.Path)
		require.NotContains(t, a.body, "<script")
		require.NotContains(t, a.body, "style=")
	}
	require.NotContains(t, policy, "unsafe")
}

func TestUI_Overview_ShowsHowThingsStand(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	empty := at.page("/ui")
	require.Contains(t, empty, "Every saga has ended.")
	require.Contains(t, empty, "No saga waits for a branch to answer.")
	require.NotContains(t, empty, "Log out", "nobody had to log in")

	at = start(t, testkit.OpenPebble(t), "")
	at.fill()
	text := at.page("/ui")
	require.Regexp(t, `(?s)unfinished</dt><dd>3<.*due now</dt><dd>0<`, text)
	require.Regexp(t, fmt.Sprintf(`(?s)succeeded</dt><dd>%d<.*failed</dt><dd>1<`, listRows+3), text)
	require.Contains(t, text, `<div class="alarm"><dt>compensations refused</dt><dd>1</dd>`)
	held, oldest, found := strings.Cut(text, "<h2>Oldest unfinished</h2>")
	require.True(t, found)
	for _, list := range []string{held, oldest} {
		gids := regexp.MustCompile(`href="/ui/sagas/([^"]+)"`).FindAllStringSubmatch(list, -1)
		require.Len(t, gids, 3)
		require.Equal(t, "held-up", gids[0][1], "the oldest first")
	}
	require.Contains(t, held, "step 2, action: 500 Internal Server Error: &lt;/p&gt;&lt;script&gt;")
	require.Contains(t, held, "1 failed attempt; next in ")
	require.NotContains(t, text, hostile)
}

// many is a store of more unfinished sagas than an overview looks at, a page of
// which it gives again and again, so that each comes more than once.
type many struct {
	store.Store
	lists int
}

func (m *many) Stats(ctx context.Context) (store.Stats, error) {
	return store.Stats{Unfinished: 1_000_000, OldestAge: 49 * time.Hour}, nil
}

func (m *many) List(ctx context.Context, q store.Query) (store.Page, error) {
	m.lists++
	page := store.Page{Next: "more"}
	for i := range q.Limit + 100 {
		page.Records = append(page.Records, store.Record{
			GID: fmt.Sprint("g", m.lists/2*1000+i), Status: store.StatusAborting, Marks: "--", Epoch: 1, Created: time.Unix(int64(i), 0),
			Body: []byte(`{"steps":[{}]}`),
		})
	}
	return page, nil
}

func TestUI_Overview_IsBounded(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	m := &many{Store: memstore.New(0)}
	at.ui.store, at.ui.reader = m, inspect.NewReader(at.coordinator, m, at.ui.cfg.Logger)
	text := at.page("/ui")
	require.Contains(t, text, "There are more unfinished sagas than the ")
	require.Contains(t, text, "2 days")
	require.Equal(t, overviewRows, strings.Count(text, `class="gid"`))
	require.LessOrEqual(t, m.lists, 2*overviewSagas/100+2)
	lists := m.lists
	for range 10 {
		at.page("/ui")
	}
	require.LessOrEqual(t, m.lists, 2*lists, "others get the same answer")
}

func TestUI_List_ShowsAStatusPageByPage(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	at.fill()
	for status, want := range map[string]int{"submitted": 2, "aborting": 1, "succeed": listRows + 3, "failed": 1, "": listRows + 7} {
		seen, pages := at.listed("/ui/sagas?status=" + status)
		require.Len(t, seen, want, status)
		require.LessOrEqual(t, pages, 2, status)
	}
	require.Contains(t, at.page("/ui/sagas?status=failed"), "step 3, action: 409 Conflict")
	require.Equal(t, http.StatusBadRequest, at.get("/ui/sagas?status=lost").StatusCode)
	require.NotEqual(t, http.StatusOK, at.get("/ui/sagas?after=nonsense").StatusCode)
}

// listed reads a list from a page on.
func (at *site) listed(path string) (seen map[string]bool, pages int) {
	at.t.Helper()
	seen = make(map[string]bool)
	for ; path != ""; pages++ {
		text := at.page(path)
		gids := regexp.MustCompile(`href="/ui/sagas/([^"]+)"`).FindAllStringSubmatch(text, -1)
		require.LessOrEqual(at.t, len(gids), listRows)
		for _, gid := range gids {
			seen[gid[1]] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(text); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	return seen, pages
}

// Due times are the store's, so whether a saga still waits is judged by its clock.
func TestUI_List_GoesByTheStoresClock(t *testing.T) {
	t.Parallel()
	cfg := pebblestore.DefaultConfig()
	cfg.Dir, cfg.Now = t.TempDir(), func() time.Time { return time.Now().Add(-24 * time.Hour) }
	s, err := pebblestore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	at := start(t, s, "")
	at.putOff(&saga.Saga{GID: "held", Steps: []saga.Step{at.step("/undecided", "")}})
	for _, path := range []string{"/ui", "/ui/sagas", "/ui/sagas?status=submitted"} {
		page := at.page(path)
		require.Contains(t, page, "deferred", path)
		require.NotContains(t, page, "waits for a coordinator", path)
	}
}

// Large sagas come a store's page at a time, and all are shown.
func TestUI_List_OfLargeSagas(t *testing.T) {
	t.Parallel()
	testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
		at := start(t, s, "")
		const sagas = 8
		body := fmt.Appendf(nil, `{"steps":[{}],"custom":%q}`, strings.Repeat("x", 2<<20))
		for i := range sagas {
			errs := s.Apply(t.Context(), []store.Change{
				&store.Create{GID: fmt.Sprint("large-", i), Steps: 1, Owner: "others", Due: time.Hour, Body: body},
			})
			require.NoError(t, errs[0])
		}
		seen, _ := at.listed("/ui/sagas?status=submitted")
		require.Len(t, seen, sagas)
	})
}

func TestUI_Saga_ShowsAllButWhatIsConfidential(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	at.fill()
	text := at.page("/ui/sagas/held-up")
	for _, want := range []string{
		"Saga held-up", "deferred; next attempt", "Waiting: ", "1 failed attempt", "after 1, 2", "13 bytes", "no call",
		"The calls of branches that this server made", "step 2, action", "steps run concurrently", "1h", "Retry limit", "11 bytes", "Retry now", "Abort this saga",
	} {
		require.Contains(t, text, want)
	}
	failed := at.page("/ui/sagas/failed")
	require.Contains(t, failed, "X-Tenant")
	require.Contains(t, failed, `<span class="mark bad">refused</span>`)
	require.Equal(t, 3, strings.Count(failed, ", compensate <span"), "the timeline")
	require.NotContains(t, failed, "<button>Retry")
	require.NotContains(t, failed, "Abort this saga")
	vain := at.page("/ui/sagas/undone-in-vain")
	require.Contains(t, vain, "Aborted: ")
	require.Contains(t, vain, "Retry now")
	require.NotContains(t, vain, "Abort this saga", "it is being aborted")
	for _, confidential := range []string{"the payload", "header-value", "custom-data", hostile} {
		require.NotContains(t, text+failed+vain, confidential)
	}
}

func TestUI_Buttons_AskTheCoordinator(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	at.putOff(&saga.Saga{GID: "held", Steps: []saga.Step{at.step("/away", "/ok")}})
	a := at.post("/ui/sagas/held/retry", nil)
	require.Equal(t, http.StatusSeeOther, a.StatusCode, a.body)
	require.Contains(t, at.page(a.Header.Get("Location")), "The retry is due now")
	at.wait("held", func(i saga.Info) bool { return i.Owner == "" && i.State.Retries[0].Tries == 2 })
	require.Equal(t, http.StatusSeeOther, at.post("/ui/sagas/held/abort", nil).StatusCode)
	at.wait("held", func(i saga.Info) bool { return i.Status == store.StatusFailed })

	at.run(&saga.Saga{GID: "done", Steps: make([]saga.Step, 1)})
	for path, want := range map[string]int{
		"/ui/sagas/done/abort": http.StatusConflict, "/ui/sagas/done/retry": http.StatusConflict,
		"/ui/sagas/nowhere/abort": http.StatusNotFound, "/ui/sagas/no.gid/retry": http.StatusBadRequest,
	} {
		require.Equal(t, want, at.post(path, nil).StatusCode, path)
	}
}

func TestUI_Find_LeadsToASaga(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), "")
	require.Equal(t, "/ui/sagas/some-gid", at.get("/ui/find?gid=+some-gid+").Header.Get("Location"))
	for _, gid := range []string{"", "..", "a/b", "http://evil.example", "a\r\nb", strings.Repeat("x", 65)} {
		require.Equal(t, http.StatusBadRequest, at.get("/ui/find?gid="+url.QueryEscape(gid)).StatusCode, gid)
		if gid != "" {
			path := "/ui/sagas/" + url.PathEscape(gid)
			if gid == ".." { // net/http redirects from unescaped dots
				path = "/ui/sagas/%2e%2e"
			}
			require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, at.get(path).StatusCode, gid)
		}
	}
}

func TestUI_SaysWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s, "")
	require.NoError(t, s.Close())
	for _, path := range []string{"/ui", "/ui/sagas", "/ui/sagas/x"} {
		a := at.get(path)
		require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, path)
		require.Contains(t, a.body, "the store is closed")
	}
}

// However many look at once, few large sagas are in memory.
func TestUI_ReadsLittleAtOnce(t *testing.T) {
	t.Parallel()
	s := &countingReads{Store: testkit.OpenPebble(t)}
	at := start(t, s, "")
	at.putOff(&saga.Saga{GID: "held", Steps: []saga.Step{at.step("/away", "")}})
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 80 {
		all.Go(func() {
			path := "/ui/sagas"
			if i%2 == 0 {
				path = "/ui/sagas?status=submitted"
			}
			switch at.get(path).StatusCode {
			case http.StatusOK:
				answered.Add(1)
			case http.StatusServiceUnavailable: // it has waited for a second
			default:
				t.Error("neither answered nor refused")
			}
		})
	}
	all.Wait()
	require.Positive(t, answered.Load())
	require.LessOrEqual(t, s.most.Load(), int64(inspect.MaxBytes/store.MaxPageBytes))
	require.Greater(t, s.most.Load(), int64(1))

	for range inspect.MaxBytes / store.MaxPageBytes {
		page, err := at.ui.reader.Page(t.Context(), store.Query{})
		require.NoError(t, err)
		defer page.Release(0)
	}
	a := at.get("/ui/sagas")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Contains(t, a.body, inspect.ErrBusy.Error())
}

// countingReads counts the pages that are read at once.
type countingReads struct {
	store.Store
	now, most atomic.Int64
}

func (s *countingReads) List(ctx context.Context, q store.Query) (store.Page, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	time.Sleep(5 * time.Millisecond)
	return s.Store.List(ctx, q)
}
