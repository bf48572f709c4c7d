package server

import (
	"fmt"
	"time"

	"sagabench/store"
)

// Config is how a server behaves.
type Config struct {
	Listen   string        // HOST:PORT; port 0 takes any that is free
	Public   bool          // allows a Listen that other machines reach; nothing authenticates them yet
	Pprof    bool          // serves profiles
	Wait     time.Duration // how long a request waits for the end of its saga
	Grace    time.Duration // for the sagas under way when the server is told to stop
	Scenario Scenario      // the sagas made where a request does not say otherwise

	// BranchAllow is what branches may be called on beside loopback and this
	// server, as saga.NewHTTPCaller takes it: the store may hold sagas of others.
	BranchAllow []string
}

// DefaultConfig is a server for this machine alone.
func DefaultConfig() Config {
	return Config{
		Listen:   "127.0.0.1:8080",
		Wait:     10 * time.Second,
		Grace:    10 * time.Second,
		Scenario: DefaultScenario(),
	}
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"wait", c.Wait}, {"grace", c.Grace}} {
		if f.value < time.Millisecond {
			return fmt.Errorf("bench server: %w: %s: %v, at least 1ms", store.ErrInvalid, f.name, f.value)
		}
	}
	if err := c.Scenario.Validate(); err != nil {
		return fmt.Errorf("bench server: %w", err)
	}
	return nil
}
