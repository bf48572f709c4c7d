package saga

import (
	"context"
	"fmt"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// Caller calls branches. It must be safe for use by many goroutines. Package branch has
// callers over HTTP and of Go functions.
type Caller interface {
	// Call makes one attempt within ctx, and returns its outcome; for any outcome but
	// Succeeded with a reason for people.
	Call(ctx context.Context, c Call) (machine.Outcome, string)
	// Check returns an error if a URL can never be called. The coordinator checks the
	// URLs of a saga before it accepts the saga.
	Check(url string) error
}

// Call is one call of a branch.
type Call struct {
	GID     string
	Branch  store.Branch
	URL     string
	Payload string // JSON text, or empty
	Headers map[string]string
}

// Attempt is a call of a branch that has ended.
type Attempt struct {
	Call
	Began   time.Time
	Took    time.Duration
	Outcome machine.Outcome
	Reason  string // for people; empty if it succeeded
}

// BranchID names the step of a branch as the saga HTTP API does: 01 for the first.
func BranchID(b store.Branch) string { return fmt.Sprintf("%02d", b.Step()+1) }

// Op names the kind of a branch as the saga HTTP API does.
func Op(b store.Branch) string {
	if b.IsCompensation() {
		return "compensate"
	}
	return "action"
}
