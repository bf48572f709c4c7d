package load

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// inBubble runs a test on a clock that stands still while anybody works. So times and
// counts are exact, however fast the machine is. A request takes as long as its handler
// sleeps.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// bubbled is a configuration whose requests reach the handler over a network in memory:
// a bubble's clock would stand still while somebody waits for a socket.
func bubbled(t *testing.T, handler http.HandlerFunc) Config {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(network) })
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		serving.Wait()
	})
	cfg := config(t, "http://a/bench/saga")
	cfg.dial = network.dial
	return cfg
}

// pipes is a network in memory with one server, whatever its address.
type pipes struct {
	conns  chan net.Conn // of clients that dial
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*pipes)(nil)

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{} }
