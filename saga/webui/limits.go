package webui

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/internal/peer"
)

// maxReading bounds the pages of the store, and whole sagas, that are read at once: of
// each, 8 MiB may be in memory a few times over.
const maxReading = 8

// whileReading keeps a request waiting for its turn to read, unless its client leaves.
func (u *UI) whileReading(c *gin.Context, read func() error) error {
	select {
	case u.reading <- struct{}{}:
	case <-c.Request.Context().Done():
		return context.Cause(c.Request.Context())
	}
	defer func() { <-u.reading }()
	return read()
}

// Wrong logins that one address may make in so much time.
const (
	failuresAllowed = 10
	failureTime     = time.Minute
	maxFailing      = 10_000 // addresses told apart; others count as one
)

// failures counts wrong logins by address: nobody is to guess tokens at leisure.
type failures struct {
	mu    sync.Mutex
	since time.Time
	count map[netip.Addr]int
}

// allow reports whether a login from there may be tried.
func (f *failures) allow(remote string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= failureTime {
		f.since, f.count = now, make(map[netip.Addr]int)
	}
	return f.count[f.key(remote)] < failuresAllowed
}

// add counts a wrong one.
func (f *failures) add(remote string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[f.key(remote)]++
}

// key is whom a login counts for.
func (f *failures) key(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	key := peer.Of(at.Addr())
	if _, known := f.count[key]; !known && len(f.count) >= maxFailing {
		return netip.Addr{}
	}
	return key
}

// logouts are the logins that were ended before their time, until it is there. They
// are known to this process alone.
type logouts struct {
	mu   sync.Mutex
	ends map[string]int64 // Unix seconds, by login
}

// maxLogouts bounds them. Beyond that any is forgotten: it takes the token to make so
// many.
const maxLogouts = 10_000

// add ends a login that is valid.
func (l *logouts) add(login string, ends int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = make(map[string]int64)
	}
	for other, ended := range l.ends {
		if ended <= now.Unix() {
			delete(l.ends, other)
		}
	}
	for other := range l.ends {
		if len(l.ends) < maxLogouts {
			break
		}
		delete(l.ends, other)
	}
	l.ends[strings.Clone(login)] = ends // it is part of the whole header that it came in
}

func (l *logouts) have(login string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ended := l.ends[login]
	return ended
}
