package sqlstore

import (
	"net"
	"sync/atomic"
)

// countedConn is a connection to a server whose round trips are counted: every
// time that something was sent and then something is waited for.
type countedConn struct {
	net.Conn
	roundTrips *atomic.Int64
	sent       atomic.Bool
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
