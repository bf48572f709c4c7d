package branch_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
)

// 192.0.2.0/24 is set aside for documentation: nothing answers there. Nothing
// is asked either, as the refusal comes before the connection is begun.
func TestHTTP_AddressOffTheList_IsNeverDialled(t *testing.T) {
	t.Parallel()
	h := newHTTPCaller(t, "10.1.0.0/16", "branch.example")
	for _, url := range []string{
		"http://192.0.2.1/", "http://192.0.2.1:8080/x", "https://192.0.2.1/", "http://[2001:db8::1]/", "http://[::ffff:192.0.2.1]/",
		"http://0.0.0.0:1/", "http://[::]:1/", "http://10.2.0.1/", "http://169.254.169.254/latest/meta-data",
	} {
		require.ErrorContains(t, h.Check(url), "allow-list", url)
		began := time.Now()
		outcome, reason := h.Call(within(t, patience), saga.Call{GID: "g", URL: url}) // as if its name had resolved to it
		require.Equal(t, machine.Ended, outcome, url)
		require.Contains(t, reason, "allow-list", url)
		require.Less(t, time.Since(began), patience/2, url)
	}
}

func TestHTTP_Check(t *testing.T) {
	t.Parallel()
	h := newHTTPCaller(t, "10.1.0.0/16", "192.0.2.7", "::ffff:192.0.2.8", "branch.example", "2001:db8::/32")
	for _, url := range []string{
		"http://127.0.0.1", "http://127.9.9.9:80/x?y=z", "https://[::1]:8443/", "http://localhost:8080/in", "HTTP://LOCALHOST/",
		"http://10.1.2.3/", "http://192.0.2.7/", "http://192.0.2.8/", "http://[2001:db8::5]/", "http://[::ffff:10.1.0.1]/",
		"http://user:secret@127.0.0.1/", "http://branch.example/", "http://other.example/", // a name is judged when it is dialled
	} {
		require.NoError(t, h.Check(url), url)
	}
	for _, url := range []string{
		"", "/path", "127.0.0.1:80/x", "http://", "http:///path", "http://:80/", "ftp://127.0.0.1/", "file:///etc/passwd", "unix:///x",
		"http://127.0.0.1:port/", "http://127.0.0.1/\x00", "http://127.0.0.1/\n", "http://[::1/", "http://%zz/", "gopher://127.0.0.1/", "http://192.0.2.9/",
	} {
		require.Error(t, h.Check(url), url)
	}
}

func TestHTTP_AllowedName_IsDialled(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for _, allow := range [][]string{nil, {"LocalHost"}} {
		outcome, reason := newHTTPCaller(t, allow...).Call(within(t, patience), saga.Call{GID: "g", URL: "http://localhost:" + port})
		require.Equal(t, machine.Succeeded, outcome, reason)
	}
}

func TestNewHTTPCaller_BadEntry_IsRefused(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", " ", "10.0.0.0/33", "10.0.0.256", "10.0.0", "300.1.1.1", "http://branch.example", "branch.example:0", "branch.example:65536", "branch.example:", "branch.example:http",
		"10.0.0.1:x", "10.0.0.0/8:80", ":80", "::1:", "[::1]", "*.example:80", "branch.example/",
		"*.example", "user@branch.example", "branch example", "branch.example\n", "::1::", "branch..example", ".example", "example.", "bücher.example",
	} {
		_, err := branch.NewHTTP(branch.HTTPConfig{Allow: []string{"127.0.0.1", entry}})
		require.ErrorIs(t, err, store.ErrInvalid, "%q", entry)
		require.ErrorContains(t, err, fmt.Sprintf("%q", entry))
	}
	for _, entry := range []string{
		"a", "branch.example", "Branch-2.example", "my_host", "10.0.0.0/8", "10.0.0.1", "::1", "2001:db8::/32", "4u.example", "example.4u",
		"branch.example:80", "10.0.0.1:8081", "[::1]:8081",
	} {
		_, err := branch.NewHTTP(branch.HTTPConfig{Allow: []string{entry}})
		require.NoError(t, err, "%q", entry)
	}
}

// A port that is listed opens that port alone; without loopback, nothing on this
// machine is open but what is listed.
func TestHTTP_ListedPort_OpensNoOther(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	count := func(http.ResponseWriter, *http.Request) { called.Add(1) }
	listed, sidecar := serve(t, count), serve(t, count)
	_, port, err := net.SplitHostPort(listed.Listener.Addr().String())
	require.NoError(t, err)
	byName := func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
	for _, tt := range []struct {
		allow string
		url   string
		open  bool
	}{
		{"127.0.0.1:" + port, listed.URL, true},
		{"127.0.0.1:" + port, byName(listed.URL), true},
		{"127.0.0.1:" + port, strings.Replace(listed.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), true},
		{"127.0.0.1:" + port, sidecar.URL, false},
		{"127.0.0.1:" + port, byName(sidecar.URL), false},
		{"127.0.0.1:" + port, "http://127.0.0.1/", false},
		{"LocalHost:" + port, byName(listed.URL), true},
		{"LocalHost:" + port, byName(sidecar.URL), false},
		{"LocalHost:" + port, listed.URL, false},
		{"10.0.0.0/8", listed.URL, false},
		{"127.0.0.1", sidecar.URL, true},
	} {
		where := tt.url + " with " + tt.allow
		h, err := branch.NewHTTP(branch.HTTPConfig{Allow: []string{tt.allow}, NoLoopback: true})
		require.NoError(t, err)
		t.Cleanup(h.Close)
		before := called.Load()
		outcome, reason := h.Call(within(t, patience), saga.Call{GID: "g", URL: tt.url})
		if tt.open {
			require.NoError(t, h.Check(tt.url), where)
			require.Equal(t, machine.Succeeded, outcome, "%s: %s", where, reason)
			continue
		}
		require.Equal(t, machine.Ended, outcome, where)
		require.Contains(t, reason, "allow-list", where)
		require.Equal(t, before, called.Load(), where)
		if !strings.Contains(tt.url, "localhost") { // a name is judged when it is dialled
			require.ErrorContains(t, h.Check(tt.url), "allow-list", where)
		}
	}
}

// Loopback that was taken away does not come back with the whole of the Internet.
func TestHTTP_AWideNetworkIsNotLoopback(t *testing.T) {
	t.Parallel()
	h, err := branch.NewHTTP(branch.HTTPConfig{Allow: []string{"0.0.0.0/0", "::/0", "127.0.0.1:9"}, NoLoopback: true})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	for url, allowed := range map[string]bool{
		"http://127.0.0.1:8080/": false, "http://0.0.0.0:8080/": false, "http://[::1]/": false, "http://[::]/": false,
		"http://[::ffff:127.0.0.1]/": false, "http://127.0.0.1:9/": true, "http://192.0.2.1/": true, "http://[2001:db8::1]/": true,
	} {
		require.Equal(t, allowed, h.Check(url) == nil, url)
	}
	_, port, err := net.SplitHostPort(serve(t, func(http.ResponseWriter, *http.Request) {}).Listener.Addr().String())
	require.NoError(t, err)
	outcome, why := h.Call(within(t, patience), saga.Call{GID: "g", URL: "http://localhost:" + port})
	require.NotEqual(t, machine.Succeeded, outcome)
	require.Contains(t, why, "allow-list")
}
