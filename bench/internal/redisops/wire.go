package redisops

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// wire counts what connections carry. Its dial makes them.
type wire struct {
	mu    sync.Mutex
	conns []*countedConn
}

// traffic is what all connections carried since they were opened.
type traffic struct{ sent, received, roundTrips int64 }

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	counted := &countedConn{Conn: conn}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, counted)
	return counted, nil
}

func (w *wire) traffic() (sum traffic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		sum.sent += c.sent.Load()
		sum.received += c.received.Load()
		sum.roundTrips += c.roundTrips.Load()
	}
	return sum
}

// countedConn counts the bytes and the round trips of a TCP connection.
type countedConn struct {
	net.Conn
	sent, received, roundTrips atomic.Int64

	asked atomic.Bool // something was sent since the last data came
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.asked.Store(true) // before: another goroutine may read the reply before Write returns
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.received.Add(int64(n))
		if c.asked.Swap(false) {
			c.roundTrips.Add(1)
		}
	}
	return n, err
}

// SyscallConn lets a client check a connection as it checks one that is not counted:
// go-redis looks at the socket before each use.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}
