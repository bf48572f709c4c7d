package sqlstore

import (
	"net"
	"sync/atomic"
	"syscall"
)

// countedConn is a connection to a server whose round trips are counted: every
// time that something was sent and then something is waited for.
type countedConn struct {
	net.Conn
	roundTrips *atomic.Int64
	sent       atomic.Bool
}

// SyscallConn implements syscall.Conn, through which the client of MySQL looks
// whether the server has closed a connection that was idle.
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
