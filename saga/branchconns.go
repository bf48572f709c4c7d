package saga

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// DefaultBranchConns bounds the connections of an HTTPCaller to one host.
const DefaultBranchConns = 1024

// LimitConnections bounds the connections to one host and port, and those to all
// together; total 0: they are not bounded. Calls beyond that wait, within their own
// time, and no answer in time is what their saga learns. It must be called before
// the first call.
func (h *HTTPCaller) LimitConnections(perHost, total int) {
	t := h.client.Transport.(*http.Transport)
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = perHost, perHost
	h.room = nil
	if total > 0 {
		h.room = make(chan struct{}, total)
	}
}

// dialWithin is dial within the bound of all connections. As long as there is no room
// it closes idle connections: they are to other hosts, or they would be used.
func (h *HTTPCaller) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	if h.room == nil {
		return h.dial(ctx, network, address)
	}
	if err := h.takeRoom(ctx); err != nil {
		return nil, err
	}
	conn, err := h.dial(ctx, network, address)
	if err != nil {
		<-h.room
		return nil, err
	}
	return &branchConn{TCPConn: conn.(*net.TCPConn), room: h.room}, nil
}

// lookForIdle is how often a dial that waits looks for connections that became idle.
const lookForIdle = 100 * time.Millisecond

func (h *HTTPCaller) takeRoom(ctx context.Context) error {
	select {
	case h.room <- struct{}{}:
		return nil
	default:
	}
	look := time.NewTicker(lookForIdle)
	defer look.Stop()
	for {
		h.client.CloseIdleConnections()
		select {
		case h.room <- struct{}{}:
			return nil
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
