package cli

import (
	"bytes"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/session"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/secret"
	"sagabench/internal/testkit"
)

func TestRedis_TakesAnAuthorityAndAClientCertificate(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	cert, key := authority.Issue("server")
	handOver(t, filepath.Dir(key), "redis")
	port := strconv.Itoa(freePort(t))
	labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"tls-port": port, "tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": authority.CA, "tls-auth-clients": "yes",
		"requirepass": password,
	}})
	requireCertificates(t, authority, "rediss://:"+password+"@127.0.0.1:"+port+"/0", "")
}

// requireCertificates makes sure that a store whose certificate an authority of its own has
// signed, and which lets in only who shows one of that authority's, is reached by what the URL
// says: by the store, and by what measures its server.
func requireCertificates(t *testing.T, authority *testkit.Authority, address, strict string) {
	t.Helper()
	cert, key := authority.Issue("client")
	strangeCert, strangeKey := testkit.NewAuthority(t).Issue("stranger")
	with := func(ca, cert, key string) string {
		options, err := url.ParseQuery(strict)
		require.NoError(t, err)
		for option, file := range map[string]string{"sslrootcert": ca, "sslcert": cert, "sslkey": key} {
			if file != "" {
				options.Set(option, file)
			}
		}
		return address + "?" + options.Encode()
	}
	p := newProgram(t)
	for what, refused := range map[string]string{
		"nobody we trust":        with("", cert, key),
		"no certificate":         with(authority.CA, "", ""),
		"a stranger":             with(authority.CA, strangeCert, strangeKey),
		"no such file":           with(authority.CA+"x", cert, key),
		"a key as a certificate": with(key, cert, key),
	} {
		got := p.run("check", refused)
		require.Equal(t, exitError, got.code, "%s: %s", what, got.stdout)
		require.NotContains(t, got.stderr, "topsecret")
	}
	got := p.run("run", with(authority.CA, cert, key), "--duration", "200ms", "--warmup", "50ms", "--branches", "empty")
	got.requireRan(t)
	p.requireNoSecrets()
}

// A server with a certificate of its own is driven and measured as one without.
func TestServers_SpeakTLS(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	cert, key := authority.Issue("server")
	p := newProgram(t, withoutSync, "SAGABENCH_SERVER_TLS_CERT="+cert, "SAGABENCH_SERVER_TLS_KEY="+key, "SAGABENCH_SERVER_TOKEN="+userToken, "SSL_CERT_FILE="+authority.CA)
	s := p.start("coordinator", "pebble:store", "--listen", "127.0.0.1:0")
	require.Contains(t, s.url, "https://127.0.0.1:")
	_, out := p.load("--protocol", "dtm", "--target", s.url, "--metrics", "127.0.0.1:0")
	require.Contains(t, out.stderr, "metrics of the load: https://127.0.0.1:")
	require.NotContains(t, out.stderr, "in clear")
	s.stop()
	got := p.run("run", "pebble", "--duration", "200ms", "--warmup", "50ms", "--branches", "http")
	got.requireRan(t)
}

func TestLoad_WarnsOfATokenInClear(t *testing.T) {
	t.Parallel()
	for target, warns := range map[string]bool{
		"http://10.0.0.1:8080": true, "http://app1": true, "https://10.0.0.1": false, "http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost:1": false,
	} {
		for token, set := range map[string]bool{userToken: true, "": false} {
			var stderr bytes.Buffer
			a := &app{stderr: &stderr}
			a.options.Server.Token = secret.New(token)
			_, _ = a.running(target, session.ProtocolBench, nil, "load")
			require.Equal(t, warns && set, strings.Contains(stderr.String(), "the token travels in clear"), target)
		}
	}
}
