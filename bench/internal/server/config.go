package server

import (
	"fmt"
	"time"

	"sagabench/internal/secret"
	"sagabench/internal/tlsfiles"
	"sagabench/store"
)

// Config is how a server behaves.
type Config struct {
	Listen string // HOST:PORT; port 0 takes any that is free
	Bench  bool   // serves the bench's endpoints too
	Pprof  bool   // serves profiles

	// Tokens are what clients must show one of; without any, whoever reaches the server
	// may use it, and Listen must be loopback. AdminTokens open all that Tokens do, and
	// what nothing else opens: stopping a saga by force, and profiles.
	Tokens, AdminTokens secret.Tokens

	// TLS is what the server listens with; without a certificate it speaks plain HTTP.
	// With a CA clients show a certificate that it has signed, and tokens beside it if
	// there are any.
	TLS tlsfiles.Files

	AuditSubmits bool // the audit has a line for each saga that is submitted

	MaxConns int           // connections at once; more wait to be accepted
	Read     time.Duration // for a request to come in, header and body
	Wait     time.Duration // how long a request waits for the end of its saga
	Grace    time.Duration // for the sagas under way when the server is told to stop

	Scenario Scenario // the sagas that the bench's endpoint makes where a request does not say otherwise

	// BranchAllow is where branches may be beside loopback, which NoLoopback takes
	// away, and, with Bench, this server: see saga.HTTPConfig.
	BranchAllow []string
	NoLoopback  bool

	BranchTLS tlsfiles.Files // what https branches are called with
}

// Where servers listen unless they are told otherwise.
const (
	ListenBench       = "127.0.0.1:8080"
	ListenCoordinator = "127.0.0.1:36789" // dtm's port
)

// DefaultConfig is a bench server for this machine alone.
func DefaultConfig() Config {
	return Config{
		Listen:   ListenBench,
		Bench:    true,
		MaxConns: 4096,
		Read:     10 * time.Second,
		Wait:     10 * time.Second,
		Grace:    10 * time.Second,
		Scenario: DefaultScenario(),
	}
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"read", c.Read}, {"max wait", c.Wait}, {"grace", c.Grace}} {
		if f.value < time.Millisecond {
			return fmt.Errorf("server: %w: %s: %v, at least 1ms", store.ErrInvalid, f.name, f.value)
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
	if c.MaxConns < 1 {
		return fmt.Errorf("server: %w: max conns: %d, at least 1", store.ErrInvalid, c.MaxConns)
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
