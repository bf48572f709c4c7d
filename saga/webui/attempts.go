package webui

import (
	"sync"
	"time"

	"sagabench/saga"
	"sagabench/store"
)

// attemptsKept bounds what Attempts remembers: at most some 7 MB.
const attemptsKept = 10_000

// Attempts remembers the last calls of branches that this process made. Make it
// with NewAttempts.
type Attempts struct {
	mu   sync.Mutex
	kept []attempt // a ring once it is full
	next int       // where the oldest is then
}

// attempt is what is kept of a saga.Attempt: not its payload and headers.
type attempt struct {
	gid     string
	branch  store.Branch
	began   time.Time
	took    time.Duration
	outcome saga.Outcome
	reason  string
}

// NewAttempts remembers nothing yet.
func NewAttempts() *Attempts { return &Attempts{} }

// Observe is saga.Config.Observe, or part of it.
func (a *Attempts) Observe(made saga.Attempt) {
	kept := attempt{made.GID, made.Branch, made.Began, made.Took, made.Outcome, made.Reason}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.kept) < attemptsKept {
		a.kept = append(a.kept, kept)
		return
	}
	a.kept[a.next] = kept
	a.next = (a.next + 1) % attemptsKept
}

// of gives those of one saga in the order in which they ended.
func (a *Attempts) of(gid string) (found []attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.kept {
		if kept := a.kept[(a.next+i)%len(a.kept)]; kept.gid == gid {
			found = append(found, kept)
		}
	}
	return found
}
