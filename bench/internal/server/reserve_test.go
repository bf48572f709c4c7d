package server

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/store"
)

// away is a store that does not answer.
type away struct{ store.Store }

func (away) Stats(context.Context) (store.Stats, error) { return store.Stats{}, errors.New("away") }

func TestServer_TellsLivenessFromReadiness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		store store.Store
		ready int
	}{
		{testkit.OpenPebble(t), http.StatusOK},
		{away{testkit.OpenPebble(t)}, http.StatusServiceUnavailable},
	} {
		at := start(t, tt.store, withToken)
		for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": tt.ready, "/healthz": tt.ready} {
			require.Equal(t, want, at.ask(at.bare(http.MethodGet, path)).status, path)
		}
	}
}

// Told to stop, a server says so at once, and goes on until others have noticed.
func TestRun_DrainsBeforeItStops(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.Drain = 5 * time.Second })
	require.Equal(t, http.StatusOK, at.get("/readyz").status)
	at.stop()
	began := time.Now()
	at.eventually("/readyz", http.StatusServiceUnavailable)
	require.Equal(t, "the server is stopping", at.get("/healthz").reply(t).Message)
	require.Equal(t, http.StatusOK, at.get("/livez").status)
	r := at.get("/bench/saga")
	require.Less(t, time.Since(began), 5*time.Second, "the machine is too slow for this test")
	require.Equal(t, http.StatusOK, r.status, r.body)
	at.waitEnd()
	_, err := at.try(http.MethodGet, "/livez", "")
	require.Error(t, err, "the port is closed")
}

// While the last sagas end, what they are doing can be asked.
func TestRun_AnswersQueriesDuringTheGrace(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h)
	done := at.async(h, "/bench/saga")
	at.stop()
	at.eventually("/bench/saga?steps=0", http.StatusServiceUnavailable)
	for path, want := range map[string]int{
		"/api/dtmsvr/query?gid=x": http.StatusOK, "/api/dtmsvr/all": http.StatusOK, "/api/dtmsvr/newGid": http.StatusOK,
		"/api/dtmsvr/version": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable,
		"/api/dtmsvr/resetCronTime": http.StatusServiceUnavailable,
	} {
		require.Equal(t, want, at.get(path).status, path)
	}
	r := at.do(http.MethodPost, submitPath, submission())
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "1", r.header.Get("Retry-After"))
	close(h.release)
	require.Equal(t, http.StatusOK, (<-done).status)
	at.waitEnd()
}
