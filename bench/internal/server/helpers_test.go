package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store"
)

func TestMain(m *testing.M) {
	serveNames() // as long as the process lives
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// poll is how often it looks.
const poll = 5 * time.Millisecond

// site is a server that runs, and a client for it.
type site struct {
	t      testing.TB
	server *Server
	client *http.Client
	log    *testkit.Log
	stop   context.CancelFunc
	ended  chan struct{}
}

// The tests' token, and their admin's.
const theToken, theAdminToken = "the-token-of-the-tests", "the-token-of-their-admin"

func withToken(c *Config, _ *Deps) {
	c.Tokens, c.AdminTokens = secret.NewTokens(theToken), secret.NewTokens(theAdminToken)
}

// settings are the defaults on a free port, with more patience and some changes.
func settings(s store.Store, changes ...func(*Config, *Deps)) (Config, Deps) {
	cfg := DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.MaxWait, cfg.Read = patience/2, patience/2 // whatever else the machine does
	deps := Deps{Store: s, Saga: saga.DefaultConfig()}
	deps.Saga.Lease, deps.Saga.RequestTimeout = time.Minute, 20*time.Second
	for _, change := range changes {
		change(&cfg, &deps)
	}
	return cfg, deps
}

// start runs a server with these settings until the test ends.
func start(t testing.TB, s store.Store, changes ...func(*Config, *Deps)) *site {
	t.Helper()
	cfg, deps := settings(s, changes...)
	log := &testkit.Log{}
	deps.Logger = slog.New(slog.NewTextHandler(log, nil))
	var err error
	deps.Listener, err = Listen(cfg)
	require.NoError(t, err)
	server, err := New(cfg, deps)
	require.NoError(t, err)

	ctx, stop := context.WithCancel(context.Background())
	at := &site{
		t: t, server: server, log: log, stop: stop, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience},
	}
	var runErr error
	go func() {
		defer close(at.ended)
		runErr = server.Run(ctx)
	}()
	t.Cleanup(func() {
		at.client.CloseIdleConnections()
		stop()
		at.waitEnd()
		require.NoError(t, runErr)
	})
	return at
}

func (at *site) waitEnd() {
	at.t.Helper()
	select {
	case <-at.ended:
	case <-time.After(patience):
		require.FailNow(at.t, "the server did not stop")
	}
}

// response is an answer read to its end.
type response struct {
	status int
	header http.Header
	body   string
}

// reply reads the body as the JSON of this package.
func (r response) reply(t testing.TB) reply {
	t.Helper()
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	var decoded reply
	require.NoError(t, json.Unmarshal([]byte(r.body), &decoded), r.body)
	return decoded
}

func (at *site) get(path string) response { at.t.Helper(); return at.do(http.MethodGet, path, "") }

func (at *site) do(method, path, body string) response {
	at.t.Helper()
	r, err := at.try(method, path, body)
	require.NoError(at.t, err)
	return r
}

// eventually repeats a request until its answer has this status.
func (at *site) eventually(path string, status int) response {
	at.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r := at.get(path)
		if r.status == status {
			return r
		}
		require.True(at.t, time.Now().Before(deadline), "still %d: %s", r.status, r.body)
	}
}

// try may be called from any goroutine.
func (at *site) try(method, path, body string) (response, error) {
	request, err := http.NewRequest(method, at.server.URL()+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if at.server.cfg.Tokens.AreSet() {
		request.Header.Set("Authorization", "Bearer "+theToken)
	}
	return at.send(request)
}

// send may be called from any goroutine.
func (at *site) send(request *http.Request) (response, error) {
	answer, err := at.client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return response{status: answer.StatusCode, header: answer.Header, body: string(content)}, err
}

func count(t testing.TB, s store.Store) int {
	t.Helper()
	page, err := s.List(t.Context(), store.Query{Limit: store.MaxListLimit})
	require.NoError(t, err)
	require.Empty(t, page.Next)
	return len(page.Records)
}
