package server

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/secret"
	"sagabench/internal/testkit"
	"sagabench/internal/tlsfiles"
	"sagabench/store"
)

// show gives the site's client an authority, and a certificate to show unless its name
// is empty.
func (at *site) show(a *testkit.Authority, cert, key string) {
	at.t.Helper()
	cfg, err := tlsfiles.Files{CA: a.CA, Cert: cert, Key: key}.Client()
	require.NoError(at.t, err)
	at.client.CloseIdleConnections()
	at.client.Transport = &http.Transport{TLSClientConfig: cfg}
}

func listeningWith(a *testkit.Authority, clientCA string) func(*Config, *Deps) {
	cert, key := a.Issue("server")
	return func(c *Config, _ *Deps) { c.TLS = tlsfiles.Files{CA: clientCA, Cert: cert, Key: key} }
}

func TestServer_SpeaksTLS(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	at := start(t, testkit.OpenPebble(t), withToken, listeningWith(a, ""), func(c *Config, _ *Deps) {
		c.BranchTLS = tlsfiles.Files{CA: a.CA} // its own, which it calls
	})
	require.True(t, strings.HasPrefix(at.server.URL(), "https://127.0.0.1:"), at.server.URL())
	_, err := at.try(http.MethodGet, "/healthz", "")
	require.ErrorContains(t, err, "certificate", "nobody the machine trusts has signed it")
	plain := at.bare(http.MethodGet, "/healthz")
	plain.URL.Scheme = "http"
	require.Equal(t, http.StatusBadRequest, at.ask(plain).status)

	at.show(a, "", "")
	require.Equal(t, http.StatusOK, at.get("/healthz").status)
	require.Equal(t, http.StatusUnauthorized, at.ask(at.bare(http.MethodGet, "/metrics")).status)
	r := at.get("/bench/saga?branches=http")
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.True(t, at.login().Secure)

	old := at.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	old.MaxVersion = tls.VersionTLS11
	_, err = tls.Dial("tcp", strings.TrimPrefix(at.server.URL(), "https://"), old)
	require.Error(t, err)
}

// A client certificate does instead of a token for an address that others reach, and
// beside one.
func TestServer_ClientCertificates(t *testing.T) {
	t.Parallel()
	a, strangers := testkit.NewAuthority(t), testkit.NewAuthority(t)
	cert, key := a.Issue("till-7")
	strangeCert, strangeKey := strangers.Issue("till-7")
	for name, token := range map[string]string{"alone": "", "and a token": theToken} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start(t, testkit.OpenPebble(t), listeningWith(a, a.CA), func(c *Config, _ *Deps) {
				c.Listen, c.Bench = ":0", false
				c.Tokens, c.AdminTokens = secret.NewTokens(token), secret.NewTokens(theAdminToken)
			})
			require.NotContains(t, at.log.String(), "in clear")
			at.show(a, "", "")
			for _, path := range []string{"/metrics", "/ui", "/ui/login", "/", "/api/dtmsvr/newGid", "/nothing"} {
				r := at.get(path)
				require.Equal(t, http.StatusUnauthorized, r.status, path)
				require.Contains(t, r.body, "wants a client certificate")
			}
			require.Equal(t, http.StatusOK, at.get("/healthz").status, "probes have none")
			require.Equal(t, http.StatusOK, at.get("/api/ping").status)

			at.show(a, strangeCert, strangeKey)
			_, err := at.try(http.MethodGet, "/healthz", "")
			require.Error(t, err)

			at.show(a, cert, key)
			r := at.do(http.MethodPost, submitPath, submission())
			require.Equal(t, http.StatusOK, r.status, r.body)
			require.Equal(t, token != "", at.ask(at.bare(http.MethodGet, "/metrics")).status == http.StatusUnauthorized)
			at.do(http.MethodPost, "/api/dtmsvr/abort", `{"gid":"nobody"}`)
			at.requireAudited("action=abort", `certificate="CN=till-7"`)
			forceStop := at.do(http.MethodPost, "/api/dtmsvr/forceStop", `{"gid":"the-gid"}`)
			require.Equal(t, http.StatusForbidden, forceStop.status, "a certificate makes no admin")

			// A browser may have one, and be led by a page of another site.
			request := at.bare(http.MethodPost, "/api/dtmsvr/abort")
			request.Header.Set("Origin", "https://evil.example")
			require.GreaterOrEqual(t, at.ask(request).status, 400)
			require.NotEqual(t, http.StatusNotFound, at.ask(request).status)
			request.Header.Set("Origin", at.server.URL())
			if token == "" {
				require.Equal(t, http.StatusBadRequest, at.ask(request).status, "its own is let in")
			}
		})
	}
}

func TestListen_RefusesCertificatesThatItCannotUse(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue("server")
	for says, change := range map[string]func(*Config){
		"tls_cert, tls_key, client_ca: a certificate needs its key":       func(c *Config) { c.TLS.Cert = cert },
		"tls_cert, tls_key, client_ca: a certificate needs":               func(c *Config) { c.TLS.CA = a.CA },
		"tls_cert, tls_key, client_ca: open":                              func(c *Config) { c.TLS = tlsfiles.Files{CA: "/nowhere", Cert: cert, Key: key} },
		"branch_ca, branch_cert, branch_key: open":                        func(c *Config) { c.BranchTLS.CA = "/nowhere" },
		"branch_ca, branch_cert, branch_key: a certificate needs its key": func(c *Config) { c.BranchTLS.Cert = cert },
	} {
		cfg := DefaultConfig()
		cfg.Listen = "127.0.0.1:0"
		change(&cfg)
		_, err := Listen(cfg)
		require.ErrorIs(t, err, store.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

func TestServer_WarnsOfTokensInClear(t *testing.T) {
	t.Parallel()
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, ":0": true} {
		at := start(t, testkit.OpenPebble(t), withToken, func(c *Config, _ *Deps) { c.Listen = listen })
		require.Equal(t, warns, strings.Contains(at.log.String(), "tokens travel in clear to"), listen)
	}
}

// Branches are told from impostors by an authority of one's own, and may ask who
// calls them.
func TestServer_CallsBranchesWithItsCertificate(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue("branch")
	serverCfg, err := tlsfiles.Files{CA: a.CA, Cert: cert, Key: key}.Server()
	require.NoError(t, err)
	serverCfg.ClientAuth = tls.RequireAndVerifyClientCert
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	callers := make(chan *x509.Certificate, 10)
	participant := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { callers <- r.TLS.PeerCertificates[0] })}
	participant.ErrorLog = log.New(io.Discard, "", 0)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = participant.Serve(tls.NewListener(listener, serverCfg))
	}()
	t.Cleanup(func() { participant.Close(); <-served })
	url := "https://" + listener.Addr().String() + "/pay"

	ours, oursKey := a.Issue("coordinator")
	for name, files := range map[string]tlsfiles.Files{"whom the machine trusts": {}, "no certificate": {CA: a.CA}} {
		at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.BranchTLS = files })
		r := at.do(http.MethodPost, submitPath, submission(action(url)))
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Contains(t, at.heldUp("the-gid"), "certificate", name)
	}
	at := start(t, testkit.OpenPebble(t), func(c *Config, _ *Deps) { c.BranchTLS = tlsfiles.Files{CA: a.CA, Cert: ours, Key: oursKey} })
	r := at.do(http.MethodPost, submitPath, submission(action(url), map[string]any{"wait_result": true}))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Equal(t, "coordinator", (<-callers).Subject.CommonName)
	require.Empty(t, callers)
}

// A probe by https is answered also before there is a store.
func TestStarting_SpeaksTLS(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cfg, _ := settings(nil, listeningWith(a, a.CA))
	l, err := Listen(cfg)
	require.NoError(t, err)
	starting, err := NewStarting(cfg, l)
	require.NoError(t, err)
	t.Cleanup(func() { starting.Stop(); l.Close() })
	shown, err := tlsfiles.Files{CA: a.CA}.Client()
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: shown, DisableKeepAlives: true}, Timeout: patience}
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		response, err := client.Get("https://" + l.Addr().String() + path)
		require.NoError(t, err, path)
		response.Body.Close()
		require.Equal(t, want, response.StatusCode, path)
	}
}
