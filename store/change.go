package store

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits of what a store takes.
const (
	MaxGIDBytes   = 64
	MaxOwnerBytes = 8
	MaxSteps      = 1000
	MaxBodyBytes  = 4 << 20
	MaxNoteBytes  = 32 << 10
	MaxEpoch      = math.MaxUint32
)

// Change is one write: a [*Create] or a [*Transition].
type Change interface {
	// Gid is the saga that the change is about.
	Gid() string
	// Validate checks the change against the limits of this package; its
	// error wraps ErrInvalid and names the field.
	Validate() error
	// change keeps the set closed: stores know both kinds and no other.
	change()
}

// Create puts a new saga into the store: submitted, all marks pending, epoch 1.
// Of a gid that is there already it answers ErrDuplicate or ErrExists.
type Create struct {
	GID   string        // 1 to MaxGIDBytes of A-Z a-z 0-9 _ -
	Body  []byte        // what the saga is; opaque, compared byte for byte; no zero byte
	Steps int           // 1 to MaxSteps
	Owner string        // 1 to MaxOwnerBytes of A-Z a-z 0-9
	Due   time.Duration // from now until others may claim it; 0 or less: at once
}

// Transition moves an unfinished saga on. It applies only to a saga that has
// exactly this Epoch and the status From. A branch that the saga does not have
// is ErrInvalid, like what Validate refuses.
type Transition struct {
	GID   string
	Epoch uint32
	From  Status
	To    Status        // may be From; see Status.CanBecome
	Marks []SetMark     // a branch once
	Due   time.Duration // from now; 0 leaves it as it is, less than 0 is at once; not with a final To
	Note  string        // replaces the record's, unless empty; no zero byte
	// Release clears the owner: nobody runs the saga until somebody claims it.
	// It needs a Due, for when that may be.
	Release bool
}

// SetMark says what became of one branch.
type SetMark struct {
	Branch Branch
	Mark   Mark // not MarkPending
}

// Gid implements Change.
func (c *Create) Gid() string { return c.GID }

// Gid implements Change.
func (t *Transition) Gid() string { return t.GID }

func (*Create) change()     {}
func (*Transition) change() {}

// Validate implements Change.
func (c *Create) Validate() error {
	if err := CheckGID(c.GID); err != nil {
		return err
	}
	if err := CheckOwner(c.Owner); err != nil {
		return err
	}
	switch {
	case c.Steps < 1 || c.Steps > MaxSteps:
		return invalid("steps: %d, must be 1 to %d", c.Steps, MaxSteps)
	case len(c.Body) > MaxBodyBytes:
		return invalid("body: %d bytes, at most %d", len(c.Body), MaxBodyBytes)
	case bytes.IndexByte(c.Body, 0) >= 0:
		return invalid("body: holds a zero byte")
	}
	return nil
}

// Validate implements Change.
func (t *Transition) Validate() error {
	if err := CheckGID(t.GID); err != nil {
		return err
	}
	switch {
	case t.Epoch == 0:
		return invalid("epoch: 0, the first is 1")
	case !t.From.CanBecome(t.To):
		return invalid("status: no saga goes from %v to %v", t.From, t.To)
	case t.To.Final() && t.Due != 0:
		return invalid("due: a saga that ends is never due again")
	case t.Release && t.Due == 0:
		return invalid("release: without a due time")
	case len(t.Note) > MaxNoteBytes:
		return invalid("note: %d bytes, at most %d", len(t.Note), MaxNoteBytes)
	case strings.IndexByte(t.Note, 0) >= 0:
		return invalid("note: holds a zero byte")
	}
	for i, m := range t.Marks {
		if m.Branch < 0 || m.Branch >= 2*MaxSteps {
			return invalid("branch: %d, must be 0 to %d", m.Branch, 2*MaxSteps-1)
		}
		if m.Mark != MarkSucceeded && m.Mark != MarkFailed {
			return invalid("mark: %q, must be succeeded or failed", byte(m.Mark))
		}
		for _, other := range t.Marks[:i] {
			if other.Branch == m.Branch {
				return invalid("branch: %d is marked twice", m.Branch)
			}
		}
	}
	return nil
}

// CheckBatch validates the changes of one Apply. It returns one slot per change,
// nil where it is valid. A gid may appear once: two changes of one saga depend on
// each other, and a batch promises no order.
func CheckBatch(changes []Change) []error {
	errs := make([]error, len(changes))
	seen := make(map[string]struct{}, len(changes))
	for i, c := range changes {
		errs[i] = c.Validate()
		others := len(seen)
		seen[c.Gid()] = struct{}{}
		if len(seen) == others && errs[i] == nil {
			errs[i] = invalid("gid: %q twice in one batch", c.Gid())
		}
	}
	return errs
}

// CheckGID reports, wrapping ErrInvalid, why gid may not become part of a key,
// a log line or a header.
func CheckGID(gid string) error { return checkName("gid", gid, MaxGIDBytes, "_-") }

// CheckOwner reports, wrapping ErrInvalid, what is wrong with an owner's name.
func CheckOwner(owner string) error { return checkName("owner", owner, MaxOwnerBytes, "") }

// CheckClaim validates the arguments of ClaimDue.
func CheckClaim(owner string, lease time.Duration, limit int) error {
	if err := CheckOwner(owner); err != nil {
		return err
	}
	switch {
	case lease < time.Millisecond:
		return invalid("lease: %v, at least 1ms", lease)
	case limit < 1:
		return invalid("limit: %d, at least 1", limit)
	}
	return nil
}

func checkName(field, name string, limit int, also string) error {
	if len(name) < 1 || len(name) > limit {
		return invalid("%s: %d bytes, must be 1 to %d", field, len(name), limit)
	}
	for i := range len(name) {
		c := name[i]
		// Bytes do not go below 0, so one comparison bounds a range at both ends.
		// Every change is checked, and with two it takes three times as long.
		alnum := (c|0x20)-'a' < 26 || c-'0' < 10
		if !alnum && strings.IndexByte(also, c) < 0 {
			return invalid("%s: %q at byte %d, allowed are A-Z a-z 0-9 %s", field, c, i, also)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, strings.TrimSpace(fmt.Sprintf(format, args...)))
}
