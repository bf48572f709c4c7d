// Package tlsfiles makes TLS configurations from PEM files. They are read once, so a new
// certificate takes a restart.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// Files are names of PEM files. An empty name is no file.
type Files struct {
	CA   string // the authority of the peer's certificate; empty in a client: those that the machine trusts
	Cert string // our own certificate, followed by intermediate ones
	Key  string // of Cert
}

// AreSet reports whether any name is set.
func (f Files) AreSet() bool { return f != Files{} }

// Client returns the configuration of a client. It verifies the server's certificate for the
// name that is dialled.
func (f Files) Client() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	return cfg, f.Set(cfg)
}

// Set sets the files in a client's configuration.
func (f Files) Set(cfg *tls.Config) (err error) {
	if f.CA != "" {
		if cfg.RootCAs, err = readPool(f.CA); err != nil {
			return err
		}
	}
	if f.Cert != "" || f.Key != "" {
		cfg.Certificates, err = f.certificates()
	}
	return err
}

// Server returns the configuration of a server. With a CA it asks clients for a certificate,
// and ends the handshake if the CA did not sign it. The caller must refuse clients without
// one.
func (f Files) Server() (cfg *tls.Config, err error) {
	cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.Certificates, err = f.certificates(); err != nil {
		return nil, err
	}
	if f.CA != "" {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		cfg.ClientCAs, err = readPool(f.CA)
	}
	return cfg, err
}

func (f Files) certificates() ([]tls.Certificate, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	return []tls.Certificate{pair}, nil
}

func readPool(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: holds no certificate in PEM", name)
	}
	return pool, nil
}

// CutURL removes libpq's options sslrootcert (the CA), sslcert and sslkey from a URL, and
// returns their files. It returns a malformed URL unchanged.
func CutURL(text string) (rest string, f Files) {
	u, err := url.Parse(text)
	if err != nil {
		return text, f
	}
	options := u.Query()
	f = Files{CA: options.Get("sslrootcert"), Cert: options.Get("sslcert"), Key: options.Get("sslkey")}
	if !f.AreSet() {
		return text, f
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		options.Del(name)
	}
	u.RawQuery = options.Encode()
	return u.String(), f
}

// SetRedis sets the files in a Redis client's configuration, which is nil without TLS.
func (f Files) SetRedis(cfg *tls.Config) error {
	if cfg == nil && f.AreSet() {
		return errors.New("sslrootcert, sslcert and sslkey are for TLS: want rediss://")
	}
	if cfg == nil {
		return nil
	}
	return f.Set(cfg)
}

// MySQL returns the configuration of a MySQL client whose URL has tls=mode, or nil if the
// driver is to make its own.
func (f Files) MySQL(mode string) (*tls.Config, error) {
	switch {
	case !f.AreSet():
		return nil, nil
	case mode == "true", mode == "skip-verify" && f.CA == "":
	default:
		return nil, fmt.Errorf("tls: %q, must be true with sslrootcert, sslcert or sslkey; skip-verify will do with the last two", mode)
	}
	cfg, err := f.Client()
	cfg.InsecureSkipVerify = mode == "skip-verify" // the user asked for it
	return cfg, err
}
