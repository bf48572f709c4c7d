package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates for tests. Every user can reach its files; keys are
// readable by their owner only.
type Authority struct {
	CA   string // file of its own certificate
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns an authority whose files exist until the test ends.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	for dir := a.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	a.key, a.cert = a.make(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	a.CA = a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// Issue signs a certificate for name, localhost and 127.0.0.1, for servers and clients.
// It returns the files of the certificate and its key.
func (a *Authority) Issue(name string) (cert, key string) {
	a.t.Helper()
	private, signed := a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	return a.write(name+".pem", "CERTIFICATE", signed.Raw), a.write(name+".key", "PRIVATE KEY", secret)
}

func (a *Authority) make(template *x509.Certificate) (crypto.Signer, *x509.Certificate) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return private, cert
}

func (a *Authority) write(name, kind string, content []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
	return path
}
