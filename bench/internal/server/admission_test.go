package server

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
)

func TestServer_BeyondMaxInFlight_SaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	branch := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-goOn }))
	t.Cleanup(branch.Close)
	t.Cleanup(release)
	s := testkit.OpenPebble(t)
	at := start(t, s, func(_ *Config, d *Deps) { d.Saga.MaxInFlight = 2 })
	body := func(gid string) string {
		return submission(map[string]any{"gid": gid, "wait_result": false, "steps": []any{map[string]string{"action": branch.URL}}})
	}
	for _, gid := range []string{"one", "two"} {
		require.Equal(t, http.StatusOK, at.do(http.MethodPost, submitPath, body(gid)).status)
	}
	for _, r := range []response{
		at.do(http.MethodPost, submitPath, body("three")),
		at.do(http.MethodPost, submitPath, submission(map[string]any{"gid": "four"})), // with wait_result
		at.get("/bench/saga"),
	} {
		require.Equal(t, http.StatusServiceUnavailable, r.status, r.body)
		require.Equal(t, "1", r.header.Get("Retry-After"))
		require.Contains(t, r.body, "too many sagas under way")
	}
	require.Equal(t, 2, count(t, s), "nothing was written")
	for _, gid := range []string{"three", "four"} {
		at.requireAudited("action=submit gid=" + gid + " outcome=refused status=503")
	}
	require.EqualValues(t, 3, at.scrape()["sagabench_sagas_refused_total"])
	release()
	require.Equal(t, http.StatusOK, at.eventually("/bench/saga", http.StatusOK).status)
}
