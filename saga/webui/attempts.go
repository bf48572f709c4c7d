package webui

import (
	"sync"
	"time"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// maxAttempts bounds the attempts remembered. They take at most 7 MB.
const maxAttempts = 10_000

// Attempts remembers the last calls of branches by this process. Make it with
// NewAttempts.
type Attempts struct {
	mu     sync.Mutex
	ring   []attempt
	oldest int // in a full ring
}

// attempt is a saga.Attempt without its payload and headers.
type attempt struct {
	gid     string
	branch  store.Branch
	began   time.Time
	took    time.Duration
	outcome machine.Outcome
	reason  string
}

// NewAttempts returns an empty memory of attempts.
func NewAttempts() *Attempts { return &Attempts{} }

// Observe remembers an attempt. It is to be called by saga.Config.Observe.
func (a *Attempts) Observe(made saga.Attempt) {
	last := attempt{made.GID, made.Branch, made.Began, made.Took, made.Outcome, made.Reason}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ring) < maxAttempts {
		a.ring = append(a.ring, last)
		return
	}
	a.ring[a.oldest] = last
	a.oldest = (a.oldest + 1) % maxAttempts
}

// of returns the attempts of one saga, in the order in which they ended.
func (a *Attempts) of(gid string) (found []attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.ring {
		if made := a.ring[(a.oldest+i)%len(a.ring)]; made.gid == gid {
			found = append(found, made)
		}
	}
	return found
}
