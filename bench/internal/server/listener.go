package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sagabench/internal/peer"
)

const (
	// reserveConns are accepted beyond the limit, for probes and metrics.
	reserveConns = 32
	// minIdle is how long a connection may wait for a request, its first one too, before
	// it may be closed to make room for another.
	minIdle = 20 * time.Millisecond
	// unreadGrace is how much longer it may wait, once, if bytes of a request have arrived
	// but were not read: the machine may be busy.
	unreadGrace = 200 * time.Millisecond
)

// limitListener limits the open connections, altogether and of each peer. At the limit it
// closes the connection that has waited longest for a request. If none waits, it accepts
// reserved connections, which are for probes; further ones wait in the kernel.
//
// Its connections are TCP connections, with CloseWrite: net/http needs that for the response
// to reach a client whose body was not read.
type limitListener struct {
	net.Listener
	max, perPeer int
	freed        chan struct{} // a connection was closed
	closed       chan struct{}
	once         sync.Once

	mu        sync.Mutex
	open      map[*limitedConn]struct{}
	regular   int // of open, those that are not reserved
	peers     map[netip.Addr]int
	waited    time.Duration // in which no regular connection could be accepted
	fullSince time.Time     // zero: a regular connection can be accepted
}

func newLimitListener(l net.Listener, most, perPeer int) *limitListener {
	return &limitListener{
		Listener: l, max: most, perPeer: perPeer,
		freed: make(chan struct{}, 1), closed: make(chan struct{}),
		open: make(map[*limitedConn]struct{}), peers: make(map[netip.Addr]int),
	}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := accepted.(*net.TCPConn)
	c := &limitedConn{TCPConn: conn, listener: l, peer: peer.Of(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())}
	c.idleSince.Store(time.Now().UnixNano())
	for !l.admit(c) {
		select {
		case <-l.freed:
		case <-time.After(minIdle / 4):
		case <-l.closed:
			accepted.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// admit adds a connection, and closes an idle one for it at the limit. Returns false if
// the reserve is used up, too.
func (l *limitListener) admit(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	peerFull := l.peers[c.peer] >= l.perPeer
	if peerFull || l.regular >= l.max {
		idle := l.longestIdle(now, func(o *limitedConn) bool { return !o.reserved && (!peerFull || o.peer == c.peer) })
		if c.reserved = idle == nil; c.reserved {
			if l.fullSince.IsZero() {
				l.fullSince = now
			}
			if len(l.open)-l.regular >= reserveConns {
				if idle = l.longestIdle(now, func(o *limitedConn) bool { return o.reserved }); idle == nil {
					return false
				}
			}
		}
		if idle != nil {
			if !idle.reserved {
				l.endFull(idle.waitsSince(now))
			}
			l.remove(idle)
			idle.TCPConn.Close()
		}
	}
	l.open[c] = struct{}{}
	if !c.reserved {
		l.regular++
		l.peers[c.peer]++
		l.endFull(now)
	}
	return true
}

// longestIdle returns the candidate that has waited longest for a request, or nil. One
// with unread bytes is passed over once, for unreadGrace.
func (l *limitListener) longestIdle(now time.Time, candidate func(*limitedConn) bool) *limitedConn {
	for {
		var found *limitedConn
		oldest := now.Add(-minIdle).UnixNano()
		for c := range l.open {
			if since := c.idleSince.Load(); since != 0 && since <= oldest && candidate(c) {
				found, oldest = c, since
			}
		}
		if found == nil || found.spared.Load() || !found.hasUnread() {
			return found
		}
		found.spared.Store(true)
		found.idleSince.CompareAndSwap(oldest, now.Add(unreadGrace).UnixNano())
	}
}

// remove takes a connection out. It may be called twice.
func (l *limitListener) remove(c *limitedConn) {
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	if !c.reserved {
		l.regular--
		if l.peers[c.peer]--; l.peers[c.peer] == 0 {
			delete(l.peers, c.peer)
		}
		l.endFull(time.Now())
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// endFull ends a time in which no regular connection could be accepted.
func (l *limitListener) endFull(at time.Time) {
	if !l.fullSince.IsZero() {
		l.waited += max(0, at.Sub(l.fullSince))
		l.fullSince = time.Time{}
	}
}

// acceptWait returns the time in which no regular connection could be accepted.
func (l *limitListener) acceptWait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fullSince.IsZero() {
		return l.waited
	}
	until := time.Now()
	longest := until.Add(-minIdle)
	for c := range l.open { // an idle connection would be closed for a new one
		if since := c.waitsSince(until); !c.reserved && since.Before(longest) {
			until, longest = since, since
		}
	}
	return l.waited + max(0, until.Sub(l.fullSince))
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection of a limitListener.
type limitedConn struct {
	*net.TCPConn
	listener  *limitListener
	peer      netip.Addr
	reserved  bool         // accepted beyond the limit, for one probe
	idleSince atomic.Int64 // Unix nanoseconds since which it waits for a request; 0: it does not
	spared    atomic.Bool  // it had its unreadGrace since the last request
}

// waitsSince returns since when the connection waits for a request, or now if it does not.
func (c *limitedConn) waitsSince(now time.Time) time.Time {
	if since := c.idleSince.Load(); since != 0 && since < now.UnixNano() {
		return time.Unix(0, since)
	}
	return now
}

// hasUnread reports whether bytes have arrived that were not read yet.
func (c *limitedConn) hasUnread() (yes bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // fails if it is closed
		var first [1]byte
		n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = err == nil && n > 0
	})
	return yes
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.TCPConn.Close()
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.remove(c)
	return err
}

// limitedConnOf returns the connection below one of net/http, or nil.
func limitedConnOf(c net.Conn) *limitedConn {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	found, _ := c.(*limitedConn)
	return found
}

// trackIdle is http.Server.ConnState. A connection waits until the header of a request has
// been read.
func trackIdle(conn net.Conn, state http.ConnState) {
	switch c := limitedConnOf(conn); {
	case c == nil:
	case state == http.StateActive:
		c.idleSince.Store(0)
	case state == http.StateIdle:
		if c.spared.Load() {
			c.spared.Store(false)
		}
		c.idleSince.Store(time.Now().UnixNano())
	}
}

// reservedKey marks the context of requests on reserved connections.
type reservedKey struct{}

// markReserved is http.Server.ConnContext.
func markReserved(ctx context.Context, conn net.Conn) context.Context {
	if c := limitedConnOf(conn); c != nil && c.reserved {
		return context.WithValue(ctx, reservedKey{}, true)
	}
	return ctx
}
