package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
)

// A branch's URL may hold an API key in its query, or a password. Neither is in
// what says why a saga waits, on the page, in a log or in an error.
func TestServer_BranchURL_ItsSecretsAreInNoReason(t *testing.T) {
	t.Parallel()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}))
	t.Cleanup(cut.Close)
	at := start(t, testkit.OpenPebble(t))
	for gid, url := range map[string]string{
		"refused":   "http://127.0.0.1:1/pay?key=topsecret&id=7",
		"cut-off":   cut.URL + "/pay?key=topsecret",
		"password":  "http://me:topsecret@127.0.0.1:1/pay",
		"no-name":   "http://nowhere.test/pay?key=topsecret",
		"forbidden": "http://inner.test/pay?key=topsecret",
	} {
		r := at.do(http.MethodPost, submitPath, submission(action(url), map[string]any{"gid": gid}))
		require.Equal(t, http.StatusOK, r.status, r.body)
		why := at.heldUp(gid)
		require.Contains(t, why, "step 1, action: ", gid)
		require.NotContains(t, why, "topsecret", gid)
		record, err := at.server.stats.store.Get(t.Context(), gid)
		require.NoError(t, err)
		require.NotContains(t, string(record.Note), "topsecret", gid)
		page := at.get("/ui/sagas/" + gid)
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "no answer", "the attempt is shown")
		require.NotContains(t, page.body, "topsecret", gid)
	}
	require.Contains(t, at.heldUp("refused"), "127.0.0.1:1/pay", "it says where")
	for _, url := range []string{
		"ftp://127.0.0.1/?key=topsecret", "http:///pay?key=topsecret", "http://127.0.0.1:x/?key=topsecret",
		"http://10.0.0.1/?key=topsecret", "http://me:topsecret@10.0.0.1/%zz",
	} {
		r := at.do(http.MethodPost, submitPath, submission(action(url)))
		require.Equal(t, http.StatusBadRequest, r.status, url)
		require.NotContains(t, r.body, "topsecret", url)
	}
	require.NotContains(t, strings.ToLower(at.log.String()), "topsecret")
}
