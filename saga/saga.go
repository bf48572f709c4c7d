package saga

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// Saga is what a client submits: steps that happen all or not at all. Do not change it
// after submitting: the coordinator uses it without a copy.
type Saga struct {
	GID   string `json:"-"`     // chosen by the client, or NewGID
	Steps []Step `json:"steps"` // 1 to store.MaxSteps

	// Concurrent runs each step as soon as those in its After have succeeded.
	// Otherwise they run one after another.
	Concurrent bool `json:"concurrent,omitempty"`

	// Timeout is the time from its creation after which an unfinished saga is aborted; 0:
	// never.
	Timeout time.Duration `json:"timeout,omitempty"`
	// RequestTimeout bounds one call of a branch; 0: the coordinator's setting.
	RequestTimeout time.Duration `json:"request_timeout,omitempty"`
	// RetryInterval is the shortest pause before a branch is called again. It is constant
	// while the branch is undecided, and doubles each time while the branch does not answer;
	// 0: the coordinator's setting.
	RetryInterval time.Duration `json:"retry_interval,omitempty"`
	// RetryLimit is how often an action that gives no answer is retried before the saga is
	// aborted; 0: no limit. Compensations are retried for ever. Calls that a crash or a stop
	// cut off do not count: nothing is written before a call.
	RetryLimit int `json:"retry_limit,omitempty"`

	Headers map[string]string `json:"headers,omitempty"` // sent with every call
	Custom  string            `json:"custom,omitempty"`  // the submitter's data; stored, and not interpreted
}

// Step is an action and the compensation that undoes it.
type Step struct {
	Action     string `json:"action,omitempty"`     // URL; empty: succeeds without a call
	Compensate string `json:"compensate,omitempty"` // URL; empty: succeeds without a call
	Payload    string `json:"payload,omitempty"`    // of both calls; JSON text, or empty for a GET
	After      []int  `json:"after,omitempty"`      // steps, from 0, that this one waits for; only if Concurrent
	// Timeout bounds one call of the step's branches; 0: the saga's RequestTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// NewGID returns a unique gid of 22 characters: the time in milliseconds and 65 random
// bits. Later gids sort after earlier ones, so a store that is ordered by gid writes new
// sagas next to each other.
func NewGID() string {
	var gid [gidTimeChars]byte
	ms := time.Now().UnixMilli()
	for i := len(gid) - 1; i >= 0; i-- {
		gid[i] = sortedDigits[ms&31]
		ms >>= 5
	}
	return string(gid[:]) + rand.Text()[:gidRandomChars]
}

// A character holds five bits. The time overflows in the year 3084.
const (
	gidTimeChars   = 9
	gidRandomChars = 13
	sortedDigits   = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
)

// size sums count over the fields that may be long.
func (s *Saga) size(count func(string) int) int {
	n := count(s.Custom)
	for i := range s.Steps {
		n += count(s.Steps[i].Action) + count(s.Steps[i].Compensate) + count(s.Steps[i].Payload)
	}
	return n
}

// escapedLen is a lower bound of the length of text as JSON, where these take six bytes.
func escapedLen(text string) int {
	return len(text) + 5*(strings.Count(text, "<")+strings.Count(text, ">")+strings.Count(text, "&"))
}

// encode returns the stored form of the saga. Equal sagas have equal bodies.
func (s *Saga) encode() ([]byte, error) {
	if n := s.size(escapedLen); n > store.MaxBodyBytes { // encoding costs several times the result
		return nil, fmt.Errorf("%w: body: %d bytes as JSON, where < > & take six, at most %d", store.ErrInvalid, n, store.MaxBodyBytes)
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding saga %s: %w", s.GID, err)
	}
	return body, nil
}

// url returns the URL of a branch.
func (s *Saga) url(b store.Branch) string {
	if b.IsCompensation() {
		return s.Steps[b.Step()].Compensate
	}
	return s.Steps[b.Step()].Action
}

// Plan returns what the machine needs of the saga. Settings that the saga leaves open are
// those of cfg.
func (s *Saga) Plan(cfg *Config) machine.Plan {
	return machine.NewPlan(s.GID, len(s.Steps), s.order(), machine.Backoff{
		First: cmp.Or(s.RetryInterval, cfg.RetryInterval), Max: cfg.MaxRetryInterval, Limit: s.RetryLimit,
	})
}

// order returns, per step, the steps that it waits for. It is nil if the steps run one
// after another.
func (s *Saga) order() [][]int {
	if !s.Concurrent {
		return nil
	}
	after := make([][]int, len(s.Steps))
	for i, step := range s.Steps {
		after[i] = step.After
	}
	return after
}

// Info is a stored saga, decoded.
type Info struct {
	store.Record
	Saga  *Saga
	State machine.State // without calls under way: a store does not know them
}

// Read decodes a record that a coordinator wrote.
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
	state := machine.State{Status: r.Status, Marks: r.Marks}
	if err := state.SetNote(r.Note); err != nil {
		return Info{}, fmt.Errorf("decoding saga %s: %w", r.GID, err)
	}
	return Info{Record: r, Saga: s, State: state}, nil
}

// LeftUndone lists the steps, from 0, that may have had an effect and whose compensation is
// not known to have succeeded. It is empty for a saga that has failed without being stopped
// by force.
func (i Info) LeftUndone() []int {
	plan := i.Saga.Plan(&Config{})
	return plan.LeftUndone(i.Marks)
}
