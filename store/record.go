package store

import (
	"fmt"
	"strings"
	"time"
)

// Status is where a saga stands. Its byte is what stores write.
type Status byte

// The statuses of a saga. The last two are final.
const (
	StatusSubmitted Status = 's' // its actions are being run
	StatusAborting  Status = 'a' // its compensations are being run
	StatusSucceeded Status = 'S' // every action succeeded
	StatusFailed    Status = 'F' // every compensation that was due succeeded
)

// Final reports whether a saga in this status has ended.
func (s Status) Final() bool { return s == StatusSucceeded || s == StatusFailed }

// Valid reports whether s is one of the statuses above.
func (s Status) Valid() bool {
	return s == StatusSubmitted || s == StatusAborting || s.Final()
}

// CanBecome reports whether a saga may go from s to next in one transition.
// Staying where it is counts, except in a final status.
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

// String gives the name that the saga HTTP API uses.
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

// Mark is what is known of one branch. Its byte is what stores write.
type Mark byte

// The marks of a branch. All but the first are final.
const (
	MarkPending   Mark = '-' // not known to have ended
	MarkSucceeded Mark = 'y'
	MarkFailed    Mark = 'n' // refused: it will not be tried again
)

// Branch numbers the branches of a saga: those of step i (from 0) are 2i, its
// action, and 2i+1, its compensation.
type Branch int

// Action is the branch that does step i.
func Action(i int) Branch { return Branch(2 * i) }

// Compensation is the branch that undoes step i.
func Compensation(i int) Branch { return Branch(2*i + 1) }

// Step is the step that b belongs to, from 0.
func (b Branch) Step() int { return int(b) / 2 }

// IsCompensation tells the two branches of a step apart.
func (b Branch) IsCompensation() bool { return b%2 == 1 }

// Valid reports whether m is one of the marks above.
func (m Mark) Valid() bool { return m == MarkPending || m == MarkSucceeded || m == MarkFailed }

// Marks holds one mark per branch, in the order of their numbers.
type Marks string

// NewMarks gives a saga of so many steps its marks, all pending.
func NewMarks(steps int) Marks { return Marks(strings.Repeat(string(rune(MarkPending)), 2*steps)) }

// At is the mark of branch b.
func (m Marks) At(b Branch) Mark { return Mark(m[b]) }

// With is m with the mark of branch b set.
func (m Marks) With(b Branch, mark Mark) Marks {
	return m[:b] + Marks(rune(mark)) + m[b+1:]
}

// Steps is how many steps the saga has.
func (m Marks) Steps() int { return len(m) / 2 }

// Record is a saga as a store holds it. Times are the store's, to the
// millisecond.
type Record struct {
	GID    string
	Status Status
	Marks  Marks
	Epoch  uint32 // raised by every claim; 1 when created
	Owner  string // who created or last claimed it, and may be running it until Due; empty if released

	Created time.Time
	Updated time.Time // when the status last changed
	Due     time.Time // when anyone may claim it; zero once it has ended

	Note string // what the coordinator keeps beside the marks; opaque, may be empty
	Body []byte // as given to Create
}

// Check reports, wrapping ErrUnreadable, why no store can have written r. Stores
// ask it of what they read back.
func (r *Record) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("saga %s: %w: %s", r.GID, ErrUnreadable, fmt.Sprintf(format, args...))
	}
	switch {
	case !r.Status.Valid():
		return bad("status: %q is none", byte(r.Status))
	case r.Epoch == 0:
		return bad("epoch: 0, the first is 1")
	case len(r.Marks) == 0:
		return bad("marks: none")
	}
	for b := range len(r.Marks) {
		if m := r.Marks.At(Branch(b)); !m.Valid() {
			return bad("marks: %q of branch %d is none", byte(m), b)
		}
	}
	return nil
}
