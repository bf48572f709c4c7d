package testkit

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy forwards connections to a server. It can cut them after a given byte, and delay
// all data for a while. (Toxiproxy leaks goroutines when it cuts a connection, and cannot
// look at the data.)
type Proxy struct {
	listener net.Listener
	to       string
	pumps    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]bool
	filter Filter // nil: all passes
	vanish int    // see VanishAt; 0: never
	open   gates  // of new links
}

// gates has a channel for each direction, to the server and back. Data passes when it is
// closed.
type gates [2]chan struct{}

const toServer, toClient = 0, 1

func opened() (g gates) {
	for way := range g {
		g[way] = make(chan struct{})
		close(g[way])
	}
	return g
}

// Filter returns how many bytes of data pass, and whether the link is then cut.
type Filter func(toServer bool, data []byte) (pass int, cut bool)

// link is a client's connection and the one made for it.
type link struct {
	ends [2]net.Conn
	gone chan struct{} // closed when the link is cut
	open gates
	last bool // nothing more passes
}

// NewProxy starts a proxy to an address and stops it when the test ends.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: listener, to: to, links: make(map[*link]bool), open: opened()}
	p.pumps.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		listener.Close()
		p.CutAll()
		p.pumps.Wait()
	})
	return p
}

// Addr returns the address that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{ends: [2]net.Conn{client, server}, gone: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			l.close()
			continue
		}
		l.open = p.open
		p.links[l] = true
		p.mu.Unlock()
		p.pumps.Go(func() { p.pump(l, toServer) })
		p.pumps.Go(func() { p.pump(l, toClient) })
	}
}

func (p *Proxy) pump(l *link, way int) {
	defer p.cut(l)
	from, to := l.ends[way], l.ends[1-way]
	buf := make([]byte, 64<<10)
	for {
		n, end := from.Read(buf) // a stall delays the end, too
		p.mu.Lock()
		open := l.open[way]
		p.mu.Unlock()
		select {
		case <-open:
		case <-l.gone:
			return
		}
		if end != nil {
			return
		}
		pass, cut := p.filtered(l, way == toServer, buf[:n])
		if _, err := to.Write(buf[:pass]); err != nil || cut {
			return
		}
	}
}

func (p *Proxy) filtered(l *link, request bool, data []byte) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request && p.vanish > 0 {
		if p.vanish--; p.vanish == 0 {
			l.open = gates{make(chan struct{}), make(chan struct{})}
			return 0, false
		}
	}
	switch {
	case l.last: // the data that passed may be answered before the link is cut
		return 0, true
	case p.filter == nil:
		return len(data), false
	}
	pass, l.last = p.filter(request, data)
	return pass, l.last
}

// Set filters data from now on; nil: all passes.
func (p *Proxy) Set(f Filter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
}

// cut closes both ends of a link.
func (p *Proxy) cut(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[l] {
		delete(p.links, l)
		l.close()
	}
}

func (l *link) close() {
	close(l.gone)
	for _, end := range l.ends {
		end.Close()
	}
}

// CutAll closes all links.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		delete(p.links, l)
		l.close()
	}
}

// CutAfter cuts one link: after the n-th byte from now on in that direction or, with
// n = 0, before the first. It closes fired then.
func (p *Proxy) CutAfter(request bool, n int) (fired <-chan struct{}) {
	done := make(chan struct{})
	p.Set(func(dir bool, data []byte) (int, bool) {
		if dir != request || len(data) < n {
			if dir == request {
				n -= len(data)
			}
			return len(data), false
		}
		p.filter = nil
		close(done)
		return n, true
	})
	return done
}

// VanishAt drops the n-th message to the server from now on, and stalls its link for
// good. Other links work.
func (p *Proxy) VanishAt(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vanish = n
}

// Vanished reports whether VanishAt has dropped its message.
func (p *Proxy) Vanished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vanish == 0
}

// Stall delays all data, and the ends of connections, on present and future links until
// resume is called.
func (p *Proxy) Stall() (resume func()) {
	requests, answers := p.StallRequests(), p.StallAnswers()
	return func() {
		requests()
		answers()
	}
}

// StallRequests is Stall for data to the server only.
func (p *Proxy) StallRequests() (resume func()) { return p.stall(toServer) }

// StallAnswers is Stall for data from the server only.
func (p *Proxy) StallAnswers() (resume func()) { return p.stall(toClient) }

func (p *Proxy) stall(way int) (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stalled := make(chan struct{})
	p.open[way] = stalled
	for l := range p.links {
		l.open[way] = stalled
	}
	return func() { close(stalled) }
}

// Replace makes future links work, while those of a stall stay stalled.
func (p *Proxy) Replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = opened()
}
