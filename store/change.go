package store

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits of a change.
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
	// Gid returns the gid of the saga.
	Gid() string
	// Validate checks the change against the limits of this package. Its error wraps
	// ErrInvalid and names the field.
	Validate() error
	// change keeps other packages from adding kinds.
	change()
}

// Create adds a saga: submitted, all marks pending, epoch 1. If the gid exists, it gets
// ErrDuplicate or ErrExists.
type Create struct {
	GID   string        // 1 to MaxGIDBytes of A-Z a-z 0-9 _ -
	Body  []byte        // opaque, compared byte by byte; no zero byte
	Steps int           // 1 to MaxSteps
	Owner string        // 1 to MaxOwnerBytes of A-Z a-z 0-9
	Due   time.Duration // from now until others may claim the saga; 0 or less: at once
}

// Transition changes an unfinished saga. It applies only if the saga has exactly this
// Epoch, the status From and, if it is named, this Owner. It gets ErrInvalid if the saga
// has fewer branches.
type Transition struct {
	GID   string
	Epoch uint32
	// Owner is the coordinator that owns the saga; empty: any, or none. A store that has
	// lost a claim gives its epoch to another owner.
	Owner string
	From  Status
	To    Status        // may be From; see Status.CanBecome
	Marks []SetMark     // each branch at most once
	Due   time.Duration // from now; 0: unchanged, below 0: at once; 0 with a final To
	Note  string        // replaces the note, unless empty; no zero byte
	// Release clears the owner: nobody runs the saga until the next claim. It needs a
	// Due.
	Release bool
}

// SetMark sets the mark of one branch.
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
	if t.Owner != "" {
		if err := CheckOwner(t.Owner); err != nil {
			return err
		}
	}
	switch {
	case t.Epoch == 0:
		return invalid("epoch: 0, must be 1 or more")
	case !t.From.CanBecome(t.To):
		return invalid("status: %v cannot become %v", t.From, t.To)
	case t.To.Final() && t.Due != 0:
		return invalid("due: %v, must be 0 with a final status", t.Due)
	case t.Release && t.Due == 0:
		return invalid("release: needs a due time")
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

// SetMarks sets the marks of t in marks, which belong to a saga in this status and epoch,
// with this owner. If t does not apply, it returns ErrConflict or ErrInvalid, and marks may
// have changed.
func (t *Transition) SetMarks(marks []byte, status Status, epoch uint32, owner string) error {
	if t.Owner != "" && t.Owner != owner {
		return fmt.Errorf("%w: its owner is %q, not %q", ErrConflict, owner, t.Owner)
	}
	if epoch != t.Epoch || status != t.From {
		return fmt.Errorf("%w: it is %v in epoch %d, not %v in epoch %d", ErrConflict, status, epoch, t.From, t.Epoch)
	}
	for _, m := range t.Marks {
		if int(m.Branch) >= len(marks) {
			return invalid("branch: %d, the saga has %d", m.Branch, len(marks))
		}
		if old := Mark(marks[m.Branch]); old != MarkPending && old != m.Mark {
			return fmt.Errorf("%w: branch %d is marked %q, not %q", ErrConflict, m.Branch, byte(old), byte(m.Mark))
		}
		marks[m.Branch] = byte(m.Mark)
	}
	return nil
}

// Apply applies t to r at the store's time now. It returns the errors of SetMarks and
// leaves r unchanged then.
func (t *Transition) Apply(r *Record, now time.Time) error {
	marks := []byte(r.Marks)
	if err := t.SetMarks(marks, r.Status, r.Epoch, r.Owner); err != nil {
		return err
	}
	r.Marks = Marks(marks)
	if t.Note != "" {
		r.Note = t.Note
	}
	if t.Release {
		r.Owner = ""
	}
	if t.To != t.From {
		r.Status, r.Updated = t.To, now
	}
	switch {
	case t.To.Final():
		r.Due = time.Time{}
	case t.Due != 0:
		r.Due = now.Add(time.Duration(Millis(t.Due)) * time.Millisecond)
	}
	return nil
}

// Millis returns d in milliseconds. It rounds up, so that nothing is due or expires
// early. A negative d is 0.
func Millis(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// CheckBatch validates the changes of one Apply and returns an error per change. Each
// gid may appear once: a batch has no order, and two changes of a saga would need one.
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

// CheckGID returns an error that wraps ErrInvalid if gid is not safe in a key, a log
// line and a header.
func CheckGID(gid string) error { return checkName("gid", gid, MaxGIDBytes, "_-") }

// CheckOwner returns an error that wraps ErrInvalid if owner is no name of an owner.
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
		// Bytes wrap below 0, so one comparison checks both ends of a range. Two
		// comparisons take three times as long, and every change is checked.
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
