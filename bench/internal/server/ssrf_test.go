package server

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/saga"
)

// names is what the DNS of these tests knows. 192.0.2.0/24 is set aside for
// documentation, and 169.254.169.254 is where clouds keep their secrets.
var names = map[string]net.IP{
	"inner.test.":     net.IPv4(192, 0, 2, 1),
	"metadata.test.":  net.IPv4(169, 254, 169, 254),
	"localhost.test.": net.IPv4(127, 0, 0, 1),
}

// serveNames answers DNS queries of the process from now on.
func serveNames() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answerName(query[:n]), from)
		}
	}()
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "udp", conn.LocalAddr().String())
		},
	}
}

// answerName answers a query of one question: an A record, none, or NXDOMAIN.
func answerName(query []byte) []byte {
	var name strings.Builder
	at := 12 // behind the header
	for query[at] != 0 {
		length := int(query[at])
		name.Write(query[at+1 : at+1+length])
		name.WriteByte('.')
		at += 1 + length
	}
	question := query[12 : at+5]
	const isA, answered, noSuchName = 1, 0x8180, 0x8183
	ip, known := names[name.String()]
	reply := append([]byte{}, query[:2]...)
	flags, answers := uint16(noSuchName), uint16(0)
	if known {
		flags = answered
		if binary.BigEndian.Uint16(query[at+1:]) == isA {
			answers = 1
		}
	}
	for _, field := range []uint16{flags, 1, answers, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, field)
	}
	reply = append(reply, question...)
	if answers == 1 {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name above, A, IN, for 0 s, 4 bytes
		reply = append(reply, ip.To4()...)
	}
	return reply
}

func action(url string) map[string]any {
	return map[string]any{"steps": []any{map[string]string{"action": url}}, "wait_result": false}
}

func TestServer_RefusesBranchesInTheInnerNetwork(t *testing.T) {
	t.Parallel()
	s := testkit.OpenPebble(t)
	at := start(t, s)
	for _, url := range []string{
		"http://192.0.2.1/", "http://169.254.169.254/latest/meta-data", "http://10.0.0.1:6379/", "http://[::ffff:10.0.0.1]/", "http://0.0.0.0/",
		"http://[fe80::1]/", "http://[fd00::1]:8080/", "https://192.0.2.1/",
		"file:///etc/passwd", "gopher://127.0.0.1:6379/_FLUSHALL", "ftp://127.0.0.1/", "unix:///var/run/docker.sock", "//192.0.2.1/", "javascript:1",
	} {
		for _, steps := range []map[string]any{
			{"steps": []any{map[string]string{"action": url}}},
			{"steps": []any{map[string]string{"compensate": url}}},
		} {
			r := at.do(http.MethodPost, submitPath, submission(steps))
			require.Equal(t, http.StatusBadRequest, r.status, "%s: %s", url, r.body)
			require.Contains(t, r.body, "steps[0]")
		}
	}
	require.Zero(t, count(t, s))
}

// A name is judged by what it resolves to when it is dialled.
func TestServer_RefusesNamesThatLeadIntoTheInnerNetwork(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	for gid, url := range map[string]string{
		"by-name": "http://inner.test/", "metadata": "http://metadata.test/latest/meta-data", "in-disguise": "http://0xc0000201/", "as-a-number": "http://3221225985/",
	} {
		r := at.do(http.MethodPost, submitPath, submission(action(url), map[string]any{"gid": gid}))
		if r.status == http.StatusBadRequest {
			continue // refused at once is as well
		}
		require.Equal(t, http.StatusOK, r.status, r.body)
		why := at.heldUp(gid)
		require.True(t, strings.Contains(why, "not on the allow-list") || strings.Contains(why, "no such host"), why)
	}
	require.Contains(t, at.heldUp("by-name"), "192.0.2.1:80 is not on the allow-list")
	require.Contains(t, at.heldUp("metadata"), "169.254.169.254:80 is not on the allow-list")

	// The names are asked, then: one that leads to this machine is called.
	var called atomic.Int64
	participant := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	t.Cleanup(participant.Close)
	url := strings.Replace(participant.URL, "127.0.0.1", "localhost.test", 1)
	r := at.do(http.MethodPost, submitPath, submission(action(url), map[string]any{"gid": "here", "wait_result": true}))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.EqualValues(t, 1, called.Load())
}

// heldUp waits until a saga is deferred, and returns the reason.
func (at *site) heldUp(gid string) string {
	at.t.Helper()
	var why string
	require.Eventually(at.t, func() bool {
		info, err := at.server.coordinator.Get(at.t.Context(), gid)
		why = info.State.RetryReason
		return err == nil && why != ""
	}, patience, poll)
	return why
}

func TestServer_FollowsNoRedirectOfABranch(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t))
	var reached atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inner.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{inner.URL + "/admin", "http://192.0.2.1/"} {
			participant := httptest.NewServer(http.RedirectHandler(to, status))
			gid := saga.NewGID()
			r := at.do(http.MethodPost, submitPath, submission(action(participant.URL), map[string]any{"gid": gid}))
			require.Equal(t, http.StatusOK, r.status, r.body)
			require.Contains(t, at.heldUp(gid), http.StatusText(status))
			participant.Close()
		}
	}
	require.Zero(t, reached.Load())
}

// A coordinator alone has no branches of its own, so its address is not allowed
// as a bench server's is.
func TestServer_AllowsItsOwnAddressToTheBenchOnly(t *testing.T) {
	t.Parallel()
	own := interfaceAddress(t)
	for _, bench := range []bool{true, false} {
		at := start(t, testkit.OpenPebble(t), withToken, func(c *Config, _ *Deps) { c.Listen, c.Bench = net.JoinHostPort(own, "0"), bench })
		of := BranchesOf(at.server.URL(), at.server.cfg.Tokens.First())
		r := at.do(http.MethodPost, submitPath, submission(action(of.Action), map[string]any{"wait_result": true}))
		require.Equal(t, bench || net.ParseIP(own).IsLoopback(), r.status == http.StatusOK, r.body)
	}
}

// interfaceAddress is one of this machine's that is not loopback; without a
// network it is of loopback, and the test has less to say.
func interfaceAddress(t *testing.T) string {
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// Whoever submits sagas cannot have the coordinator call itself, or what else
// listens on its machine, once loopback is closed to branches.
func TestServer_WithoutLoopback_CallsNoOtherPortOfItsMachine(t *testing.T) {
	t.Parallel()
	var called atomic.Int64
	participant := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	t.Cleanup(participant.Close)
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) {
		c.Bench, c.BranchLoopback, c.BranchAllow = false, false, []string{participant.Listener.Addr().String()}
	})
	for _, url := range []string{at.server.URL() + "/metrics", "http://127.0.0.1:1/", "http://[::1]:1/"} {
		r := at.do(http.MethodPost, submitPath, submission(action(url)))
		require.Equal(t, http.StatusBadRequest, r.status, r.body)
		require.Contains(t, r.body, "is not on the allow-list")
	}
	r := at.do(http.MethodPost, submitPath, submission(action(strings.Replace(at.server.URL(), "127.0.0.1", "localhost.test", 1)), map[string]any{"gid": "by-name"}))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Contains(t, at.heldUp("by-name"), "is not on the allow-list")
	r = at.do(http.MethodPost, submitPath, submission(action(participant.URL), map[string]any{"wait_result": true}))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.EqualValues(t, 1, called.Load())
}
