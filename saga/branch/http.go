package branch

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

	"sagabench/saga"
	"sagabench/saga/machine"
)

// maxAnswerBytes is how much of an answer is read, of its header and of its body each.
const maxAnswerBytes = 64 << 10

// HTTP calls branches over HTTP: with POST and the payload, or with GET if the payload is
// empty. The query gets the parameters gid, trans_type, branch_id and op. The first rule
// that applies gives the outcome:
//
//	status 425, or a body that contains ONGOING   not decided yet
//	status 409, or a body that contains FAILURE   refused
//	any 2xx                                       succeeded
//	anything else, or none                        unknown: call again
//
// Answers may be compressed with gzip. An answer in another Content-Encoding is unknown.
// The saga's Accept-Encoding and Range headers are not sent, as they ask for such answers.
//
// Redirects are not followed. HTTP connects to loopback addresses and to the allowed hosts
// only: URLs come from submitters, who must not reach through us what they cannot reach
// themselves.
type HTTP struct {
	transport *http.Transport // not a client: a client repeats Location in its errors
	allow     allowList
	conns     chan struct{} // holds one element per connection; nil: no limit
}

var _ saga.Caller = (*HTTP)(nil)

// HTTPConfig configures an HTTP. Its zero value allows loopback addresses.
type HTTPConfig struct {
	// Allow lists the hosts that branches may be on, beside loopback addresses: host
	// names and IP addresses, each with or without a port (HOST:PORT), and networks
	// (10.1.0.0/16). Addresses are checked when they are dialled. An allowed name may
	// resolve to any address.
	Allow []string

	// NoLoopback allows only those loopback addresses that Allow lists, such as
	// 127.0.0.1:8081.
	NoLoopback bool

	TLS *tls.Config // for https; nil: the defaults of crypto/tls

	// ConnsPerHost limits the connections to one host and port, and Conns all of them
	// together. Calls that would exceed a limit wait within their own timeout. 0:
	// DefaultConnsPerHost, and no limit.
	ConnsPerHost, Conns int
}

// NewHTTP returns an error that wraps store.ErrInvalid if an entry of the allow list is
// malformed.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	allow, err := newAllowList(cfg.Allow, !cfg.NoLoopback)
	if err != nil {
		return nil, err
	}
	h := &HTTP{allow: allow}
	if cfg.Conns > 0 {
		h.conns = make(chan struct{}, cfg.Conns)
	}
	perHost := cmp.Or(cfg.ConnsPerHost, DefaultConnsPerHost)
	h.transport = &http.Transport{
		DialContext:            h.dialLimited,
		TLSClientConfig:        cfg.TLS,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    connectTime,
		MaxResponseHeaderBytes: maxAnswerBytes,
		MaxConnsPerHost:        perHost,
		MaxIdleConnsPerHost:    perHost,
	}
	return h, nil
}

// Close drops idle connections.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

// Check implements saga.Caller.
func (h *HTTP) Check(raw string) error {
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

// Call implements saga.Caller.
func (h *HTTP) Call(ctx context.Context, c saga.Call) (machine.Outcome, string) {
	request, err := newRequest(ctx, c)
	if err != nil {
		return machine.Ended, withoutURL(err).Error()
	}
	sent := new(atomic.Bool)
	if isReplayable(request) {
		request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	}
	response, err := h.transport.RoundTrip(request)
	if err != nil {
		why := fmt.Sprintf("%s %s: %v", request.Method, RedactURL(c.URL), withoutURL(err))
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && !sent.Load() {
			return machine.Ended, why // it was not sent
		}
		return machine.Unknown, why
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return machine.Unknown, fmt.Sprintf("reading the answer: %v", err)
	}
	if coding := strings.Join(response.Header.Values("Content-Encoding"), ", "); len(body) > 0 && coding != "" && coding != "identity" {
		return machine.Unknown, fmt.Sprintf("%s: cannot read an answer with Content-Encoding %q", response.Status, coding)
	}
	outcome := outcomeOf(response.StatusCode, body)
	if outcome == machine.Unknown && response.StatusCode != http.StatusBadGateway && response.StatusCode != http.StatusGatewayTimeout {
		outcome = machine.Ended // it has answered; a gateway may answer while the branch is at work
	}
	if outcome == machine.Succeeded {
		return outcome, ""
	}
	if response.StatusCode/100 == 3 { // the body repeats the URL, which may hold a key
		return outcome, response.Status + ": redirects are not followed"
	}
	const quoted = 200
	return outcome, fmt.Sprintf("%s: %s", response.Status, bytes.ToValidUTF8(bytes.ReplaceAll(body[:min(len(body), quoted)], []byte{0}, nil), nil))
}

// isReplayable reports whether the transport may send a request again when its connection
// breaks before the answer. A failure to dial then says nothing of the first attempt.
func isReplayable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

func outcomeOf(status int, body []byte) machine.Outcome {
	switch {
	case status == http.StatusTooEarly || bytes.Contains(body, []byte("ONGOING")):
		return machine.Ongoing
	case status == http.StatusConflict || bytes.Contains(body, []byte("FAILURE")):
		return machine.Failed
	case status >= 200 && status < 300:
		return machine.Succeeded
	default:
		return machine.Unknown
	}
}

// answerHeaders of a saga are not sent: they make a branch answer in a form in which
// FAILURE is not found. Without them the transport asks for gzip, and unpacks it.
var answerHeaders = [...]string{"Accept-Encoding", "Range"}

func newRequest(ctx context.Context, c saga.Call) (*http.Request, error) {
	target, _, _ := strings.Cut(c.URL, "#")
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	target += separator + "gid=" + c.GID + "&trans_type=saga&branch_id=" + saga.BranchID(c.Branch) + "&op=" + saga.Op(c.Branch)
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

func (h *HTTP) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
