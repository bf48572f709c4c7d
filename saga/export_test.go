package saga

import (
	"time"

	"sagabench/store"
)

// PlanOf is the plan by which a coordinator with cfg runs s.
func PlanOf(s *Saga, cfg *Config) Plan { return s.plan(cfg) }

// NoteOf is what a store keeps of s beside status and marks.
func NoteOf(s State) string { return s.note() }

// ReasonOf is text as a note takes it.
func ReasonOf(text string) string { return reason(text) }

// PauseOf is the time that b leaves a branch alone before retry number tries.
func PauseOf(b Backoff, gid string, branch store.Branch, tries int) time.Duration {
	return b.pause(gid, branch, tries)
}

// AtOnce is how many sagas with such a body, of no participant, are recovered at once.
func AtOnce(all, body int) (n int) {
	s := newSlots(all)
	for {
		if _, ok := s.take(&claimed{weight: s.weight(body)}, 0); !ok {
			return n
		}
		n++
	}
}

// CallUnder calls a branch in a run whose lease ends then, as after a process was
// stopped between its last look at the lease and the call.
func CallUnder(c *Coordinator, s *Saga, b store.Branch, lease time.Time) Event {
	r := &run{saga: s}
	r.calls.ctx = c.ctx
	return c.call(r, b, time.Time{}, lease).Event
}

// RegistrySize is how many sagas a coordinator keeps in mind, running or waited for.
func RegistrySize(c *Coordinator) int {
	c.sagas.mu.Lock()
	defer c.sagas.mu.Unlock()
	return len(c.sagas.sagas)
}
