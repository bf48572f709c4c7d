package branch

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// DefaultConnsPerHost limits the connections to one host and port.
const DefaultConnsPerHost = 1024

// connectTime bounds each part of connecting: waiting for a free connection, dialling, the
// TLS handshake. net/http continues to connect when the call that needed the connection has
// ended, and counts the connection towards the host's limit.
const connectTime = 10 * time.Second

// dialLimited dials within the limit of all connections. At the limit it closes idle
// connections, which are to other hosts: to this one they would have been used.
func (h *HTTP) dialLimited(ctx context.Context, network, address string) (net.Conn, error) {
	if h.conns == nil {
		return h.dial(ctx, network, address)
	}
	if !h.acquire(ctx) {
		return nil, errors.New("all connections to branches are in use")
	}
	conn, err := h.dial(ctx, network, address)
	if err != nil {
		<-h.conns
		return nil, err
	}
	return &countedConn{TCPConn: conn.(*net.TCPConn), conns: h.conns}, nil
}

// acquire waits for a connection below the limit. Connections become idle meanwhile, so it
// closes idle ones repeatedly.
func (h *HTTP) acquire(ctx context.Context) bool {
	for end := time.Now().Add(connectTime); time.Now().Before(end); {
		select {
		case h.conns <- struct{}{}:
			return true
		default:
		}
		h.transport.CloseIdleConnections()
		select {
		case h.conns <- struct{}{}:
			return true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// countedConn gives its place back when it is closed.
type countedConn struct {
	*net.TCPConn
	conns chan struct{}
	once  sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { <-c.conns })
	return err
}
