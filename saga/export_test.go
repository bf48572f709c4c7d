package saga

import (
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// AtOnce is how many sagas with such a body, of no participant, are recovered at once.
func AtOnce(all, body int) (n int) {
	s := newSlots(all)
	for {
		if _, ok := s.take(&claimed{weight: s.weight(body)}, true); !ok {
			return n
		}
		n++
	}
}

// CallUnder calls a branch in a run whose lease ends then, as after a process was
// stopped between reading the clock and the call.
func CallUnder(c *Coordinator, s *Saga, b store.Branch, leaseEnd time.Time) machine.Event {
	r := &run{saga: s}
	r.calls.ctx = c.ctx
	return c.call(r, b, time.Time{}, leaseEnd).Event
}

// RegistrySize is how many sagas a coordinator has in memory, running or waited for.
func RegistrySize(c *Coordinator) int {
	c.sagas.mu.Lock()
	defer c.sagas.mu.Unlock()
	return len(c.sagas.sagas)
}
