package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// transport is net/http's Transport, with the kind of an error in its text and with abort.
//
// It sends no saga twice. When an idle connection fails, net/http repeats the request
// only if nothing of it was written, or if its method or an Idempotency-Key allows it.
// Our requests are POST without such a header. A request that failed counts as an error,
// although it may have started a saga.
type transport struct {
	http    *http.Transport
	timeout time.Duration // of a request, dialling and body included
	ctx     context.Context
	abort   context.CancelFunc // ends every request, now and later, with an error
}

var _ http.RoundTripper = (*transport)(nil)

// newTransport allows one connection to each host for each request in flight.
func newTransport(timeout time.Duration, inFlight int) *transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	t := &transport{
		timeout: timeout,
		http: &http.Transport{
			// A dial continues after the end of its request.
			DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
			TLSHandshakeTimeout: timeout,
			MaxConnsPerHost:     inFlight,
			MaxIdleConnsPerHost: inFlight,
			// Servers close idle connections after 5 s or more. A request sent at that
			// moment would fail.
			IdleConnTimeout:    3 * time.Second,
			DisableCompression: true,
			Protocols:          &protocols,
		},
	}
	t.ctx, t.abort = context.WithCancel(context.Background())
	return t
}

func (t *transport) close() {
	t.abort()
	t.http.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. It also reads the body, so that it sees every
// error of a request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.timeout)
	defer cancel()
	resp, err := t.http.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, t.failure(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, t.failure(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// kindMark precedes the kind in the text of an error: vegeta reports only the text.
const kindMark = "saga request failed: "

// failure adds the kind of err to its text.
func (t *transport) failure(err error) error {
	kind := kindOf(err)
	if t.ctx.Err() != nil {
		kind = kindInterrupted
	}
	return fmt.Errorf("%s%s: %w", kindMark, kind, err)
}

func kindOf(err error) string {
	var network net.Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		return kindNoHost
	case errors.As(err, &certificate), errors.As(err, &record):
		return kindTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return kindRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return kindReset
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return kindUnreachable
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return kindFiles
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return kindNoPort
	case errors.As(err, &network) && network.Timeout(): // a context's too
		return kindTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		// net/http exports neither this error nor the next one.
		strings.Contains(err.Error(), "server closed idle connection"):
		return kindClosed
	case strings.Contains(err.Error(), "transport connection broken"): // an answer that cannot be parsed
		return kindBadHTTP
	default:
		return kindOther
	}
}
