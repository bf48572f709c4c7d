package server

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
)

// Monitors and load balancers ask with HEAD. What does something is not done by it.
func TestServer_Head_AnswersAsGetDoes(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), withToken)
	cookie := at.login()
	ask := func(method, path string) response {
		request := at.bare(method, path)
		request.AddCookie(cookie)
		request.Header.Set("Authorization", "Bearer "+theToken)
		return at.ask(request)
	}
	for _, path := range []string{"/healthz", "/", "/metrics", "/api/metrics", "/ui", "/ui/", "/ui/sagas", "/ui/login", "/ui/style.css", "/ui/sagas/nowhere"} {
		get, head := ask(http.MethodGet, path), ask(http.MethodHead, path)
		require.Equal(t, get.status, head.status, path)
		require.Equal(t, get.header.Get("Content-Type"), head.header.Get("Content-Type"), path)
		require.Empty(t, head.body, path)
	}
	style := ask(http.MethodGet, "/ui/style.css")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		require.Equal(t, strconv.Itoa(len(style.body)), ask(method, "/ui/style.css").header.Get("Content-Length"), method)
	}
	require.Equal(t, http.StatusSeeOther, at.ask(at.bare(http.MethodHead, "/ui")).status, "not logged in")
	for _, path := range []string{"/bench/saga", "/api/dtmsvr/resetCronTime", actionPath} {
		require.Equal(t, http.StatusNotFound, ask(http.MethodHead, path).status, path)
	}
	require.Zero(t, count(t, at.server.stats.store))
}
