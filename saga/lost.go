package saga

import (
	"fmt"
	"time"

	"sagabench/store"
)

// A store may lose what it has acknowledged: by a crash, if it does not sync every
// write, or by a failover to a replica that is behind. A coordinator notices when a
// write of its own is refused or stays without an answer.

// gone says what is known of a saga that is not there any more, and how it ended
// nobody can tell.
func (c *Coordinator) gone(r *run, t *store.Transition, unsure bool, err error) error {
	last := fmt.Sprintf("%v was not written", t.To)
	if unsure {
		last = fmt.Sprintf("whether %v was written is not known", t.To)
	}
	keep := c.store.Retention()
	if keep == 0 {
		return fmt.Errorf("%w: %s, and then the saga was gone; finished sagas are not kept: %w", ErrEndUnknown, last, err)
	}
	// Nobody drops an unfinished saga. Somebody else may have ended it and its
	// retention have passed, if that is shorter than the time since it was ours.
	if c.cfg.Lease-time.Until(r.until) < keep {
		c.lostWrite(r, "found", "nothing")
	}
	return fmt.Errorf("%w: %s, and then the saga was gone; finished sagas are kept for %v: %w", ErrEndUnknown, last, keep, err)
}

// lostWrite says loudly that the store has lost what r knows it to have acknowledged.
func (c *Coordinator) lostWrite(r *run, found ...any) {
	c.stats.lostWrites.Add(1)
	c.log.Error("the store has lost writes that it had acknowledged",
		append([]any{"gid", r.saga.GID, "epoch", r.epoch, "status", r.state.Status, "marks", r.state.Marks}, found...)...)
}
