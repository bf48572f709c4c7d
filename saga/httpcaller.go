package saga

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"sagabench/store"
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
	client   *http.Client
	hosts    map[string]bool
	networks []netip.Prefix
	room     chan struct{} // of all connections; nil: they are not bounded
}

var _ Caller = (*HTTPCaller)(nil)

// hostName takes no last label of digits alone: that is a mistyped address.
var hostName = regexp.MustCompile(`^([a-z0-9_-]+\.)*[0-9]*[a-z_-][a-z0-9_-]*$`)

// NewHTTPCaller allows, beside loopback, the given host names, IP addresses and
// networks (10.1.0.0/16). An address is checked when it is dialled, after the
// name was resolved; an allowed name may resolve to any.
func NewHTTPCaller(allow []string) (*HTTPCaller, error) {
	h := &HTTPCaller{
		hosts:    make(map[string]bool),
		networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	for _, a := range allow {
		if prefix, err := netip.ParsePrefix(a); err == nil {
			h.networks = append(h.networks, prefix.Masked())
		} else if addr, err := netip.ParseAddr(a); err == nil {
			h.networks = append(h.networks, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		} else if name := strings.ToLower(a); hostName.MatchString(name) {
			h.hosts[name] = true
		} else {
			return nil, fmt.Errorf("branch allow-list: %w: %q is no host name, IP address or network", store.ErrInvalid, a)
		}
	}
	h.client = &http.Client{
		Transport: &http.Transport{
			DialContext:            h.dialWithin,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxAnswerBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h.LimitConnections(DefaultBranchConns, 0)
	return h, nil
}

// Close drops idle connections.
func (h *HTTPCaller) Close() { h.client.CloseIdleConnections() }

// Check implements Caller.
func (h *HTTPCaller) Check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url %q: scheme must be http or https", raw)
	case u.Hostname() == "":
		return fmt.Errorf("url %q: has no host", raw)
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !h.allowed(addr) {
		return notAllowed(u.Hostname())
	}
	return nil
}

// Call implements Caller.
func (h *HTTPCaller) Call(ctx context.Context, c Call) (Outcome, string) {
	request, err := newRequest(ctx, c)
	if err != nil {
		return Ended, err.Error()
	}
	response, err := h.client.Do(request)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return Ended, err.Error() // it was never sent
	}
	if err != nil {
		return Unknown, err.Error()
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
	const quoted = 200
	return outcome, fmt.Sprintf("%s: %s", response.Status, bytes.ToValidUTF8(bytes.ReplaceAll(body[:min(len(body), quoted)], []byte{0}, nil), nil))
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
	for name, value := range c.Headers {
		request.Header.Set(name, value)
	}
	for _, name := range answerHeaders {
		request.Header.Del(name)
	}
	return request, nil
}

func (h *HTTPCaller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !h.hosts[strings.ToLower(host)] {
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			ip, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			if !h.allowed(ip.Addr()) {
				return notAllowed(resolved)
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

func (h *HTTPCaller) allowed(addr netip.Addr) bool {
	for _, n := range h.networks {
		if n.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

func notAllowed(host string) error {
	return fmt.Errorf("%s is not on the allow-list of branch hosts", host)
}
