package saga

import (
	"context"
	"fmt"
	"time"

	"sagabench/store"
)

// Caller calls branches. It must be safe for many goroutines.
type Caller interface {
	// Call makes one attempt, within ctx, and says what came of it; for any
	// outcome but Succeeded with a reason for people.
	Call(ctx context.Context, c Call) (Outcome, string)
	// Check reports why a URL could never be called. It is asked before a saga
	// is accepted.
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

// Attempt is a call of a branch that has come to an end.
type Attempt struct {
	Call
	Began   time.Time
	Took    time.Duration
	Outcome Outcome
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
