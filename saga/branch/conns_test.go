package branch_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
)

// branchHost is a branch that counts its connections, and answers when it is let.
type branchHost struct {
	*httptest.Server
	open, most atomic.Int64
}

func countConnections(t *testing.T, goOn <-chan struct{}) *branchHost {
	c := new(branchHost)
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if goOn != nil {
			<-goOn
		}
	}))
	c.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.most.Store(max(c.most.Load(), c.open.Add(1)))
		case http.StateClosed:
			c.open.Add(-1)
		}
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func TestHTTPCaller_LimitsItsConnections(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ perHost, total, hosts, most int }{
		"to one host":  {perHost: 3, total: 0, hosts: 1, most: 3},
		"to each host": {perHost: 3, total: 0, hosts: 2, most: 6},
		"altogether":   {perHost: 100, total: 4, hosts: 2, most: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := newHTTP(t, branch.HTTPConfig{ConnsPerHost: tt.perHost, Conns: tt.total})
			goOn := make(chan struct{})
			release := sync.OnceFunc(func() { close(goOn) })
			hosts := make([]*branchHost, tt.hosts)
			for i := range hosts {
				hosts[i] = countConnections(t, goOn)
			}
			t.Cleanup(release)
			open := func() (n int64) {
				for _, h := range hosts {
					n += h.open.Load()
				}
				return n
			}
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					outcome, why := caller.Call(within(t, patience), saga.Call{GID: "g", Branch: store.Action(0), URL: hosts[i%len(hosts)].URL})
					assert.Equal(t, machine.Succeeded, outcome, why)
				})
			}
			until(t, "all connections are open", func() bool { return open() == int64(tt.most) })
			release()
			all.Wait() // those that waited are called when others have ended
			most := int64(0)
			for _, h := range hosts {
				most += h.most.Load()
			}
			if tt.total == 0 { // each host has had no more; both together, at different times, may
				require.EqualValues(t, tt.most, most)
			}
			until(t, "no more are open", func() bool { return open() <= int64(tt.most) })
		})
	}
}

// Idle connections to one host do not keep calls of another waiting.
func TestHTTPCaller_MakesRoomForAnotherHost(t *testing.T) {
	t.Parallel()
	caller := newHTTP(t, branch.HTTPConfig{ConnsPerHost: 10, Conns: 1})
	one, other := countConnections(t, nil), countConnections(t, nil)
	for range 3 {
		for _, host := range []*branchHost{one, other} {
			outcome, why := caller.Call(within(t, patience), saga.Call{GID: "g", Branch: store.Action(0), URL: host.URL})
			require.Equal(t, machine.Succeeded, outcome, why)
		}
	}
}

// Nor do connections that become idle only while such a call waits.
func TestHTTPCaller_MakesRoomForAnotherHost_ThatWaitsAlready(t *testing.T) {
	t.Parallel()
	caller := newHTTP(t, branch.HTTPConfig{ConnsPerHost: 1, Conns: 1})
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	one, other := countConnections(t, goOn), countConnections(t, nil)
	t.Cleanup(release)
	var calls sync.WaitGroup
	asked := make(chan string)
	call := func(host *branchHost) {
		ctx := httptrace.WithClientTrace(within(t, patience), &httptrace.ClientTrace{GetConn: func(at string) { asked <- at }})
		calls.Go(func() {
			outcome, why := caller.Call(ctx, saga.Call{GID: "g", Branch: store.Action(0), URL: host.URL})
			assert.Equal(t, machine.Succeeded, outcome, why)
		})
		<-asked
	}
	call(one)
	until(t, "the one connection is in use", func() bool { return one.open.Load() == 1 })
	call(other)
	for range 20 { // these get the connection first, and leave it idle
		call(one)
	}
	release()
	calls.Wait()
}

// Handshakes that a host does not answer end some time, and do not count against it
// for ever.
func TestHTTPCaller_HandshakesThatHang(t *testing.T) {
	t.Parallel()
	silent := make(chan net.Conn, 10)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(silent)
				return
			}
			silent <- conn
		}
	}()
	caller, err := branch.NewHTTP(branch.HTTPConfig{ConnsPerHost: 1})
	require.NoError(t, err)
	t.Cleanup(caller.Close)
	outcome, why := caller.Call(within(t, time.Second), saga.Call{GID: "g", Branch: store.Action(0), URL: "https://" + l.Addr().String()})
	require.Equal(t, machine.Unknown, outcome, why)
	conn := <-silent
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the caller has closed it")
}
