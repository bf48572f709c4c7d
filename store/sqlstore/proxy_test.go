package sqlstore

import (
	"strings"
	"testing"

	"sagabench/internal/testkit"
)

// proxy is a way to a server that can be broken.
type proxy struct {
	*testkit.Proxy
	to string
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	return &proxy{testkit.NewProxy(t, to), to}
}

// of gives the configuration the way through the proxy.
func (p *proxy) of(cfg Config) Config {
	cfg.URL = strings.Replace(cfg.URL, p.to, p.Addr(), 1)
	return cfg
}
