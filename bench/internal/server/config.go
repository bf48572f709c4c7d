package server

import (
	"cmp"
	"fmt"
	"time"

	"sagabench/internal/secret"
	"sagabench/internal/tlsfiles"
	"sagabench/saga/branch"
	"sagabench/store"
)

// Config configures a server.
type Config struct {
	Listen string // HOST:PORT; port 0: any free port
	Bench  bool   // serve the bench's endpoints too
	Pprof  bool   // serve profiles

	// Clients must show one of Tokens. Without any, Listen must be a loopback address.
	// AdminTokens give the rights of Tokens, and those to force sagas to stop and to read
	// profiles.
	Tokens, AdminTokens secret.Tokens

	// TLS has the server's certificate. Without one it speaks plain HTTP. With a CA
	// clients must show a certificate signed by it, and a token too if there is one.
	TLS tlsfiles.Files

	AuditSubmits bool // log a line for each submitted saga

	MaxConns        int           // connections at once; beyond that idle ones are closed, and new ones get 503
	MaxConnsPerPeer int           // of one client address; 0: half of MaxConns, with Bench all
	Read            time.Duration // for a request to arrive, header and body
	MaxWait         time.Duration // for the end of a request's saga
	Drain           time.Duration // from the signal to stop until new sagas are refused; not ready meanwhile
	Grace           time.Duration // after that, for the sagas in progress

	Scenario Scenario // default of /bench/saga

	BranchConns    int            // connections to one branch host; calls beyond wait
	BranchAllow    []string       // where branches may be: see branch.HTTPConfig. With Bench also this server
	BranchLoopback bool           // branches may be on loopback
	BranchTLS      tlsfiles.Files // for calling https branches
}

// Default listen addresses.
const (
	ListenBench       = "127.0.0.1:8080"
	ListenCoordinator = "127.0.0.1:36789" // dtm's port
)

// DefaultConfig returns a bench server on loopback.
func DefaultConfig() Config {
	return Config{
		Listen:   ListenBench,
		Bench:    true,
		MaxConns: 4096,
		Read:     10 * time.Second,
		MaxWait:  10 * time.Second,
		Grace:    10 * time.Second,

		BranchConns:    branch.DefaultConnsPerHost,
		BranchAllow:    []string{},
		BranchLoopback: true,

		Scenario: DefaultScenario(),
	}
}

// perPeer returns how many connections one client address may have. Most connections of a
// bench server come from one load generator.
func (c Config) perPeer() int {
	if c.Bench {
		return cmp.Or(c.MaxConnsPerPeer, c.MaxConns)
	}
	return cmp.Or(c.MaxConnsPerPeer, (c.MaxConns+1)/2)
}

// validate returns an error that wraps store.ErrInvalid and names the setting.
func (c Config) validate() error {
	for _, f := range []struct {
		name         string
		value, least time.Duration
	}{
		{"read", c.Read, time.Millisecond},
		{"max wait", c.MaxWait, time.Millisecond},
		{"grace", c.Grace, time.Millisecond},
		{"drain", c.Drain, 0},
	} {
		if f.value < f.least {
			return fmt.Errorf("server: %w: %s: %v, at least %v", store.ErrInvalid, f.name, f.value, f.least)
		}
	}
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"max conns", c.MaxConns, 1},
		{"max conns per peer", c.MaxConnsPerPeer, 0},
		{"branch conns", c.BranchConns, 1},
	} {
		if f.value < f.least {
			return fmt.Errorf("server: %w: %s: %d, at least %d", store.ErrInvalid, f.name, f.value, f.least)
		}
	}
	if c.TLS.AreSet() {
		if _, err := c.TLS.Server(); err != nil {
			return fmt.Errorf("server: %w: tls_cert, tls_key, client_ca: %w", store.ErrInvalid, err)
		}
	}
	if _, err := c.BranchTLS.Client(); err != nil {
		return fmt.Errorf("server: %w: branch_ca, branch_cert, branch_key: %w", store.ErrInvalid, err)
	}
	if c.Pprof && !c.AdminTokens.AreSet() {
		return fmt.Errorf("server: %w: pprof: profiles are for the admin: set SAGABENCH_SERVER_ADMIN_TOKEN or server.admin_token_file", store.ErrInvalid)
	}
	if err := c.Scenario.Validate(); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (c Config) scheme() string {
	if c.TLS.AreSet() {
		return "https"
	}
	return "http"
}
