package sqlstore

import (
	"net"
	"sync/atomic"
	"syscall"
)

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
