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

	"sagabench/internal/secret"
	"sagabench/saga/webui"
)

// auth authenticates the requests to all routes, and writes the audit. Without a token only
// this machine reaches the server, and requests that a page of another site made a browser
// send are refused.
type auth struct {
	tokens, admins secret.Tokens
	branchKeys     []string // for the branch endpoints, see BranchesOf
	certificates   bool     // clients must show one
	auditSubmits   bool
	log            *limitedLog
	refused        atomic.Int64
}

func newAuth(cfg Config, log *limitedLog) *auth {
	a := &auth{tokens: cfg.Tokens, admins: cfg.AdminTokens, auditSubmits: cfg.AuditSubmits, certificates: cfg.TLS.CA != "", log: log}
	for _, token := range cfg.Tokens {
		a.branchKeys = append(a.branchKeys, branchKey(token))
	}
	return a
}

// authenticate reports whether a request may proceed. Otherwise it has responded.
func (a *auth) authenticate(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.Path
	switch {
	case a.certificates && !probes[path] && certificate(r) == nil:
		return a.refuse(w, r, http.StatusUnauthorized, "this server wants a client certificate")
	case !a.tokens.AreSet():
		if why := crossSite(r, path); why != "" {
			return a.refuse(w, r, http.StatusForbidden, why)
		}
	case probes[path], path == "/", onPage(path): // the page has a login
	case strings.HasPrefix(path, branchPath) && a.hasBranchKey(r.URL.RawQuery):
	case a.tokens.Matches(bearer(r)), a.isAdmin(r):
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		return a.refuse(w, r, http.StatusUnauthorized, "this server wants its token: Authorization: Bearer TOKEN")
	}
	return true
}

// requireAdmin returns a handler that refuses all but the admin.
func (a *auth) requireAdmin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.isAdmin(r) || a.refuse(w, r, http.StatusForbidden, "only the admin may do this: show the admin's token") {
			next(w, r)
		}
	}
}

// refuse responds, and returns false.
func (a *auth) refuse(w http.ResponseWriter, r *http.Request, status int, why string) bool {
	a.refused.Add(1)
	a.auditRequest(r, webui.ActionRequest, "", status)
	respond(w, status, reply{Message: why})
	return false
}

// isAdmin reports whether a request shows the admin's token.
func (a *auth) isAdmin(r *http.Request) bool {
	return a.admins.AreSet() && a.admins.Matches(bearer(r))
}

func (a *auth) hasBranchKey(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		key, ok := strings.CutPrefix(parameter, branchKeyParameter)
		if !ok {
			continue
		}
		found := 0
		for _, own := range a.branchKeys {
			found |= subtle.ConstantTimeCompare([]byte(key), []byte(own))
		}
		return found == 1
	}
	return false
}

// bearer returns the token in the request's header, or an empty one.
func bearer(r *http.Request) string {
	const scheme = "Bearer "
	header := r.Header.Get("Authorization")
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return ""
	}
	return header[len(scheme):]
}

// certificate returns the client's certificate, if it has shown a valid one, or nil.
func certificate(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.PeerCertificates[0]
}

func onPage(path string) bool { return path == "/ui" || strings.HasPrefix(path, "/ui/") }

// crossSite returns why a request may come from a page of another site, in a browser of
// this machine. Empty: it does not. Programs send none of these headers but Host.
func crossSite(r *http.Request, path string) string {
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
		if !onPage(path) || !slices.Contains(safeMethods, r.Method) { // a link to the page is harmless
			return "a page of another site made this request"
		}
	}
	// The owner of a name may let it resolve to 127.0.0.1 (DNS rebinding). With TLS the name
	// is in our certificate.
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
