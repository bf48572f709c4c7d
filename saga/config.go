package saga

import (
	"fmt"
	"log/slog"
	"time"

	"sagabench/store"
	"sagabench/store/groupcommit"
)

// Config is how a coordinator behaves.
type Config struct {
	// Lease is how long a saga stays this coordinator's without a word from it.
	// After a crash its sagas are taken over when their leases end.
	Lease time.Duration
	// RequestTimeout bounds one call of a branch, unless the saga says otherwise.
	// A lease must hold two.
	RequestTimeout time.Duration
	// RetryInterval is how long a saga is put off when a branch has not decided,
	// or for the first time when it has not answered; doubled each further time up
	// to MaxRetryInterval. A saga may ask for another.
	RetryInterval    time.Duration
	MaxRetryInterval time.Duration
	// PollInterval is how often due sagas are looked for, and how often a saga
	// that runs elsewhere is looked at by those who wait for its end.
	PollInterval time.Duration
	// MaxRecovering bounds the sagas taken over and under way at once.
	MaxRecovering int
	// MaxInFlight bounds the submitted sagas under way at once; more are refused
	// with ErrBusy. One that waits for a branch costs two goroutines, four while it
	// holds a connection. A concurrent saga counts once for each step. Sagas that are
	// deferred do not count.
	MaxInFlight int
	// MaxWait is how long Run and Wait wait for a saga to end, to the length of a
	// PollInterval and a call of the store; 0: until their context ends. It spares
	// a busy server a timer per saga.
	MaxWait time.Duration

	// Observe, if set, is told of every call of a branch, from many goroutines.
	Observe func(Attempt)

	Commit groupcommit.Config
	Logger *slog.Logger // nil: slog.Default
}

// DefaultConfig suits branches that answer within a few seconds.
func DefaultConfig() Config {
	return Config{
		Lease:          10 * time.Second,
		RequestTimeout: 3 * time.Second,
		RetryInterval:  time.Second,

		MaxRetryInterval: time.Minute,
		PollInterval:     500 * time.Millisecond,
		MaxRecovering:    256,
		MaxInFlight:      10_000,
		Commit:           groupcommit.DefaultConfig(),
	}
}

// Validate checks the configuration; its error names the field.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"request timeout", c.RequestTimeout}, {"retry interval", c.RetryInterval}, {"max retry interval", c.MaxRetryInterval}, {"poll interval", c.PollInterval}} {
		if f.value < time.Millisecond {
			return fmt.Errorf("coordinator: %w: %s: %v, at least 1ms", store.ErrInvalid, f.name, f.value)
		}
	}
	if c.Lease < 2*c.RequestTimeout {
		return fmt.Errorf("coordinator: %w: lease: %v, at least twice the request timeout of %v", store.ErrInvalid, c.Lease, c.RequestTimeout)
	}
	if c.MaxRecovering < 1 {
		return fmt.Errorf("coordinator: %w: max recovering: %d, at least 1", store.ErrInvalid, c.MaxRecovering)
	}
	if c.MaxInFlight < 1 {
		return fmt.Errorf("coordinator: %w: max in flight: %d, at least 1", store.ErrInvalid, c.MaxInFlight)
	}
	return nil
}
