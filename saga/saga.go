package saga

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"sagabench/store"
)

// Limits of what a saga may hold, beside those of package store.
const (
	MaxURLBytes     = 2048
	MaxPayloadBytes = 1 << 20
)

// Saga is what a client submits: steps that are to happen all or not at all. It
// must not be changed afterwards, as it is run from this very value.
type Saga struct {
	GID   string `json:"-"`     // chosen by the client, or NewGID
	Steps []Step `json:"steps"` // in the order in which they run; 1 to store.MaxSteps
}

// Step is one of them: what does it, and what undoes it.
type Step struct {
	Action     string `json:"action,omitempty"`     // URL; empty: succeeds without a call
	Compensate string `json:"compensate,omitempty"` // URL; empty: succeeds without a call
	Payload    string `json:"payload,omitempty"`    // sent to both; JSON text, or empty for a GET
}

// NewGID gives a gid nobody else has: 26 characters, 128 random bits.
func NewGID() string { return rand.Text() }

// Validate checks the saga against the limits; its error wraps
// store.ErrInvalid and names the field. Whether its URLs may be called is for
// the Caller to say.
func (s *Saga) Validate() error {
	if err := store.CheckGID(s.GID); err != nil {
		return err
	}
	if n := len(s.Steps); n < 1 || n > store.MaxSteps {
		return fmt.Errorf("%w: steps: %d, must be 1 to %d", store.ErrInvalid, n, store.MaxSteps)
	}
	for i, step := range s.Steps {
		switch {
		case len(step.Action) > MaxURLBytes:
			return fmt.Errorf("%w: steps[%d].action: %d bytes, at most %d", store.ErrInvalid, i, len(step.Action), MaxURLBytes)
		case len(step.Compensate) > MaxURLBytes:
			return fmt.Errorf("%w: steps[%d].compensate: %d bytes, at most %d", store.ErrInvalid, i, len(step.Compensate), MaxURLBytes)
		case len(step.Payload) > MaxPayloadBytes:
			return fmt.Errorf("%w: steps[%d].payload: %d bytes, at most %d", store.ErrInvalid, i, len(step.Payload), MaxPayloadBytes)
		case strings.IndexByte(step.Payload, 0) >= 0:
			return fmt.Errorf("%w: steps[%d].payload: holds a zero byte", store.ErrInvalid, i)
		case !utf8.ValidString(step.Action) || !utf8.ValidString(step.Compensate) || !utf8.ValidString(step.Payload):
			// JSON would not keep it as it is.
			return fmt.Errorf("%w: steps[%d]: is not UTF-8", store.ErrInvalid, i)
		}
	}
	return nil
}

// encode gives the body under which a store keeps the saga. Equal sagas have
// equal bodies.
func (s *Saga) encode() ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding saga %s: %w", s.GID, err)
	}
	return body, nil
}

// decode is its reverse, for a saga taken over from another coordinator.
func decode(r store.Record) (*Saga, error) {
	s := &Saga{GID: r.GID}
	if err := json.Unmarshal(r.Body, s); err != nil {
		return nil, fmt.Errorf("decoding saga %s: %w", r.GID, err)
	}
	if len(s.Steps) != r.Marks.Steps() {
		return nil, fmt.Errorf("decoding saga %s: %d steps, but marks for %d", r.GID, len(s.Steps), r.Marks.Steps())
	}
	return s, nil
}

// url is what a branch calls.
func (s *Saga) url(b store.Branch) string {
	if b.IsCompensation() {
		return s.Steps[b.Step()].Compensate
	}
	return s.Steps[b.Step()].Action
}
