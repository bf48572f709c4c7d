package saga

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sagabench/store"
)

// Saga is what a client submits: steps that are to happen all or not at all. It
// must not be changed afterwards, as it is run from this very value.
type Saga struct {
	GID   string `json:"-"`     // chosen by the client, or NewGID
	Steps []Step `json:"steps"` // 1 to store.MaxSteps

	// Concurrent runs each step as soon as those in its After have succeeded.
	// Otherwise they run one after another.
	Concurrent bool `json:"concurrent,omitempty"`

	// Timeout is how long after its creation the saga is aborted, unless it has
	// ended; 0: never.
	Timeout time.Duration `json:"timeout,omitempty"`
	// RequestTimeout bounds one call of a branch; 0: the coordinator's.
	RequestTimeout time.Duration `json:"request_timeout,omitempty"`
	// RetryInterval is the least pause before a branch is asked again: as it is
	// while the branch says that it is not decided, doubled each time while it does
	// not answer; 0: the coordinator's.
	RetryInterval time.Duration `json:"retry_interval,omitempty"`
	// RetryLimit is how often an action is repeated that gives no answer, before
	// the saga is aborted; 0: for ever. Compensations are always repeated for ever.
	// Calls that the end of their coordinator cut off do not count: nothing is
	// written before a call, so nobody knows of them.
	RetryLimit int `json:"retry_limit,omitempty"`

	Headers map[string]string `json:"headers,omitempty"` // sent with every call
	Custom  string            `json:"custom,omitempty"`  // the submitter's own; kept, and not looked at
}

// Step is one of them: what does it, and what undoes it.
type Step struct {
	Action     string `json:"action,omitempty"`     // URL; empty: succeeds without a call
	Compensate string `json:"compensate,omitempty"` // URL; empty: succeeds without a call
	Payload    string `json:"payload,omitempty"`    // sent to both; JSON text, or empty for a GET
	After      []int  `json:"after,omitempty"`      // steps, from 0, that this one waits for; only if Concurrent
	// Timeout bounds one call of its branches; 0: the saga's RequestTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// NewGID gives a gid nobody else has: 22 characters, the time to the millisecond
// and 65 random bits. Later ones sort after earlier ones, so that a store that keeps
// sagas in the order of their gids writes new ones side by side.
func NewGID() string {
	var gid [gidTimeChars]byte
	ms := time.Now().UnixMilli()
	for i := len(gid) - 1; i >= 0; i-- {
		gid[i] = sortedDigits[ms&31]
		ms >>= 5
	}
	return string(gid[:]) + rand.Text()[:gidRandomChars]
}

// A character holds five bits. The time lasts until the year 3084.
const (
	gidTimeChars   = 9
	gidRandomChars = 13
	sortedDigits   = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
)

// size adds up what is counted of all that may be long.
func (s *Saga) size(count func(string) int) int {
	n := count(s.Custom)
	for i := range s.Steps {
		n += count(s.Steps[i].Action) + count(s.Steps[i].Compensate) + count(s.Steps[i].Payload)
	}
	return n
}

// escaped is how long text is as JSON, at least: six bytes for each of these.
func escaped(text string) int {
	return len(text) + 5*(strings.Count(text, "<")+strings.Count(text, ">")+strings.Count(text, "&"))
}

// encode gives the body under which a store keeps the saga. Equal sagas have
// equal bodies.
func (s *Saga) encode() ([]byte, error) {
	if n := s.size(func(text string) int { return len(text) }); n > store.MaxBodyBytes/6 { // encoding costs several times the result
		if n = s.size(escaped); n > store.MaxBodyBytes {
			return nil, fmt.Errorf("%w: body: %d bytes as JSON, where < > & take six, at most %d", store.ErrInvalid, n, store.MaxBodyBytes)
		}
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding saga %s: %w", s.GID, err)
	}
	return body, nil
}

// url is what a branch calls.
func (s *Saga) url(b store.Branch) string {
	if b.IsCompensation() {
		return s.Steps[b.Step()].Compensate
	}
	return s.Steps[b.Step()].Action
}

// Info is a saga as a store holds it, read.
type Info struct {
	store.Record
	Saga  *Saga
	State State // no call is under way as far as a store knows
}

// Read takes a record apart that a coordinator wrote.
func Read(r store.Record) (Info, error) {
	s := &Saga{GID: r.GID}
	if err := json.Unmarshal(r.Body, s); err != nil {
		return Info{}, fmt.Errorf("decoding saga %s: %w", r.GID, err)
	}
	if len(s.Steps) != r.Marks.Steps() {
		return Info{}, fmt.Errorf("decoding saga %s: %d steps, but marks for %d", r.GID, len(s.Steps), r.Marks.Steps())
	}
	if err := s.validateOrder(); err != nil {
		return Info{}, fmt.Errorf("decoding saga %s: steps%w", r.GID, err)
	}
	state := State{Status: r.Status, Marks: r.Marks}
	if err := state.readNote(r.Note); err != nil {
		return Info{}, fmt.Errorf("decoding saga %s: %w", r.GID, err)
	}
	return Info{Record: r, Saga: s, State: state}, nil
}
