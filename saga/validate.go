package saga

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sagabench/saga/machine"
	"sagabench/store"
)

// Limits of a saga, beside those of package store.
const (
	MaxURLBytes       = 2048
	MaxPayloadBytes   = 1 << 20
	MaxHeaders        = 64
	MaxHeaderBytes    = 8 << 10 // names and values of all together
	MaxCustomBytes    = 64 << 10
	MaxTimeout        = 366 * 24 * time.Hour
	MaxRequestTimeout = 10 * time.Minute
	MaxRetryInterval  = 24 * time.Hour
	MaxRetryLimit     = 1_000_000
)

// Validate checks the saga against the limits. Its error wraps store.ErrInvalid and names
// the field; Headers and Custom are branch_headers and custom_data, as in the HTTP API.
// Whether the URLs may be called is for Caller.Check.
func (s *Saga) Validate() error {
	if err := store.CheckGID(s.GID); err != nil {
		return err
	}
	if n := len(s.Steps); n < 1 || n > store.MaxSteps {
		return fmt.Errorf("%w: steps: %d, must be 1 to %d", store.ErrInvalid, n, store.MaxSteps)
	}
	size := 0
	for i := range s.Steps {
		step := &s.Steps[i]
		if err := step.validate(); err != nil {
			return fmt.Errorf("%w: steps[%d].%w", store.ErrInvalid, i, err)
		}
		size += len(step.Action) + len(step.Compensate) + len(step.Payload)
	}
	if size > store.MaxBodyBytes {
		return fmt.Errorf("%w: steps: %d bytes together, at most %d", store.ErrInvalid, size, store.MaxBodyBytes)
	}
	if err := s.validateOrder(); err != nil {
		return fmt.Errorf("%w: steps%w", store.ErrInvalid, err)
	}
	switch {
	case s.Timeout < 0 || s.Timeout > MaxTimeout:
		return fmt.Errorf("%w: timeout: %v, must be 0s to %v", store.ErrInvalid, s.Timeout, MaxTimeout)
	case badRequestTimeout(s.RequestTimeout):
		return fmt.Errorf("%w: request timeout: %v, must be 0s or 1ms to %v", store.ErrInvalid, s.RequestTimeout, MaxRequestTimeout)
	case s.RetryInterval < 0 || s.RetryInterval > MaxRetryInterval:
		return fmt.Errorf("%w: retry interval: %v, must be 0s to %v", store.ErrInvalid, s.RetryInterval, MaxRetryInterval)
	case s.RetryLimit < 0 || s.RetryLimit > MaxRetryLimit:
		return fmt.Errorf("%w: retry limit: %d, must be 0 to %d", store.ErrInvalid, s.RetryLimit, MaxRetryLimit)
	case len(s.Custom) > MaxCustomBytes:
		return fmt.Errorf("%w: custom_data: %d bytes, at most %d", store.ErrInvalid, len(s.Custom), MaxCustomBytes)
	case !isText(s.Custom):
		return fmt.Errorf("%w: custom_data: %s", store.ErrInvalid, notText)
	}
	return s.validateHeaders()
}

func badRequestTimeout(d time.Duration) bool {
	return d != 0 && (d < time.Millisecond || d > MaxRequestTimeout)
}

// validate returns an error without the name of the step.
func (s *Step) validate() error {
	for _, f := range [...]struct {
		name, value string
		limit       int
	}{{"action", s.Action, MaxURLBytes}, {"compensate", s.Compensate, MaxURLBytes}, {"payload", s.Payload, MaxPayloadBytes}} {
		if len(f.value) > f.limit {
			return fmt.Errorf("%s: %d bytes, at most %d", f.name, len(f.value), f.limit)
		}
		if !isText(f.value) {
			return fmt.Errorf("%s: %s", f.name, notText)
		}
	}
	if badRequestTimeout(s.Timeout) {
		return fmt.Errorf("timeout: %v, must be 0s or 1ms to %v", s.Timeout, MaxRequestTimeout)
	}
	return nil
}

const notText = "must be UTF-8 without a zero byte"

// isText reports whether JSON and every store keep s unchanged.
func isText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// validateOrder checks that every step can be reached.
func (s *Saga) validateOrder() error {
	if s.Concurrent {
		return machine.CheckOrder(s.order())
	}
	if slices.ContainsFunc(s.Steps, func(step Step) bool { return len(step.After) > 0 }) {
		return errors.New(".after: an order is given, but the saga is not concurrent")
	}
	return nil
}

// reservedHeaders belong to the connection, or to us.
var reservedHeaders = map[string]bool{
	"host": true, "content-length": true, "transfer-encoding": true, "connection": true,
	"upgrade": true, "te": true, "trailer": true, "keep-alive": true, "proxy-connection": true,
}

func (s *Saga) validateHeaders() error {
	if len(s.Headers) > MaxHeaders {
		return fmt.Errorf("%w: branch_headers: %d, at most %d", store.ErrInvalid, len(s.Headers), MaxHeaders)
	}
	size := 0
	for name, value := range s.Headers {
		size += len(name) + len(value)
		switch {
		case !isToken(name):
			return fmt.Errorf("%w: branch_headers: %.100q is no header's name", store.ErrInvalid, name)
		case reservedHeaders[strings.ToLower(name)]:
			return fmt.Errorf("%w: branch_headers: %s is reserved", store.ErrInvalid, name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == utf8.RuneError }):
			return fmt.Errorf("%w: branch_headers: the value of %.100s has a character that is not allowed in a header", store.ErrInvalid, name)
		}
	}
	if size > MaxHeaderBytes {
		return fmt.Errorf("%w: branch_headers: %d bytes, at most %d", store.ErrInvalid, size, MaxHeaderBytes)
	}
	return nil
}

func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}
