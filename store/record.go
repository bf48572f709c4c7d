package store

import (
	"fmt"
	"strings"
	"time"
)

// Status is the state of a saga. Stores write its byte.
type Status byte

// The statuses of a saga. The last two are final.
const (
	StatusSubmitted Status = 's' // its actions run
	StatusAborting  Status = 'a' // its compensations run
	StatusSucceeded Status = 'S' // every action succeeded
	StatusFailed    Status = 'F' // every compensation that was needed succeeded
)

// Final reports whether a saga in this status has ended.
func (s Status) Final() bool { return s == StatusSucceeded || s == StatusFailed }

// Valid reports whether s is one of the statuses above.
func (s Status) Valid() bool {
	return s == StatusSubmitted || s == StatusAborting || s.Final()
}

// CanBecome reports whether one transition may change s to next. An unfinished status
// may stay as it is.
func (s Status) CanBecome(next Status) bool {
	switch s {
	case StatusSubmitted:
		return next.Valid()
	case StatusAborting:
		return next == StatusAborting || next == StatusFailed
	default:
		return false
	}
}

// String returns the name that the HTTP API uses.
func (s Status) String() string {
	switch s {
	case StatusSubmitted:
		return "submitted"
	case StatusAborting:
		return "aborting"
	case StatusSucceeded:
		return "succeed"
	case StatusFailed:
		return "failed"
	default:
		return fmt.Sprintf("status(%q)", byte(s))
	}
}

// Mark is the recorded result of a branch. Stores write its byte.
type Mark byte

// The marks of a branch. All but the first are final.
const (
	MarkPending   Mark = '-' // no result is known
	MarkSucceeded Mark = 'y'
	MarkFailed    Mark = 'n' // refused; it is not called again
)

// Branch is the number of a branch. Step i, from 0, has action 2i and compensation
// 2i+1.
type Branch int

// Action returns the action of step i.
func Action(i int) Branch { return Branch(2 * i) }

// Compensation returns the compensation of step i.
func Compensation(i int) Branch { return Branch(2*i + 1) }

// Step returns the step of b, from 0.
func (b Branch) Step() int { return int(b) / 2 }

// IsCompensation reports whether b is a compensation.
func (b Branch) IsCompensation() bool { return b%2 == 1 }

// Valid reports whether m is one of the marks above.
func (m Mark) Valid() bool { return m == MarkPending || m == MarkSucceeded || m == MarkFailed }

// Marks holds one mark per branch, by number.
type Marks string

// NewMarks returns the pending marks of a saga with so many steps.
func NewMarks(steps int) Marks { return Marks(strings.Repeat(string(rune(MarkPending)), 2*steps)) }

// At returns the mark of branch b.
func (m Marks) At(b Branch) Mark { return Mark(m[b]) }

// With returns m with another mark of branch b.
func (m Marks) With(b Branch, mark Mark) Marks {
	return m[:b] + Marks(rune(mark)) + m[b+1:]
}

// Steps returns the number of steps of the saga.
func (m Marks) Steps() int { return len(m) / 2 }

// Record is a saga in a store. Its times are the store's, to the millisecond.
type Record struct {
	GID    string
	Status Status
	Marks  Marks
	Epoch  uint32 // raised by every claim; 1 when created
	Owner  string // the coordinator that created or last claimed it; empty if released

	Created time.Time
	Updated time.Time // when the status last changed
	Due     time.Time // when any coordinator may claim it; zero if the saga has ended

	Note string // the coordinator's own data; opaque, may be empty
	Body []byte // as given to Create
}

// Check returns an error that wraps ErrUnreadable if no store can have written r.
// Stores call it after they read a record.
func (r *Record) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("saga %s: %w: %s", r.GID, ErrUnreadable, fmt.Sprintf(format, args...))
	}
	switch {
	case !r.Status.Valid():
		return bad("status: %q is unknown", byte(r.Status))
	case r.Epoch == 0:
		return bad("epoch: 0, must be 1 or more")
	case len(r.Marks) == 0:
		return bad("marks: none")
	}
	for b := range len(r.Marks) {
		if m := r.Marks.At(Branch(b)); !m.Valid() {
			return bad("marks: %q of branch %d is unknown", byte(m), b)
		}
	}
	return nil
}
