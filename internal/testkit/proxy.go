package testkit

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a way to a server on which links are cut at a given byte, and on
// which nothing may arrive for a while. (Toxiproxy would do, but where it cuts a
// link short it leaves goroutines behind, and it cannot see what passes.)
type Proxy struct {
	listener net.Listener
	to       string
	pumps    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]bool
	judge  Judge // nil: all passes
	muteAt int   // see VanishAt; 0: never
	open   gates // those of new links
}

// gates are closed channels where data may pass: towards the server, and back.
type gates [2]chan struct{}

const toServer, toClient = 0, 1

func opened() (g gates) {
	for way := range g {
		g[way] = make(chan struct{})
		close(g[way])
	}
	return g
}

// Judge says of what is on its way how much of it passes, and whether the link
// is cut then.
type Judge func(toServer bool, data []byte) (pass int, cut bool)

// link is a client's connection and the one made for it.
type link struct {
	ends [2]net.Conn
	gone chan struct{} // closed when it was cut
	open gates
	last bool // nothing more passes
	mute bool // all is lost, and neither end hears of it
}

// NewProxy makes a way to an address that lasts for a test.
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

// Addr is where the proxy listens.
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
	defer func() {
		if !p.isMute(l) {
			p.cut(l)
		}
	}()
	from, to := l.ends[way], l.ends[1-way]
	buf := make([]byte, 64<<10)
	for {
		n, end := from.Read(buf) // the end is held like all else
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
		pass, cut := p.judged(l, way == toServer, buf[:n])
		if _, err := to.Write(buf[:pass]); err != nil || cut {
			return
		}
	}
}

func (p *Proxy) judged(l *link, request bool, data []byte) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request && p.muteAt > 0 {
		p.muteAt--
		l.mute = p.muteAt == 0
	}
	switch {
	case l.mute:
		return 0, false
	case l.last: // what has passed may be answered before the link is cut
		return 0, true
	case p.judge == nil:
		return len(data), false
	}
	pass, l.last = p.judge(request, data)
	return pass, l.last
}

// Set has what passes from now on judged; nil: all passes.
func (p *Proxy) Set(j Judge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = j
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

// CutAfter cuts, once, the link on which the n-th byte from now on passes in that
// direction, behind it; with n = 0 the one on which the first would. What is
// returned is closed then.
func (p *Proxy) CutAfter(request bool, n int) (fired <-chan struct{}) {
	done := make(chan struct{})
	p.Set(func(dir bool, data []byte) (int, bool) {
		if dir != request || len(data) < n {
			if dir == request {
				n -= len(data)
			}
			return len(data), false
		}
		p.judge = nil
		close(done)
		return n, true
	})
	return done
}

// VanishAt has, at the n-th message to the server from now on, the client on that
// link vanish: nothing of it arrives any more, that message neither, and nothing
// says so. Other links work.
func (p *Proxy) VanishAt(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muteAt = n
}

// Vanished reports whether that has happened.
func (p *Proxy) Vanished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muteAt == 0
}

func (p *Proxy) isMute(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.mute
}

// Stall lets nothing arrive, on links that there are or come, nor the end of one.
// What has set out arrives when resume is called.
func (p *Proxy) Stall() (resume func()) {
	requests, answers := p.StallRequests(), p.StallAnswers()
	return func() {
		requests()
		answers()
	}
}

// StallRequests is Stall of what is on its way to the server.
func (p *Proxy) StallRequests() (resume func()) { return p.stall(toServer) }

// StallAnswers is Stall of what is on its way back.
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

// Replace has links from now on work again, and leaves those of a stall as they
// are: nobody answers there any more, or says so.
func (p *Proxy) Replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = opened()
}
