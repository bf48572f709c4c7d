package server

import (
	"crypto/subtle"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"sagabench/internal/secret"
	"sagabench/saga/webui"
)

// guard stands before every route, and writes the audit. With a token, requests must show it. Without
// one the server is reached from its own machine only, where a browser may still
// bring requests of pages from anywhere: those are kept out.
type guard struct {
	tokens, admins secret.Tokens
	branchKeys     []string // what opens the branch endpoints, see BranchesOf
	certificates   bool     // clients show one, too
	auditSubmits   bool
	seldom         *seldom
	refused        atomic.Int64
}

func newGuard(cfg Config, log *seldom) *guard {
	g := &guard{tokens: cfg.Tokens, admins: cfg.AdminTokens, auditSubmits: cfg.AuditSubmits, certificates: cfg.TLS.CA != "", seldom: log}
	for _, token := range cfg.Tokens {
		g.branchKeys = append(g.branchKeys, branchKey(token))
	}
	return g
}

func (g *guard) check(c *gin.Context) {
	r := c.Request
	path := r.URL.Path
	switch {
	case g.certificates && !probes[path] && certificate(r) == nil:
		g.refuse(c, http.StatusUnauthorized, "this server wants a client certificate")
	case !g.tokens.AreSet():
		if why := brought(r, path); why != "" {
			g.refuse(c, http.StatusForbidden, why)
		}
	case probes[path], path == "/", ofUI(path): // the page asks for the token itself
	case strings.HasPrefix(path, branchPath) && g.hasBranchKey(r.URL.RawQuery):
	case g.tokens.Matches(bearer(r)), g.isAdmin(r):
	default:
		c.Header("WWW-Authenticate", "Bearer")
		g.refuse(c, http.StatusUnauthorized, "this server wants its token: Authorization: Bearer TOKEN")
	}
}

// admin stands before what is for the admin only.
func (g *guard) admin(c *gin.Context) {
	if !g.isAdmin(c.Request) {
		g.refuse(c, http.StatusForbidden, "only the admin may do this: show the admin's token")
	}
}

func (g *guard) refuse(c *gin.Context, status int, why string) {
	g.refused.Add(1)
	g.auditedRequest(c.Request, webui.ActionRequest, "", status)
	answer(c, status, reply{Message: why})
	c.Abort()
}

// isAdmin is asked before a saga is stopped by force, and a profile given.
func (g *guard) isAdmin(r *http.Request) bool {
	return g.admins.AreSet() && g.admins.Matches(bearer(r))
}

func (g *guard) hasBranchKey(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		key, ok := strings.CutPrefix(parameter, branchKeyParameter)
		if !ok {
			continue
		}
		found := 0
		for _, own := range g.branchKeys {
			found |= subtle.ConstantTimeCompare([]byte(key), []byte(own))
		}
		return found == 1
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

// certificate is the one that a client has shown, and its authority signed; nil
// without one.
func certificate(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.PeerCertificates[0]
}

func ofUI(path string) bool { return path == "/ui" || strings.HasPrefix(path, "/ui/") }

// brought says why a request may have been made by a page of another site, in a
// browser of this machine, for somebody who could not make it himself. Programs
// send none of these headers but Host.
func brought(r *http.Request, path string) string {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
	case "":
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+"://"+r.Host {
			return "a page of another site made this request"
		}
	default:
		if !ofUI(path) || !slices.Contains(reading, r.Method) { // a link to the page does no harm
			return "a page of another site made this request"
		}
	}
	// A name of its own may be led to us by whoever it belongs to. It is not in our
	// certificate, then.
	if r.TLS == nil && !isLoopback(r.Host) {
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
