package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
)

// client is one connection to a server.
type client struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

// dial connects from an address of this machine.
func (at *site) dial(t *testing.T, from string) *client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", strings.TrimPrefix(at.server.URL(), "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(path string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(c.t, err)
}

func (c *client) get(path string) (status int, closes bool) {
	c.t.Helper()
	c.send(path)
	response, err := http.ReadResponse(c.from, nil)
	require.NoError(c.t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(c.t, err)
	return response.StatusCode, response.Close
}

// requireClosed waits until the server has closed the connection.
func (c *client) requireClosed() {
	c.t.Helper()
	_, err := c.from.ReadByte()
	var timeout net.Error
	require.False(c.t, errors.As(err, &timeout) && timeout.Timeout(), "it is open")
	require.Error(c.t, err)
}

const here, elsewhere = "127.0.0.1", "127.0.0.2"

func limited(most, perPeer int) func(*Config, *Deps) {
	return func(c *Config, _ *Deps) { c.MaxConns, c.MaxConnsPerPeer = most, perPeer }
}

// endlessReads waits for requests longer than any test does.
func endlessReads(c *Config, _ *Deps) { c.Read = time.Hour }

func TestServer_WhenFull_ClosesTheConnectionThatWaitedLongest(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), limited(2, 2))
	first, second := at.dial(t, here), at.dial(t, here)
	for _, c := range []*client{first, second, first} {
		status, closes := c.get("/bench/saga")
		require.Equal(t, http.StatusOK, status)
		require.False(t, closes)
	}
	require.Eventually(t, func() bool {
		third := at.dial(t, here)
		status, closes := third.get("/bench/saga")
		return status == http.StatusOK && !closes // not of the reserve
	}, patience, poll)
	second.requireClosed()
	status, _ := first.get("/bench/saga")
	require.Equal(t, http.StatusOK, status, "it has waited less")
}

// Clients that hold all connections and say nothing keep nobody out.
func TestServer_AnswersBesideSilentConnections(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), limited(20, 20), endlessReads)
	for range 200 {
		at.dial(t, here)
	}
	for _, path := range []string{"/livez", "/readyz", "/livez"} {
		status, _ := at.dial(t, elsewhere).get(path)
		require.Equal(t, http.StatusOK, status)
	}
	require.Equal(t, http.StatusOK, at.eventually("/bench/saga", http.StatusOK).status)
}

func TestServer_WhenAllConnectionsAreInUse_AnswersProbesAndTurnsOthersAway(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h, limited(2, 2))
	busy := []*client{at.dial(t, here), at.dial(t, here)}
	for _, c := range busy {
		c.send("/bench/saga")
		<-h.entered
		break // one flusher: the second waits for the first
	}
	busy[1].send("/bench/saga")
	require.Eventually(t, func() bool {
		status, _ := at.dial(t, elsewhere).get("/bench/saga?steps=0")
		return status == http.StatusServiceUnavailable
	}, patience, poll)
	for range 2 * reserveConns { // they are not used up
		for path, want := range map[string]int{
			"/livez": http.StatusOK, "/readyz": http.StatusOK, "/healthz": http.StatusOK, "/api/ping": http.StatusOK,
			"/metrics": http.StatusOK, "/bench/saga": http.StatusServiceUnavailable,
		} {
			c := at.dial(t, elsewhere)
			status, closes := c.get(path)
			require.Equal(t, want, status, path)
			require.True(t, closes, path)
			c.requireClosed()
		}
	}
	require.Positive(t, at.server.listener.acceptWait())
	close(h.release)
	for _, c := range busy {
		response, err := http.ReadResponse(c.from, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		c.conn.Close()
	}
	at.eventually("/bench/saga", http.StatusOK)
	total := at.server.listener.acceptWait()
	require.Equal(t, total, at.server.listener.acceptWait(), "there is room again")
	require.GreaterOrEqual(t, at.scrape()["sagabench_connections_kept_out_seconds_total"], total.Seconds())
}

func TestServer_BoundsTheConnectionsOfOnePeer(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h, limited(4, 2))
	for range 2 {
		at.dial(t, here).send("/bench/saga")
	}
	<-h.entered
	require.Eventually(t, func() bool {
		status, closes := at.dial(t, here).get("/bench/saga?steps=0")
		return status == http.StatusServiceUnavailable && closes
	}, patience, poll)
	status, closes := at.dial(t, elsewhere).get("/bench/saga?steps=0")
	require.Equal(t, http.StatusBadRequest, status, "there is room for others")
	require.False(t, closes)
	close(h.release)
}

// A request that has come is not lost to a server that is too busy to read it at once.
func TestLimitListener_SparesAConnectionWhoseRequestHasCome(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := newLimitListener(listener, 2, 2) // nobody reads from its connections
	t.Cleanup(func() { b.Close() })
	connect := func(says string) (client net.Conn, accepted *limitedConn) {
		client, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		_, err = io.WriteString(client, says)
		require.NoError(t, err)
		conn, err := b.Accept()
		require.NoError(t, err)
		return client, conn.(*limitedConn)
	}
	_, first := connect("GET /livez")
	require.Eventually(t, first.hasUnread, patience, poll)
	_, silent := connect("")
	longAgo := time.Now().Add(-time.Hour).UnixNano()
	first.idleSince.Store(longAgo)
	silent.idleSince.Store(longAgo + 1)
	connect("")
	require.NotContains(t, b.open, silent)
	require.Contains(t, b.open, first)
	first.idleSince.Store(longAgo) // the time it was given is over
	connect("")
	require.NotContains(t, b.open, first)
}

// One client that sends bodies as slowly as it may, without a token, keeps nobody from
// learning that the server lives.
func TestServer_AnswersBesideBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), withToken, limited(20, 4), endlessReads)
	for range 4 + 2*reserveConns {
		c := at.dial(t, here)
		_, err := io.WriteString(c.conn, "POST /api/dtmsvr/submit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
		require.NoError(t, err)
	}
	for range 3 {
		status, _ := at.dial(t, elsewhere).get("/livez")
		require.Equal(t, http.StatusOK, status)
	}
}

// Clients that were turned away once, and connections that have been idle since: the
// next client would be let in.
func TestServer_AcceptWaitEndsWhenAConnectionIsIdle(t *testing.T) {
	t.Parallel()
	h := hold(testkit.OpenPebble(t))
	at := start(t, h, limited(2, 2))
	acceptWait := at.server.listener.acceptWait
	first, second := at.dial(t, here), at.dial(t, here)
	first.send("/bench/saga")
	second.send("/bench/saga")
	<-h.entered
	require.Eventually(t, func() bool {
		status, _ := at.dial(t, here).get("/bench/saga?steps=0")
		return status == http.StatusServiceUnavailable
	}, patience, poll)
	require.Eventually(t, func() bool { return acceptWait() > 0 }, patience, poll)
	close(h.release)
	for _, c := range []*client{first, second} {
		response, err := http.ReadResponse(c.from, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
	}
	var total time.Duration
	require.Eventually(t, func() bool {
		total = acceptWait()
		time.Sleep(10 * minIdle)
		return total == acceptWait()
	}, patience, poll, "both are idle")
	at.eventually("/bench/saga", http.StatusOK)
	require.Equal(t, total, acceptWait())
}
