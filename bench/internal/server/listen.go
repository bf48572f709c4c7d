package server

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"sagabench/store"
)

// Listen checks cfg and opens its port. Returns store.ErrInvalid for a wrong setting, and for
// an address that other machines reach unless clients must show a token or a certificate.
// Errors are one line that says what to do.
func Listen(cfg Config) (net.Listener, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var addr *net.TCPAddr
	_, _, err := net.SplitHostPort(cfg.Listen)
	if err == nil { // resolve once: check the address that is listened on
		addr, err = net.ResolveTCPAddr("tcp", cfg.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: listen: %q, want HOST:PORT: %w", store.ErrInvalid, cfg.Listen, err)
	}
	if !cfg.Tokens.AreSet() && cfg.TLS.CA == "" && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: listen: other machines reach %q, so it needs a token: "+
			"set SAGABENCH_SERVER_TOKEN or server.token_file (or server.client_ca), or use 127.0.0.1:%d", store.ErrInvalid, cfg.Listen, addr.Port)
	}
	l, err := net.ListenTCP("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use: stop what listens there, or choose another port (0: any that is free)", cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return l, nil
}

// reachable returns the address at which programs on this machine reach a listener.
func reachable(l net.Listener) net.TCPAddr {
	addr := *l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	return addr
}

// ClearText returns a warning if other machines reach a listener without TLS, so that tokens
// can be read on the network. Empty: they cannot.
func ClearText(cfg Config, l net.Listener) (warning string) {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || addr.IP.IsLoopback() || cfg.TLS.AreSet() || !cfg.Tokens.AreSet() && !cfg.AdminTokens.AreSet() {
		return ""
	}
	return "tokens travel in clear to " + addr.String() +
		": set server.tls_cert and server.tls_key, or let nobody but a proxy that ends TLS reach it"
}
