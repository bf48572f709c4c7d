package sqlstore

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is a way to a server on which links are cut at a given byte, and on
// which nothing may arrive for a while. (Toxiproxy would do, but where it cuts a
// link short it leaves goroutines behind, and it cannot see what passes.)
type proxy struct {
	listener net.Listener
	to       string
	pumps    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]bool
	judge  judge         // nil: all passes
	muteAt int           // see vanishAt; 0: never
	open   chan struct{} // that of new links
}

// judge says of what is on its way how much of it passes, and whether the link
// is cut then.
type judge func(toServer bool, data []byte) (pass int, cut bool)

// link is a client's connection and the one made for it.
type link struct {
	ends [2]net.Conn
	gone chan struct{} // closed when it was cut
	open chan struct{} // closed when data may pass
	last bool          // nothing more passes
	mute bool          // all is lost, and neither end hears of it
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, to: to, links: make(map[*link]bool), open: make(chan struct{})}
	close(p.open)
	p.pumps.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		listener.Close()
		p.cutAll()
		p.pumps.Wait()
	})
	return p
}

// of gives the configuration the way through the proxy.
func (p *proxy) of(cfg Config) Config {
	cfg.URL = strings.Replace(cfg.URL, p.to, p.listener.Addr().String(), 1)
	return cfg
}

func (p *proxy) accept() {
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
		p.pumps.Go(func() { p.pump(l, client, server) })
		p.pumps.Go(func() { p.pump(l, server, client) })
	}
}

func (p *proxy) pump(l *link, from, to net.Conn) {
	defer func() {
		if !p.isMute(l) {
			p.cut(l)
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		open := l.open
		p.mu.Unlock()
		select {
		case <-open:
		case <-l.gone:
			return
		}
		pass, cut := p.judged(l, from == l.ends[0], buf[:n])
		if _, err := to.Write(buf[:pass]); err != nil || cut {
			return
		}
	}
}

func (p *proxy) judged(l *link, toServer bool, data []byte) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if toServer && p.muteAt > 0 {
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
	pass, l.last = p.judge(toServer, data)
	return pass, l.last
}

func (p *proxy) set(j judge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = j
}

// cut closes both ends of a link.
func (p *proxy) cut(l *link) {
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

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		delete(p.links, l)
		l.close()
	}
}

// cutAfter cuts, once, the link on which the n-th byte from now on passes in that
// direction, behind it; with n = 0 the one on which the first would. What is
// returned is closed then.
func (p *proxy) cutAfter(toServer bool, n int) (fired <-chan struct{}) {
	done := make(chan struct{})
	p.set(func(dir bool, data []byte) (int, bool) {
		if dir != toServer || len(data) < n {
			if dir == toServer {
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

// vanishAt has, at the n-th message to the server from now on, the client on that
// link vanish: nothing of it arrives any more, that message neither, and nothing
// says so. Other links work.
func (p *proxy) vanishAt(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muteAt = n
}

// vanished reports whether that has happened.
func (p *proxy) vanished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muteAt == 0
}

func (p *proxy) isMute(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.mute
}

// stall lets nothing arrive, on links that there are or come. What has set out
// arrives when resume is called.
func (p *proxy) stall() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stalled := make(chan struct{})
	p.open = stalled
	for l := range p.links {
		l.open = stalled
	}
	return func() { close(stalled) }
}

// replace has links from now on work again, and leaves those of a stall as they
// are: nobody answers there any more, or says so.
func (p *proxy) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
	close(p.open)
}
