package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sagabench/internal/peer"
)

const (
	// reserveConns are accepted beyond the limit, for probes and metrics: whether a
	// process is alive can be asked also while clients hold all other connections.
	reserveConns = 32
	// minIdle is how long a connection may wait for a request, its first one too,
	// before it is closed to make room for another.
	minIdle = 20 * time.Millisecond
	// spared is how much longer it may wait when a request has come, and was not read
	// yet: the machine may be busy. A client that sends a little and then nothing has
	// no more than this.
	spared = 200 * time.Millisecond
)

// bounded accepts so many connections at once, altogether and from one peer. When
// there are as many, it closes the one that has waited longest for a request. If none
// waits, it accepts connections of a reserve, which are for probes; others wait in the
// kernel. Its connections are TCP connections in all they can do: net/http closes
// those in two steps, so that the answer to a body that was not read reaches its
// client.
type bounded struct {
	net.Listener
	most, perPeer int
	freed         chan struct{} // of one: there may be room
	closed        chan struct{}
	once          sync.Once

	mu      sync.Mutex
	open    map[*boundedConn]struct{}
	regular int // of open, those that are not of the reserve
	peers   map[netip.Addr]int
	waited  time.Duration // in which no regular connection could be accepted
	since   time.Time     // none can now; zero: one can
}

func newBounded(l net.Listener, most, perPeer int) *bounded {
	return &bounded{
		Listener: l, most: most, perPeer: perPeer,
		freed: make(chan struct{}, 1), closed: make(chan struct{}),
		open: make(map[*boundedConn]struct{}), peers: make(map[netip.Addr]int),
	}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	accepted, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := accepted.(*net.TCPConn)
	c := &boundedConn{TCPConn: conn, of: b, peer: peer.Of(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())}
	c.idleSince.Store(time.Now().UnixNano())
	for !b.admit(c) {
		select {
		case <-b.freed:
		case <-time.After(minIdle / 4):
		case <-b.closed:
			accepted.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// admit takes a connection in, if need be in the place of another.
func (b *bounded) admit(c *boundedConn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	tooMany := b.peers[c.peer] >= b.perPeer
	if tooMany || b.regular >= b.most {
		idle := b.longestIdle(now, func(o *boundedConn) bool { return !o.reserve && (!tooMany || o.peer == c.peer) })
		if c.reserve = idle == nil; c.reserve {
			if b.since.IsZero() {
				b.since = now
			}
			if len(b.open)-b.regular >= reserveConns {
				if idle = b.longestIdle(now, func(o *boundedConn) bool { return o.reserve }); idle == nil {
					return false
				}
			}
		}
		if idle != nil {
			if !idle.reserve {
				b.hasRoom(idle.waitsSince(now))
			}
			b.forget(idle)
			idle.TCPConn.Close()
		}
	}
	b.open[c] = struct{}{}
	if !c.reserve {
		b.regular++
		b.peers[c.peer]++
		b.hasRoom(now)
	}
	return true
}

// longestIdle is the connection that has waited longest for a request, of those that
// may be closed for it; nil if there is none.
func (b *bounded) longestIdle(now time.Time, of func(*boundedConn) bool) *boundedConn {
	for {
		var found *boundedConn
		oldest := now.Add(-minIdle).UnixNano()
		for c := range b.open {
			if since := c.idleSince.Load(); since != 0 && since <= oldest && of(c) {
				found, oldest = c, since
			}
		}
		if found == nil || found.spared.Load() || !found.pending() {
			return found
		}
		found.spared.Store(true)
		found.idleSince.CompareAndSwap(oldest, now.Add(spared).UnixNano())
	}
}

// forget makes room. Forgetting twice is allowed.
func (b *bounded) forget(c *boundedConn) {
	if _, ok := b.open[c]; !ok {
		return
	}
	delete(b.open, c)
	if !c.reserve {
		b.regular--
		if b.peers[c.peer]--; b.peers[c.peer] == 0 {
			delete(b.peers, c.peer)
		}
		b.hasRoom(time.Now())
	}
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

// hasRoom ends the time in which there was none.
func (b *bounded) hasRoom(at time.Time) {
	if !b.since.IsZero() {
		b.waited += max(0, at.Sub(b.since))
		b.since = time.Time{}
	}
}

// keptOut is for how long clients were turned away.
func (b *bounded) keptOut() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		return b.waited
	}
	until := time.Now()
	longest := until.Add(-minIdle)
	for c := range b.open { // one that waits makes room, as soon as somebody asks for it
		if since := c.waitsSince(until); !c.reserve && since.Before(longest) {
			until, longest = since, since
		}
	}
	return b.waited + max(0, until.Sub(b.since))
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// boundedConn leaves room for another when it is closed.
type boundedConn struct {
	*net.TCPConn
	of        *bounded
	peer      netip.Addr
	reserve   bool         // accepted beyond the limit: it is for one probe
	idleSince atomic.Int64 // since when it waits for a request, in ns; 0: it does not
	spared    atomic.Bool  // while it waits: it was not closed once, for a request had come
}

// waitsSince is since when the connection waits for a request, or now if it does not.
func (c *boundedConn) waitsSince(now time.Time) time.Time {
	if since := c.idleSince.Load(); since != 0 && since < now.UnixNano() {
		return time.Unix(0, since)
	}
	return now
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.TCPConn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.forget(c)
	return err
}

// boundedOf finds what the listener accepted under what net/http serves.
func boundedOf(c net.Conn) *boundedConn {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	found, _ := c.(*boundedConn)
	return found
}

// noteState is http.Server.ConnState. A connection counts as waiting until the head of
// a request has been read.
func noteState(conn net.Conn, state http.ConnState) {
	switch c := boundedOf(conn); {
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

// reserveKey is where the context of a request says that its connection is of the
// reserve.
type reserveKey struct{}

// noteReserve is http.Server.ConnContext.
func noteReserve(ctx context.Context, conn net.Conn) context.Context {
	if c := boundedOf(conn); c != nil && c.reserve {
		return context.WithValue(ctx, reserveKey{}, true)
	}
	return ctx
}
