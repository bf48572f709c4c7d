package branch_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
)

func newHTTPCaller(t testing.TB, allow ...string) *branch.HTTP {
	t.Helper()
	return newHTTP(t, branch.HTTPConfig{Allow: allow})
}

func newHTTP(t testing.TB, cfg branch.HTTPConfig) *branch.HTTP {
	t.Helper()
	h, err := branch.NewHTTP(cfg)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// serve starts a branch server for one test.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// until polls until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-poll.C {
		require.True(t, time.Now().Before(deadline), "not within %v: %s", patience, what)
	}
}

func TestHTTP_Answers(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	h := newHTTPCaller(t)
	for _, tt := range []struct {
		status int
		body   string
		want   machine.Outcome
	}{
		{200, "", machine.Succeeded},
		{200, `{"dtm_result":"SUCCESS"}`, machine.Succeeded},
		{201, "", machine.Succeeded},
		{204, "", machine.Succeeded},
		{299, "", machine.Succeeded},
		{200, `{"dtm_result":"FAILURE"}`, machine.Failed},
		{200, `{"dtm_result":"ONGOING"}`, machine.Ongoing},
		{200, `ONGOING, no FAILURE yet`, machine.Ongoing},
		{200, "failure", machine.Succeeded}, // in capitals it is
		{409, "", machine.Failed},
		{409, "SUCCESS", machine.Failed},
		{409, "ONGOING", machine.Ongoing},
		{425, "", machine.Ongoing},
		{425, "FAILURE", machine.Ongoing},
		{500, "", machine.Ended},
		{500, "FAILURE", machine.Failed},
		{500, "ONGOING", machine.Ongoing},
		{503, "SUCCESS", machine.Ended},
		{400, "", machine.Ended},
		{404, "", machine.Ended},
		{301, "", machine.Ended},
		{307, "", machine.Ended},
		{304, "", machine.Ended},
		{502, "", machine.Unknown}, // a gateway speaks: who is behind it may be at work
		{504, "", machine.Unknown},
	} {
		status, body = tt.status, tt.body
		outcome, reason := h.Call(within(t, patience), saga.Call{GID: "g", URL: server.URL, Payload: "{}"})
		require.Equal(t, tt.want, outcome, "%d %q", tt.status, tt.body)
		if outcome == machine.Succeeded {
			require.Empty(t, reason)
			continue
		}
		require.Contains(t, reason, fmt.Sprint(tt.status))
		if tt.status != 304 { // which has no body
			require.Contains(t, reason, tt.body)
		}
	}
}

// A submitter that passes inbound headers on sends Accept-Encoding too. A FAILURE
// must be seen however its answer is packed.
func TestHTTP_CompressedFailure_IsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Accept-Encoding", "accept-encoding"} {
		for _, tt := range []struct {
			accepts, coding string // of the saga's header, and of what the branch takes it for
			want            machine.Outcome
		}{
			{"", "", machine.Failed},
			{"gzip", "gzip", machine.Failed},
			{"gzip, deflate, br", "gzip", machine.Failed},
			{"gzip;q=0", "identity", machine.Failed},
			{"br", "br", machine.Unknown}, // packed though nobody asked for it: unreadable
			{"", "x-gzip, gzip", machine.Unknown},
		} {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				const answer = `{"dtm_result":"FAILURE"}`
				if tt.coding != "" {
					w.Header().Set("Content-Encoding", tt.coding)
				}
				if tt.coding == "" || tt.coding == "identity" {
					_, _ = io.WriteString(w, answer)
					return
				}
				packed := gzip.NewWriter(w)
				_, _ = io.WriteString(packed, answer)
				_ = packed.Close()
			})
			outcome, reason := newHTTPCaller(t).Call(within(t, patience), saga.Call{
				GID: "g", URL: server.URL, Payload: "{}", Headers: map[string]string{name: tt.accepts},
			})
			require.Equal(t, tt.want, outcome, "%s: %s, answered in %q", name, tt.accepts, tt.coding)
			if tt.want == machine.Unknown {
				require.Contains(t, reason, fmt.Sprintf("Content-Encoding %q", tt.coding))
			}
		}
	}
}

// A part of an answer may lack the word that says what it means.
func TestHTTP_RangeOfAFailure_IsNotAskedFor(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "answer.json", time.Time{}, strings.NewReader(`{"dtm_result":"FAILURE"}`))
	})
	outcome, _ := newHTTPCaller(t).Call(within(t, patience), saga.Call{
		GID: "g", URL: server.URL, Headers: map[string]string{"range": "bytes=0-3"},
	})
	require.Equal(t, machine.Failed, outcome)
}

func TestHTTP_Redirect_IsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed.Add(1)
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	for _, payload := range []string{"", "{}"} {
		outcome, reason := newHTTPCaller(t).Call(within(t, patience), saga.Call{GID: "g", URL: server.URL, Payload: payload})
		require.Equal(t, machine.Ended, outcome)
		require.Contains(t, reason, "307")
	}
	require.Zero(t, followed.Load())
}

func TestHTTP_Request(t *testing.T) {
	t.Parallel()
	type seen struct{ method, uri, contentType, body string }
	var got seen
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.RequestURI, r.Header.Get("Content-Type"), string(body)}
	})
	h := newHTTPCaller(t)
	for _, tt := range []struct {
		path, payload string
		branch        store.Branch
		want          seen
	}{
		{"/in", `{"amount":30}`, store.Action(0), seen{
			"POST", "/in?gid=g-1&trans_type=saga&branch_id=01&op=action", "application/json", `{"amount":30}`,
		}},
		{"/in", "", store.Action(0), seen{"GET", "/in?gid=g-1&trans_type=saga&branch_id=01&op=action", "", ""}},
		{"", "1", store.Compensation(1), seen{
			"POST", "/?gid=g-1&trans_type=saga&branch_id=02&op=compensate", "application/json", "1",
		}},
		{"/in?a=b%20c&d", "", store.Compensation(11), seen{
			"GET", "/in?a=b%20c&d&gid=g-1&trans_type=saga&branch_id=12&op=compensate", "", "",
		}},
		{"/in?", "", store.Action(999), seen{"GET", "/in?&gid=g-1&trans_type=saga&branch_id=1000&op=action", "", ""}},
		{"/in#part?x", "", store.Action(0), seen{"GET", "/in?gid=g-1&trans_type=saga&branch_id=01&op=action", "", ""}},
	} {
		outcome, reason := h.Call(within(t, patience), saga.Call{
			GID: "g-1", Branch: tt.branch, URL: server.URL + tt.path, Payload: tt.payload,
		})
		require.Equal(t, machine.Succeeded, outcome, reason)
		require.Equal(t, tt.want, got)
	}
}

// counted starts a server that counts the connections it accepts.
func counted(t *testing.T, handler http.HandlerFunc) (url string, accepted *atomic.Int64) {
	t.Helper()
	accepted = new(atomic.Int64)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, accepted
}

func TestHTTP_Connections_AreReused(t *testing.T) {
	t.Parallel()
	const callers, each = 50, 20
	url, accepted := counted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "SUCCESS") })
	h := newHTTPCaller(t)
	for range each {
		outcome, reason := h.Call(within(t, patience), saga.Call{GID: "g", URL: url})
		require.Equal(t, machine.Succeeded, outcome, reason)
	}
	require.EqualValues(t, 1, accepted.Load(), "one after another")

	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				h.Call(t.Context(), saga.Call{GID: "g", URL: url, Payload: "{}"})
			}
		})
	}
	all.Wait()
	// A call may dial while another is about to give its connection back.
	require.LessOrEqual(t, accepted.Load(), int64(2*callers), "for %d calls side by side", callers*each)
}

func TestHTTP_HugeAnswer_IsJudgedByItsBeginning(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("op") == "compensate" {
			_, _ = io.WriteString(w, "FAILURE ")
		}
		for range 1 << 10 { // 64 MiB, if anybody took it
			if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, "FAILURE")
	})
	h := newHTTPCaller(t)
	outcome, reason := h.Call(within(t, patience), saga.Call{GID: "g", URL: server.URL})
	require.Equal(t, machine.Succeeded, outcome, reason)
	outcome, reason = h.Call(within(t, patience), saga.Call{GID: "g", URL: server.URL, Branch: store.Compensation(0)})
	require.Equal(t, machine.Failed, outcome)
	require.Less(t, len(reason), 1024)
}

func TestHTTP_NoAnswerInTime_IsUnknown(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{"no answer": "", "half an answer": "FAIL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				select {
				case <-r.Context().Done():
				case <-over:
				}
			})
			t.Cleanup(func() { close(over) })
			began := time.Now()
			outcome, reason := newHTTPCaller(t).Call(within(t, time.Second), saga.Call{GID: "g", URL: server.URL})
			require.Equal(t, machine.Unknown, outcome)
			require.Contains(t, reason, "deadline exceeded")
			require.Less(t, time.Since(began), patience/2)
		})
	}
}

func TestHTTP_NobodyListens_HasEnded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	outcome, reason := newHTTPCaller(t).Call(within(t, patience), saga.Call{GID: "g", URL: server.URL})
	require.Equal(t, machine.Ended, outcome)
	require.Contains(t, reason, "refused")
}

func TestHTTP_ConnectionCutBeforeTheAnswer_IsUnknown(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"nothing":          "",
		"half a head":      "HTTP/1.1 200 O",
		"half a body":      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSUCCESS",
		"not HTTP":         "SUCCESS\r\n\r\n",
		"a head too large": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, reason := newHTTPCaller(t).Call(within(t, patience), saga.Call{GID: "g", URL: answering(t, said), Payload: "1"})
			require.Equal(t, machine.Unknown, outcome)
			require.NotEmpty(t, reason)
		})
	}
}

// answering serves each connection the same bytes and closes it.
func answering(t *testing.T, said string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
				_, _ = io.WriteString(conn, said)
			}
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return "http://" + listener.Addr().String()
}

// Many servers repeat the URL, with its query, where they redirect.
func TestHTTP_ARedirectIsNotQuoted(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/pay/", func(http.ResponseWriter, *http.Request) {})
	for name, handler := range map[string]http.HandlerFunc{
		"to a slash": mux.ServeHTTP,
		"to nowhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz"+r.URL.String())
			w.WriteHeader(http.StatusFound)
		},
	} {
		outcome, why := newHTTPCaller(t).Call(within(t, patience), saga.Call{GID: "g", URL: serve(t, handler).URL + "/pay?key=topsecret"})
		require.NotEqual(t, machine.Succeeded, outcome, name)
		require.Contains(t, why, "3", name)
		require.NotContains(t, why, "topsecret", name)
	}
}

// The transport sends some requests again when a connection breaks that was used
// before. That the second one reaches nobody does not mean that the first did not.
func TestHTTP_SentAgainAndRefused_IsUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload string
		headers map[string]string
	}{
		"GET":                    {},
		"POST":                   {payload: "{}"},
		"POST, Idempotency-Key":  {"{}", map[string]string{"idempotency-key": "1"}},
		"POST, -Idempotency-Key": {"{}", map[string]string{"x-idempotency-key": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			server := httptest.NewUnstartedServer(nil)
			listener := server.Listener
			server.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if calls.Add(1) == 2 {
					listener.Close()
					panic(http.ErrAbortHandler)
				}
			})
			server.Start()
			t.Cleanup(server.Close)
			h := newHTTPCaller(t)
			call := saga.Call{GID: "g", URL: server.URL, Payload: tt.payload, Headers: tt.headers}
			outcome, why := h.Call(within(t, patience), call)
			require.Equal(t, machine.Succeeded, outcome, why)
			outcome, why = h.Call(within(t, patience), call)
			require.Equal(t, machine.Unknown, outcome, why)
			outcome, why = h.Call(within(t, patience), call)
			require.Equal(t, machine.Ended, outcome, why)
			require.EqualValues(t, 2, calls.Load())
		})
	}
}
