package saga

import (
	"context"
	"errors"
	"fmt"
)

// ErrBusy: as many submitted sagas are under way here as may be. Nothing was
// written; the saga may be submitted again later, or to another coordinator.
var ErrBusy = errors.New("too many sagas under way")

// submit creates the saga and gives the run that is to be driven, or nil if it
// was there already. It refuses the saga before anything is written when
// Config.MaxInFlight are under way.
func (c *Coordinator) submit(ctx context.Context, s *Saga) (*run, error) {
	weight := c.weight(s)
	if c.admitted.Add(weight) > int64(c.cfg.MaxInFlight) {
		c.admitted.Add(-weight)
		c.stats.refused.Add(1)
		return nil, fmt.Errorf("saga %s: %w: %d, as many as coordinator.max_in_flight allows", s.GID, ErrBusy, c.cfg.MaxInFlight)
	}
	r, err := c.create(ctx, s)
	if r == nil {
		c.admitted.Add(-weight)
		return nil, err
	}
	if r.after = c.discharge; weight > 1 {
		r.after = func() { c.admitted.Add(-weight) }
	}
	return r, err
}

// bytesOfOne is how much of a saga counts as one: it is in memory while it is under way.
const bytesOfOne = 32 << 10

// weight is for how many sagas one counts: as many as it may call branches at once, or,
// if that is more, as it is large. The largest is let in when nothing else is under way.
func (c *Coordinator) weight(s *Saga) int64 {
	weight := 1 + s.size(func(text string) int { return len(text) })/bytesOfOne
	if s.Concurrent {
		weight = max(weight, len(s.Steps))
	}
	return int64(min(weight, c.cfg.MaxInFlight))
}
