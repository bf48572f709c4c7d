package saga

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// DefaultBranchConns bounds the connections of an HTTPCaller to one host.
const DefaultBranchConns = 1024

// connectTime bounds each part of connecting: to wait for room, to dial, to shake hands.
// net/http goes on with that when the call has ended for which it began, and counts it
// among the host's connections.
const connectTime = 10 * time.Second

// LimitConnections bounds the connections to one host and port, and those to all
// together; total 0: they are not bounded. Calls beyond that wait, within their own
// time, and no answer in time is what their saga learns. It must be called before
// the first call.
func (h *HTTPCaller) LimitConnections(perHost, total int) {
	h.transport.MaxConnsPerHost, h.transport.MaxIdleConnsPerHost = perHost, perHost
	h.room = nil
	if total > 0 {
		h.room = make(chan struct{}, total)
	}
}

// dialWithin is dial within the bound of all connections. When there is no room it
// closes idle connections: they are to other hosts, or they would be used.
func (h *HTTPCaller) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	if h.room == nil {
		return h.dial(ctx, network, address)
	}
	if !h.enter(ctx) {
		return nil, errors.New("all connections to branches are in use")
	}
	conn, err := h.dial(ctx, network, address)
	if err != nil {
		<-h.room
		return nil, err
	}
	return &branchConn{TCPConn: conn.(*net.TCPConn), room: h.room}, nil
}

// enter waits for room. It looks for idle connections again and again: those that
// become idle meanwhile are to other hosts, too.
func (h *HTTPCaller) enter(ctx context.Context) bool {
	for end := time.Now().Add(connectTime); time.Now().Before(end); {
		select {
		case h.room <- struct{}{}:
			return true
		default:
		}
		h.transport.CloseIdleConnections()
		select {
		case h.room <- struct{}{}:
			return true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// branchConn makes room for another when it is closed.
type branchConn struct {
	*net.TCPConn
	room chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *branchConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { <-c.room })
	return err
}
