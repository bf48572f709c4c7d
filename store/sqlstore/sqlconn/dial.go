package sqlconn

import (
	"context"
	"database/sql/driver"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Dialer opens a network connection.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// NewDialer returns a Dialer whose connections add their round trips to a counter.
// Keep-alives find a server that has been silent for about so long, also on an idle
// connection.
func NewDialer(silence time.Duration, roundTrips *atomic.Int64) Dialer {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 2, Count: 2}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: c, roundTrips: roundTrips}, nil
	}
}

// countedConn is a connection that counts its round trips: each read that follows a
// write.
type countedConn struct {
	net.Conn
	roundTrips *atomic.Int64
	sent       atomic.Bool
}

// SyscallConn implements syscall.Conn, with which the client of MySQL checks whether
// the server has closed an idle connection.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *countedConn) Read(p []byte) (int, error) {
	if c.sent.Swap(false) {
		c.roundTrips.Add(1)
	}
	return c.Conn.Read(p)
}

// BoundedConnector gives up on a server that accepts a connection and then does not
// answer. The client bounds dialling only, and the pool may connect without a caller,
// one connection at a time: it would never get another.
type BoundedConnector struct {
	driver.Connector
	Timeout time.Duration
}

// Connect implements driver.Connector.
func (c BoundedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.Connector.Connect(ctx)
}
