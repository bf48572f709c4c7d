package saga

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// maxAnswerBytes is how much of a branch's answer is read, of its body and of its
// head; what it means stands at the beginning.
const maxAnswerBytes = 64 << 10

// HTTPCaller calls branches over HTTP: POST with the payload, or GET where it
// is empty; gid, trans_type, branch_id and op are query parameters. The answer
// means, in this order:
//
//	status 425, or a body that contains ONGOING   not decided yet
//	status 409, or a body that contains FAILURE   refused
//	any 2xx                                       succeeded
//	anything else, or none                        unknown: ask again
//
// Answers may be compressed with gzip. One in another Content-Encoding cannot be
// read, and is unknown. So that no other is asked for, the saga's Accept-Encoding
// and Range headers are not sent.
//
// Redirects are not followed. It connects to loopback addresses and to what it
// was allowed, and to nothing else: a saga's URLs come from its submitter, who
// must not reach through us what he cannot reach himself.
type HTTPCaller struct {
	transport *http.Transport // not a client: that reads Location, and repeats it in its errors
	allow     allowList
	room      chan struct{} // of all connections; nil: they are not bounded
}

var _ Caller = (*HTTPCaller)(nil)

// HTTPConfig says how branches are called over HTTP.
type HTTPConfig struct {
	// Allow are the host names and IP addresses, each with or without a port
	// (HOST:PORT), and the networks (10.1.0.0/16) that branches may be on. An address
	// is checked when it is dialled, after the name was resolved; an allowed name may
	// resolve to any.
	Allow []string

	// NoLoopback takes loopback addresses off what is allowed. Allow may have some,
	// such as 127.0.0.1:8081.
	NoLoopback bool

	TLS *tls.Config // for https; nil: what crypto/tls does
}

// NewHTTPCaller allows loopback, and what HTTPConfig.Allow describes.
func NewHTTPCaller(allow []string) (*HTTPCaller, error) { return HTTPConfig{Allow: allow}.NewCaller() }

// NewCaller makes a caller of branches. The error wraps store.ErrInvalid.
func (cfg HTTPConfig) NewCaller() (*HTTPCaller, error) {
	allow, err := newAllowList(cfg.Allow, !cfg.NoLoopback)
	if err != nil {
		return nil, err
	}
	h := &HTTPCaller{allow: allow}
	h.transport = &http.Transport{
		DialContext:            h.dialWithin,
		TLSClientConfig:        cfg.TLS,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    connectTime,
		MaxResponseHeaderBytes: maxAnswerBytes,
	}
	h.LimitConnections(DefaultBranchConns, 0)
	return h, nil
}

// Close drops idle connections.
func (h *HTTPCaller) Close() { h.transport.CloseIdleConnections() }

// Check implements Caller.
func (h *HTTPCaller) Check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", withoutURL(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url %q: scheme must be http or https", RedactURL(raw))
	case u.Hostname() == "":
		return fmt.Errorf("url %q: has no host", RedactURL(raw))
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !h.allow.address(addr, portNumber(port)) {
		return notAllowed(net.JoinHostPort(u.Hostname(), port))
	}
	return nil
}

// Call implements Caller.
func (h *HTTPCaller) Call(ctx context.Context, c Call) (Outcome, string) {
	request, err := newRequest(ctx, c)
	if err != nil {
		return Ended, withoutURL(err).Error()
	}
	sent := new(atomic.Bool)
	if isReplayable(request) {
		request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	}
	response, err := h.transport.RoundTrip(request)
	if err != nil {
		why := fmt.Sprintf("%s %s: %v", request.Method, RedactURL(c.URL), withoutURL(err))
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && !sent.Load() {
			return Ended, why // it was never sent
		}
		return Unknown, why
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Unknown, fmt.Sprintf("reading the answer: %v", err)
	}
	if coding := strings.Join(response.Header.Values("Content-Encoding"), ", "); len(body) > 0 && coding != "" && coding != "identity" {
		return Unknown, fmt.Sprintf("%s: cannot read an answer with Content-Encoding %q", response.Status, coding)
	}
	outcome := meaning(response.StatusCode, body)
	if outcome == Unknown && response.StatusCode != http.StatusBadGateway && response.StatusCode != http.StatusGatewayTimeout {
		outcome = Ended // it has answered; from a gateway that says nothing of who is behind it
	}
	if outcome == Succeeded {
		return outcome, ""
	}
	if response.StatusCode/100 == 3 { // its text repeats the URL, which may hold a key
		return outcome, response.Status + ": redirects are not followed"
	}
	const quoted = 200
	return outcome, fmt.Sprintf("%s: %s", response.Status, bytes.ToValidUTF8(bytes.ReplaceAll(body[:min(len(body), quoted)], []byte{0}, nil), nil))
}

// isReplayable reports whether the transport may send a request a second time, when
// its connection breaks before the answer. Then that the second was never sent says
// nothing of the first.
func isReplayable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

func meaning(status int, body []byte) Outcome {
	switch {
	case status == http.StatusTooEarly || bytes.Contains(body, []byte("ONGOING")):
		return Ongoing
	case status == http.StatusConflict || bytes.Contains(body, []byte("FAILURE")):
		return Failed
	case status >= 200 && status < 300:
		return Succeeded
	default:
		return Unknown
	}
}

// answerHeaders are not the submitter's to set: they have a branch answer in a form
// in which FAILURE is not seen. Without them the transport asks for gzip, and
// unpacks it.
var answerHeaders = [...]string{"Accept-Encoding", "Range"}

func newRequest(ctx context.Context, c Call) (*http.Request, error) {
	target, _, _ := strings.Cut(c.URL, "#")
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	target += separator + "gid=" + c.GID + "&trans_type=saga&branch_id=" + BranchID(c.Branch) + "&op=" + Op(c.Branch)
	method, payload := http.MethodGet, io.Reader(http.NoBody)
	if c.Payload != "" {
		method, payload = http.MethodPost, strings.NewReader(c.Payload)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, payload)
	if err != nil {
		return nil, err
	}
	if c.Payload != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if user := request.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	for name, value := range c.Headers {
		request.Header.Set(name, value)
	}
	for _, name := range answerHeaders {
		request.Header.Del(name)
	}
	return request, nil
}

func (h *HTTPCaller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTime}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !h.allow.name(host, port) {
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			ip, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			if !h.allow.address(ip.Addr(), ip.Port()) {
				return notAllowed(resolved)
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}
