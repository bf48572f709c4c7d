package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

func everything(c *Config, _ *Deps) {
	c.Bench, c.Pprof, c.AdminTokens = true, true, secret.NewTokens(theAdminToken)
}

// bare is a request without any credentials.
func (at *site) bare(method, path string) *http.Request {
	request, err := http.NewRequestWithContext(at.t.Context(), method, at.server.URL()+path, http.NoBody)
	require.NoError(at.t, err)
	return request
}

// ask sends it, and follows no redirect.
func (at *site) ask(request *http.Request) response {
	at.t.Helper()
	at.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := at.send(request)
	require.NoError(at.t, err)
	return r
}

// open to everybody; the page has tests of its own.
func openToAll(method, path string) bool {
	return probes[path] || path == "/" && slices.Contains(safeMethods, method) ||
		path == "/ui/login" || path == "/ui/style.css" || path == "/ui/icon.svg"
}

// route is a method and a path that the server has a handler for.
type route struct{ Method, Path string }

// routes returns what the server serves. One of any method counts as a PUT.
func (at *site) routes() (all []route) {
	at.server.addRoutes(func(pattern string, _ func(http.ResponseWriter, *http.Request)) {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = http.MethodPut, pattern
		}
		path = strings.NewReplacer("{gid}", "some-gid", "{$}", "").Replace(path)
		if pattern != "/" { // nothing is there
			all = append(all, route{method, path})
		}
		if method == http.MethodGet && allowsHead(path) {
			all = append(all, route{http.MethodHead, path})
		}
	}, at.server.stats.store)
	return all
}

func TestAuth_EveryRoute_WantsTheToken(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), everything, withToken)
	routes := append(at.routes(), route{http.MethodGet, "/no/such/path"})
	require.Greater(t, len(routes), 25)
	wrong := []string{
		"", "Bearer", "Bearer ", "Bearer wrong-wrong-wrong-wrong", theToken, "Basic " + theToken, "Token " + theToken,
		"Bearer " + theToken[1:], "Bearer " + theToken + "x", "Bearer  " + theToken, "Bearer " + strings.ToUpper(theToken), "Bearer ***",
		"Bearer " + branchKey(secret.New(theToken)),
	}
	for _, route := range routes {
		for _, header := range wrong {
			request := at.bare(route.Method, route.Path)
			if !strings.HasPrefix(route.Path, "/ui") {
				request.URL.RawQuery = "token=" + theToken + "&key=" + theToken
			}
			request.Header.Set("Authorization", header)
			r := at.ask(request)
			where := route.Method + " " + route.Path + " with " + header
			switch {
			case openToAll(route.Method, route.Path):
				require.NotEqual(t, http.StatusForbidden, r.status, where)
			case strings.HasPrefix(route.Path, "/ui") && slices.Contains(safeMethods, route.Method):
				require.Equal(t, http.StatusSeeOther, r.status, where)
				require.True(t, strings.HasPrefix(r.header.Get("Location"), "/ui/login"), where)
			default:
				require.Equal(t, http.StatusUnauthorized, r.status, where)
			}
			require.NotContains(t, r.body, theToken)
		}
		if strings.HasPrefix(route.Path, "/ui") {
			continue
		}
		for _, header := range []string{"Bearer " + theToken, "bearer " + theToken, "Bearer " + theAdminToken} {
			request := at.bare(route.Method, route.Path)
			request.Header.Set("Authorization", header)
			r := at.ask(request)
			require.NotEqual(t, http.StatusUnauthorized, r.status, route.Path)
			admin := (strings.HasSuffix(route.Path, "/forceStop") || strings.HasPrefix(route.Path, profilePath)) && !strings.HasSuffix(header, theAdminToken)
			require.Equal(t, admin, r.status == http.StatusForbidden, route.Path)
		}
	}
	require.Zero(t, count(t, at.server.stats.store)-sagasMade(routes), "the wrong ones made none")
	require.NotContains(t, at.log.String(), theToken)
	require.NotContains(t, at.log.String(), theAdminToken)
}

// sagasMade is how many sagas one right request of each kind makes, by each of
// three tokens.
func sagasMade(routes []route) (n int) {
	for _, route := range routes {
		if route.Path == "/bench/saga" {
			n += 3
		}
	}
	return n
}

func TestAuth_TheBranchKeyOpensTheBranchesOnly(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), withToken)
	of := BranchesOf(at.server.URL(), secret.New(theToken))
	for url, status := range map[string]int{
		of.Action: http.StatusOK, of.Compensate: http.StatusOK, of.Refusing: http.StatusConflict,
		of.Action + "x":              http.StatusUnauthorized,
		of.Action[:len(of.Action)-1]: http.StatusUnauthorized,
		strings.Replace(of.Action, actionPath, "/bench/saga", 1):                    http.StatusUnauthorized,
		strings.Replace(of.Action, actionPath, "/bench/branch", 1):                  http.StatusUnauthorized,
		BranchesOf(at.server.URL(), secret.New("another-token-than-theirs")).Action: http.StatusUnauthorized,
	} {
		require.Equal(t, status, at.ask(at.bare(http.MethodGet, strings.TrimPrefix(url, at.server.URL()))).status, url)
	}
	require.NotContains(t, of.Action, theToken)

	// Sagas with such branches succeed, and the store does not get the token.
	r := at.get("/bench/saga?branches=http")
	require.Equal(t, http.StatusOK, r.status, r.body)
	record, err := at.server.stats.store.Get(t.Context(), r.reply(t).GID)
	require.NoError(t, err)
	require.Contains(t, string(record.Body), "key=")
	require.NotContains(t, string(record.Body), theToken)
	require.Equal(t, http.StatusConflict, at.get("/bench/saga?branches=http&fail=1").status)
}

func TestAuth_WithoutAToken_KeepsOutWhatABrowserBrings(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), everything)
	own := at.server.URL()
	ask := func(method, path, header, value string) int {
		request := at.bare(method, path)
		if header == "Host" {
			request.Host = value
		} else if header != "" {
			request.Header.Set(header, value)
		}
		return at.ask(request).status
	}
	for _, route := range at.routes() {
		path, where := route.Path, route.Method+" "+route.Path
		for header, value := range map[string]string{"Host": "evil.example", "Origin": "http://evil.example"} {
			require.Equal(t, http.StatusForbidden, ask(route.Method, path, header, value), where+" "+header)
		}
		wanted := http.StatusForbidden
		for _, site := range []string{"cross-site", "same-site", "nonsense"} {
			got := ask(route.Method, path, "Sec-Fetch-Site", site)
			if strings.HasPrefix(path, "/ui") && slices.Contains(safeMethods, route.Method) {
				require.NotEqual(t, wanted, got, where)
			} else {
				require.Equal(t, wanted, got, where)
			}
		}
	}
	for _, fine := range [][2]string{
		{"", ""},
		{"Host", "localhost:1234"},
		{"Host", "127.1.2.3"},
		{"Host", "[::1]:80"},
		{"Host", "[::1]"},
		{"Origin", own},
		{"Sec-Fetch-Site", "same-origin"},
		{"Sec-Fetch-Site", "none"},
	} {
		require.Equal(t, http.StatusOK, ask(http.MethodGet, "/healthz", fine[0], fine[1]), fine)
	}
	for _, host := range []string{"localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[::]:1"} {
		require.Equal(t, http.StatusForbidden, ask(http.MethodGet, "/healthz", "Host", host), host)
	}
	require.NotZero(t, at.scrape()["sagabench_requests_refused_total"])
}

// What every saga passes costs no memory while there is no token.
func TestAuth_WithoutAToken_AllocatesNothing(t *testing.T) {
	g := newAuth(DefaultConfig(), newLimitedLog(slog.Default()))
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/bench/saga?steps=2", nil)
	require.Zero(t, testing.AllocsPerRun(1000, func() { g.authenticate(w, r) }))
	require.True(t, g.authenticate(w, r))
}

func TestServer_ForceStop_IsForTheAdmin(t *testing.T) {
	t.Parallel()
	const path, body = "/api/dtmsvr/forceStop", `{"gid":"stuck","trans_type":"saga"}`
	for name, change := range map[string]func(*Config, *Deps){
		"nobody may":            func(*Config, *Deps) {},
		"nobody may, a token":   func(c *Config, _ *Deps) { c.Tokens = secret.NewTokens(theToken) },
		"the admin may":         func(c *Config, _ *Deps) { c.AdminTokens = secret.NewTokens(theAdminToken) },
		"the admin may, tokens": withToken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start(t, testkit.OpenPebble(t), change)
			require.NoError(t, at.server.coordinator.Submit(t.Context(), &saga.Saga{
				GID: "stuck", Steps: []saga.Step{{Action: "http://127.0.0.1:1/nobody"}},
			}))
			forceStop := func(token string) int {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.server.URL()+path, strings.NewReader(body))
				require.NoError(t, err)
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				return at.ask(request).status
			}
			for _, token := range []string{"", theToken, "wrong-wrong-wrong-wrong"} {
				require.Contains(t, []int{http.StatusForbidden, http.StatusUnauthorized}, forceStop(token), token)
			}
			info, err := at.server.coordinator.Get(t.Context(), "stuck")
			require.NoError(t, err)
			require.Equal(t, store.StatusSubmitted, info.Status)
			if strings.HasPrefix(name, "nobody") {
				require.NotEqual(t, http.StatusOK, forceStop(theAdminToken))
				return
			}
			require.Equal(t, http.StatusOK, forceStop(theAdminToken))
			info, err = at.server.coordinator.Get(t.Context(), "stuck")
			require.NoError(t, err)
			require.Equal(t, store.StatusFailed, info.Status)
			require.Contains(t, at.log.String(), "level=WARN", "it is loud")
		})
	}
}
