package server

import (
	"net"
	"sync"
	"time"
)

// bounded accepts so many connections at once, and one more that waits for room; others
// wait in the kernel, and are turned away when it has no room for them either. Its
// connections are TCP connections in all they can do: net/http closes those in two
// steps, so that the answer to a body that was not read reaches its client.
type bounded struct {
	net.Listener
	room   chan struct{} // holds one element per connection
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	waited time.Duration // in which a connection waited for room
	since  time.Time     // one does now; zero: none does
}

func newBounded(l net.Listener, conns int) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, conns), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case b.room <- struct{}{}:
	default:
		if !b.wait() {
			conn.Close()
			return nil, net.ErrClosed
		}
	}
	return &boundedConn{TCPConn: conn.(*net.TCPConn), room: b.room}, nil
}

// wait takes room for a connection when there is some; there is none any more when the
// listener is closed.
func (b *bounded) wait() (room bool) {
	b.note(time.Now())
	defer b.note(time.Time{})
	select {
	case b.room <- struct{}{}:
		return true
	case <-b.closed:
		return false
	}
}

// note notes since when a connection waits.
func (b *bounded) note(since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.since.IsZero() {
		b.waited += time.Since(b.since)
	}
	b.since = since
}

// keptOut is for how long there was a connection that waited for room.
func (b *bounded) keptOut() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		return b.waited
	}
	return b.waited + time.Since(b.since)
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
