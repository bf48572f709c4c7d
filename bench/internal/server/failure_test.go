package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/testkit"
)

// Where the store is and what its driver says is for the log: an answer may go to
// somebody else's browser or log.
func TestServer_StoreAway_AnswersDoNotSayWhereItIs(t *testing.T) {
	t.Parallel()
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	at := start(t, testkit.OpenRedis(t, redis), everything, withToken, func(_ *Config, d *Deps) {
		d.Saga.Commit.Timeout = time.Second
		d.Saga.Lease, d.Saga.RequestTimeout = 2*time.Second, 500*time.Millisecond
	})
	page := func(path string) response {
		request := at.bare(http.MethodGet, path)
		request.AddCookie(at.login())
		return at.ask(request)
	}
	invalid := at.get("/api/dtmsvr/all?position=nonsense")
	require.Equal(t, http.StatusBadRequest, invalid.status)
	require.NotContains(t, invalid.body, redis.Addr())

	require.NoError(t, redis.Kill())
	const one = `{"gid":"the-gid"}`
	for _, r := range []response{
		at.do(http.MethodPost, submitPath, submission(map[string]any{"wait_result": false})),
		at.do(http.MethodPost, "/api/dtmsvr/abort", one),
		at.asAdmin(http.MethodPost, "/api/dtmsvr/forceStop", one),
		at.do(http.MethodPost, "/api/dtmsvr/resetNextCronTime", one),
		at.get("/api/dtmsvr/resetCronTime"), at.get("/api/dtmsvr/query?gid=the-gid"),
		at.get("/api/dtmsvr/all"), at.get("/api/dtmsvr/all?gid=the-gid"),
		at.get("/bench/saga"), at.get("/healthz"), page("/ui"), page("/ui/sagas"), page("/ui/sagas/the-gid"),
	} {
		require.GreaterOrEqual(t, r.status, 500, r.body)
		for _, internal := range []string{redis.Addr(), "dial", "connect"} {
			require.NotContains(t, r.body, internal)
		}
		require.Contains(t, r.body, "log has the details")
	}
	require.Contains(t, at.log.String(), redis.Addr(), "the log says it")

	before, began := strings.Count(at.log.String(), "a request failed"), time.Now()
	for range 100 {
		at.get("/api/dtmsvr/query?gid=the-gid")
	}
	require.LessOrEqual(t, strings.Count(at.log.String(), "a request failed")-before, mostLines(began), "an outage does not flood the log")
}

// mostLines is how many lines of a kind may have been logged since then.
func mostLines(since time.Time) int { return logLimit * (2 + int(time.Since(since)/logPeriod)) }

// login logs in to the page, and returns the cookie.
func (at *site) login() *http.Cookie {
	at.t.Helper()
	r := at.post("/ui/login", "token="+theToken, nil)
	require.Equal(at.t, http.StatusSeeOther, r.status, r.body)
	cookie, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	require.NoError(at.t, err)
	return cookie
}

// post sends a form of the page.
func (at *site) post(path, form string, cookie *http.Cookie) response {
	at.t.Helper()
	request := at.bare(http.MethodPost, path)
	request.Body = io.NopCloser(strings.NewReader(form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		request.AddCookie(cookie)
	}
	return at.ask(request)
}

func (at *site) asAdmin(method, path, body string) response {
	at.t.Helper()
	request := at.bare(method, path)
	request.Body = io.NopCloser(strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+theAdminToken)
	return at.ask(request)
}
