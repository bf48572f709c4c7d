package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// adminToken is what the tests' admin shows.
const adminToken = "the-admin"

// site is an API that is served, and the participants of its sagas.
type site struct {
	t        testing.TB
	url      string // of the server, without a slash at its end
	branch   string // of the participants, likewise
	client   *http.Client
	branches *branchServer
	log      *testkit.Log
}

// start serves the API of a coordinator that loses no time. change, unless nil,
// may alter both configurations.
func start(t testing.TB, s store.Store, change func(*Config, *saga.Config)) *site {
	t.Helper()
	log := &testkit.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	cfg := Config{
		Version: "v0.0.0-test",
		Admin:   func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+adminToken },
		Logger:  logger,
	}
	sagas := saga.DefaultConfig()
	sagas.Lease, sagas.RequestTimeout = time.Minute, 20*time.Second
	sagas.PollInterval = 10 * time.Millisecond
	sagas.RetryInterval = 10 * time.Millisecond
	sagas.Logger = logger
	if change != nil {
		change(&cfg, &sagas)
	}
	participants := &branchServer{released: make(chan struct{})}
	branches := httptest.NewServer(participants)
	t.Cleanup(branches.Close)
	caller, err := branch.NewHTTP(branch.HTTPConfig{})
	require.NoError(t, err)
	t.Cleanup(caller.Close)
	c, err := saga.New(s, caller, sagas)
	require.NoError(t, err)
	t.Cleanup(func() {
		participants.release()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	})
	routes := http.NewServeMux()
	New(c, s, cfg).Register(routes.HandleFunc)
	server := httptest.NewUnstartedServer(routes)
	// The kernel's own send buffer may grow until it holds a whole answer that nobody reads.
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	return &site{
		t: t, url: server.URL, branch: branches.URL, branches: participants, log: log,
		client: server.Client(),
	}
}

// branchServer answers as the first part of the path says, and remembers what it
// was asked.
type branchServer struct {
	mu       sync.Mutex
	calls    []branchCall
	mended   bool
	once     sync.Once
	released chan struct{}
}

type branchCall struct {
	Method, Path, BranchID, Op, GID, TransType, Body string
	Header                                           http.Header
}

func (b *branchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	b.mu.Lock()
	b.calls = append(b.calls, branchCall{
		Method: r.Method, Path: r.URL.Path, Body: string(body), Header: r.Header,
		BranchID: q.Get("branch_id"), Op: q.Get("op"), GID: q.Get("gid"), TransType: q.Get("trans_type"),
	})
	mended := b.mended
	b.mu.Unlock()
	switch kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); kind {
	case "refuse":
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "no funds")
	case "ongoing": // until it is mended
		if !mended {
			w.WriteHeader(http.StatusTooEarly)
		}
	case "broken":
		if !mended {
			w.WriteHeader(http.StatusInternalServerError)
		}
	case "held": // until it is released, or given up
		select {
		case <-b.released:
		case <-r.Context().Done():
		}
	}
}

func (b *branchServer) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mended = true
}

func (b *branchServer) release() { b.once.Do(func() { close(b.released) }) }

func (b *branchServer) all() []branchCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// names are the calls in short: 01 action /ok.
func (b *branchServer) names() []string {
	var names []string
	for _, c := range b.all() {
		names = append(names, c.BranchID+" "+c.Op+" "+c.Path)
	}
	return names
}

// response is an answer read to its end.
type response struct {
	status int
	body   string
}

func (at *site) do(method, path, body string, header ...string) response {
	at.t.Helper()
	ctx, cancel := context.WithTimeout(at.t.Context(), patience)
	defer cancel()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, at.url+path, reader)
	require.NoError(at.t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	r, err := at.client.Do(request)
	require.NoError(at.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(at.t, err)
	require.Equal(at.t, "application/json; charset=utf-8", r.Header.Get("Content-Type"))
	return response{r.StatusCode, string(text)}
}

func (at *site) get(path string) response { return at.do(http.MethodGet, path, "") }

func (at *site) post(path, body string) response { return at.do(http.MethodPost, path, body) }

func (at *site) submit(body any) response {
	at.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(at.t, err)
	return at.post("/api/dtmsvr/submit", string(text))
}

// m is a JSON object.
type m map[string]any

// sagaOf is a submit's body: of steps whose action and compensation are called
// at these paths of the participants, and any further fields.
func (at *site) sagaOf(gid string, more m, paths ...[2]string) m {
	var steps []map[string]string
	var payloads []string
	for _, p := range paths {
		steps = append(steps, map[string]string{"action": at.branch + p[0], "compensate": at.branch + p[1]})
		payloads = append(payloads, `{"amount":30}`)
	}
	body := m{"gid": gid, "trans_type": "saga", "steps": steps, "payloads": payloads}
	for k, v := range more {
		body[k] = v
	}
	return body
}

// query decodes what query says of a saga.
func (at *site) query(gid string) found {
	at.t.Helper()
	r := at.get("/api/dtmsvr/query?gid=" + gid)
	require.Equal(at.t, http.StatusOK, r.status, r.body)
	var f found
	require.NoError(at.t, json.Unmarshal([]byte(r.body), &f))
	return f
}

// until waits for a saga to be as ok says.
func (at *site) until(gid string, ok func(transaction) bool) {
	at.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		f := at.query(gid)
		if f.Transaction != nil && ok(*f.Transaction) {
			return
		}
		require.True(at.t, time.Now().Before(deadline), "saga %s: %+v", gid, f.Transaction)
	}
}

// untilCalled waits until the participants have been called more than n times.
func (at *site) untilCalled(n int) {
	at.t.Helper()
	require.Eventually(at.t, func() bool { return len(at.branches.all()) > n }, patience, 5*time.Millisecond)
}

func putOff(t transaction) bool { return t.Owner == "" && t.FinishTime == nil && t.RollbackTime == nil }

func status(s string) func(transaction) bool {
	return func(t transaction) bool { return t.Status == s }
}
