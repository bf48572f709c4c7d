package webui

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/internal/secret"
	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	patience = time.Minute // how long a test waits for what must happen
	theToken = "the-token-of-the-tests"
)

// site is a page that is served, over a coordinator that runs.
type site struct {
	t           testing.TB
	ui          *UI
	routes      []route
	url         string
	branches    string // URL of participants, whose paths say what they answer
	coordinator *saga.Coordinator
	client      *http.Client // follows no redirects, keeps cookies
}

// route is a method and a path of the page, with {gid} for a gid.
type route struct{ Method, Path string }

// methods are those that a pattern's method serves.
var methods = map[string][]string{http.MethodGet: safeMethods, http.MethodPost: {http.MethodPost}}

// safeMethods change nothing.
var safeMethods = []string{http.MethodGet, http.MethodHead}

// start serves the page. Without a token it is open to all.
func start(t testing.TB, s store.Store, token string) *site {
	t.Helper()
	participants := httptest.NewServer(http.HandlerFunc(participate))
	t.Cleanup(participants.Close)
	caller, err := branch.NewHTTP(branch.HTTPConfig{})
	require.NoError(t, err)
	t.Cleanup(caller.Close)
	attempts := NewAttempts()
	cfg := saga.DefaultConfig()
	cfg.Lease, cfg.RequestTimeout = time.Minute, 20*time.Second
	cfg.PollInterval = 10 * time.Millisecond
	cfg.RetryInterval = time.Hour // deferred sagas stay so until a retry
	cfg.MaxRetryInterval = time.Hour
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Observe = attempts.Observe
	c, err := saga.New(s, caller, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	})
	at := &site{t: t, coordinator: c, branches: participants.URL}
	at.ui = New(c, s, Config{Tokens: secret.NewTokens(token), Attempts: attempts, Logger: cfg.Logger})
	mux := http.NewServeMux()
	at.ui.Register(func(pattern string, handler func(http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, handler)
		method, path, _ := strings.Cut(pattern, " ")
		for _, m := range methods[method] {
			at.routes = append(at.routes, route{m, strings.TrimSuffix(path, "{$}")})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at.url = server.URL
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	at.client = &http.Client{
		Jar: jar, Timeout: patience, Transport: server.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return at
}

// hostile is what a participant says who would like to take the page over.
const hostile = `</p><script>window.taken=1</script><img src=x onerror="window.taken=1">"'&`

func participate(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/refuse":
		w.WriteHeader(http.StatusConflict)
	case "/away":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, hostile)
	case "/undecided":
		w.WriteHeader(http.StatusTooEarly)
	}
}

// run runs a saga to its end.
func (at *site) run(s *saga.Saga) {
	at.t.Helper()
	_, err := at.coordinator.Run(at.t.Context(), s)
	require.NoError(at.t, err)
}

// putOff submits a saga and waits until it is deferred.
func (at *site) putOff(s *saga.Saga) {
	at.t.Helper()
	require.NoError(at.t, at.coordinator.Submit(at.t.Context(), s))
	at.wait(s.GID, func(info saga.Info) bool { return info.Owner == "" })
}

func (at *site) wait(gid string, until func(saga.Info) bool) {
	at.t.Helper()
	require.Eventually(at.t, func() bool {
		info, err := at.coordinator.Get(at.t.Context(), gid)
		return err == nil && until(info)
	}, patience, 5*time.Millisecond)
}

// step calls paths of the participants; an empty one is no call.
func (at *site) step(action, compensate string) saga.Step {
	s := saga.Step{Payload: `"the payload"`}
	if action != "" {
		s.Action = at.branches + action
	}
	if compensate != "" {
		s.Compensate = at.branches + compensate
	}
	return s
}

// answer is one that was read to its end.
type answer struct {
	*http.Response
	body string
}

func (at *site) do(request *http.Request) answer {
	at.t.Helper()
	response, err := at.client.Do(request)
	require.NoError(at.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(at.t, err)
	return answer{response, string(body)}
}

func (at *site) request(method, path string, form url.Values) *http.Request {
	at.t.Helper()
	request, err := http.NewRequestWithContext(at.t.Context(), method, at.url+path, strings.NewReader(form.Encode()))
	require.NoError(at.t, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request
}

func (at *site) get(path string) answer {
	at.t.Helper()
	return at.do(at.request(http.MethodGet, path, nil))
}

// page is the text of one that must be there.
func (at *site) page(path string) string {
	at.t.Helper()
	a := at.get(path)
	require.Equal(at.t, http.StatusOK, a.StatusCode, a.body)
	return a.body
}

func (at *site) post(path string, form url.Values) answer {
	at.t.Helper()
	return at.do(at.request(http.MethodPost, path, form))
}

func (at *site) logIn(token string) answer {
	at.t.Helper()
	return at.post("/ui/login", url.Values{"token": {token}})
}
