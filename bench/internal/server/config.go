package server

import (
	"cmp"
	"fmt"
	"time"

	"sagabench/internal/secret"
	"sagabench/internal/tlsfiles"
	"sagabench/saga"
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

	MaxConns int           // connections at once; beyond that idle ones are closed, and new ones told to come again
	Read     time.Duration // for a request to come in, header and body
	Wait     time.Duration // how long a request waits for the end of its saga
	Drain    time.Duration // how long it goes on as before, but is not ready, when it is told to stop
	Grace    time.Duration // then, for the sagas under way

	MaxConnsPerPeer int // of MaxConns, those of one client address; 0: half of them, with Bench all

	Scenario Scenario // the sagas that the bench's endpoint makes where a request does not say otherwise

	BranchConns int // connections to one branch host at once; calls beyond wait

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

		BranchConns: saga.DefaultBranchConns,

		Scenario: DefaultScenario(),
	}
}

// perPeer is how many connections one client address may have. A bench server's are
// usually all of one load generator's, and its own.
func (c Config) perPeer() int {
	if c.Bench {
		return cmp.Or(c.MaxConnsPerPeer, c.MaxConns)
	}
	return cmp.Or(c.MaxConnsPerPeer, (c.MaxConns+1)/2)
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
	if c.Drain < 0 {
		return fmt.Errorf("server: %w: drain: %v, at least 0s", store.ErrInvalid, c.Drain)
	}
	if c.MaxConnsPerPeer < 0 {
		return fmt.Errorf("server: %w: max conns per peer: %d, at least 0", store.ErrInvalid, c.MaxConnsPerPeer)
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
	if c.BranchConns < 1 {
		return fmt.Errorf("server: %w: branch conns: %d, at least 1", store.ErrInvalid, c.BranchConns)
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
