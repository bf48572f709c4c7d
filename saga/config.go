package saga

import (
	"fmt"
	"log/slog"
	"time"

	"sagabench/store"
	"sagabench/store/groupcommit"
)

// Config configures a coordinator.
type Config struct {
	// Lease is how long a saga belongs to this coordinator after each write. After a
	// crash its sagas are taken over when their leases end.
	Lease time.Duration
	// RequestTimeout bounds one call of a branch, unless the saga sets its own. Lease must
	// be at least twice as long.
	RequestTimeout time.Duration
	// RetryInterval is the pause before a branch that has not decided is called again. If
	// it does not answer, the pause doubles each time, up to MaxRetryInterval. A saga may
	// set its own.
	RetryInterval    time.Duration
	MaxRetryInterval time.Duration
	// PollInterval is the time between two claims of due sagas, and between two reads of a
	// saga whose end a client waits for.
	PollInterval time.Duration
	// MaxRecovering limits the sagas that were taken over and are under way.
	MaxRecovering int
	// MaxInFlight limits the submitted sagas under way; more are refused with ErrBusy. A
	// saga that waits for a branch costs two goroutines, four while it holds a connection.
	// A concurrent saga counts once for each step. Deferred sagas do not count.
	MaxInFlight int
	// MaxWait is how long Run and Wait wait for the end of a saga, to within a PollInterval
	// and a call of the store; 0: until their context ends. It spares a busy server a timer
	// per saga.
	MaxWait time.Duration

	// Observe, if set, is called after every call of a branch, from many goroutines.
	Observe func(Attempt)

	Commit groupcommit.Config
	Logger *slog.Logger // nil: slog.Default
}

// DefaultConfig returns a configuration for branches that answer within a few seconds.
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
	switch {
	case c.Lease < 2*c.RequestTimeout:
		return fmt.Errorf("coordinator: %w: lease: %v, at least twice the request timeout of %v", store.ErrInvalid, c.Lease, c.RequestTimeout)
	case c.MaxRecovering < 1:
		return fmt.Errorf("coordinator: %w: max recovering: %d, at least 1", store.ErrInvalid, c.MaxRecovering)
	case c.MaxInFlight < 1:
		return fmt.Errorf("coordinator: %w: max in flight: %d, at least 1", store.ErrInvalid, c.MaxInFlight)
	}
	return nil
}
