package server

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"sagabench/internal/secret"
)

// guard stands before every route. With a token, requests must show it. Without
// one the server is reached from its own machine only, where a browser may still
// bring requests of pages from anywhere: those are kept out.
type guard struct {
	token, admin secret.Text
	branchKey    string // what opens the branch endpoints, see BranchesOf
	refused      atomic.Int64
}

func newGuard(cfg Config) *guard {
	return &guard{token: cfg.Token, admin: cfg.AdminToken, branchKey: branchKey(cfg.Token)}
}

func (g *guard) check(c *gin.Context) {
	r := c.Request
	path := r.URL.Path
	switch {
	case !g.token.IsSet():
		if why := brought(r, path); why != "" {
			g.refuse(c, http.StatusForbidden, why)
		}
	case probes[path], path == "/", ofUI(path): // the page asks for the token itself
	case strings.HasPrefix(path, branchPath) && g.hasBranchKey(r.URL.RawQuery):
	case g.token.Matches(bearer(r)), g.isAdmin(r):
	default:
		c.Header("WWW-Authenticate", "Bearer")
		g.refuse(c, http.StatusUnauthorized, "this server wants its token: Authorization: Bearer TOKEN")
	}
}

func (g *guard) refuse(c *gin.Context, status int, why string) {
	g.refused.Add(1)
	answer(c, status, reply{Message: why})
	c.Abort()
}

// isAdmin is asked before a saga is stopped by force.
func (g *guard) isAdmin(r *http.Request) bool { return g.admin.Matches(bearer(r)) }

func (g *guard) hasBranchKey(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		if key, ok := strings.CutPrefix(parameter, branchKeyParameter); ok {
			return subtle.ConstantTimeCompare([]byte(key), []byte(g.branchKey)) == 1
		}
	}
	return false
}

// bearer is the token that a request shows; empty if it shows none.
func bearer(r *http.Request) string {
	const scheme = "Bearer "
	header := r.Header.Get("Authorization")
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return ""
	}
	return header[len(scheme):]
}

func ofUI(path string) bool { return path == "/ui" || strings.HasPrefix(path, "/ui/") }

// brought says why a request may have been made by a page of another site, in a
// browser of this machine, for somebody who could not make it himself. Programs
// send none of these headers but Host.
func brought(r *http.Request, path string) string {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
	case "":
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			return "a page of another site made this request"
		}
	default:
		if !ofUI(path) || r.Method != http.MethodGet { // a link to the page does no harm
			return "a page of another site made this request"
		}
	}
	// A name of its own may be led to us by whoever it belongs to.
	if !isLoopback(r.Host) {
		return "a server without a token is asked by its loopback address, not as " + r.Host
	}
	return ""
}

func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]") // without a port
	}
	if host == "localhost" || host == "" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
