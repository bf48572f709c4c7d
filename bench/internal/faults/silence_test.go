package faults

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate lets pass what arrives, or holds it.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// cable joins a host to its store. While it is unplugged nothing passes, in either
// direction, and no connection is closed: neither side learns that the other has gone.
// What was on its way arrives when it is plugged in again.
type cable struct {
	to                string
	listener          net.Listener
	requests, replies *gate

	mu    sync.Mutex
	conns []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{to: to, listener: listener, requests: newGate(), replies: newGate()}
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			copies.Go(func() { c.join(from, &copies) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.plugIn()
		c.mu.Lock()
		for _, conn := range c.conns {
			conn.Close()
		}
		c.mu.Unlock()
		copies.Wait()
	})
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) join(host net.Conn, copies *sync.WaitGroup) {
	c.requests.wait()
	store, err := net.Dial("tcp", c.to)
	if err != nil {
		host.Close()
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, host, store)
	c.mu.Unlock()
	copies.Go(func() { pass(store, host, c.requests) })
	pass(host, store, c.replies)
}

func pass(to, from net.Conn, through *gate) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		through.wait()
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// unplug holds the replies first. A host that needs one before it commits then leaves
// the store in the middle of a transaction.
func (c *cable) unplug() {
	c.replies.shut()
	time.Sleep(100 * time.Millisecond)
	c.requests.shut()
}

func (c *cable) plugIn() {
	c.requests.reopen()
	c.replies.reopen()
}
