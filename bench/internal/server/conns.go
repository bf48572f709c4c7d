package server

import (
	"net"
	"sync"
)

// bounded accepts so many connections at once; more wait in the kernel, and are
// turned away when it has no room for them either. Its connections are TCP
// connections in all they can do: net/http closes those in two steps, so that the
// answer to a body that was not read reaches its client.
type bounded struct {
	net.Listener
	room   chan struct{} // holds one element per connection
	closed chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, conns int) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, conns), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.room <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &boundedConn{TCPConn: conn.(*net.TCPConn), room: b.room}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// boundedConn leaves room for another when it is closed.
type boundedConn struct {
	*net.TCPConn
	room chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { <-c.room })
	return err
}
