package saga

import "sagabench/store"

// Plan is what of a saga decides its course and never changes.
type Plan struct {
	Steps   int
	Ordered bool    // steps run as After says; otherwise one after another
	After   [][]int // of each step, those that it waits for
	before  [][]int // of each step, those that wait for it
	Retry   Backoff
	GID     string // sagas with different ones are not held up for equally long
}

// plan is the saga's, with what it leaves open as cfg has it.
func (s *Saga) plan(cfg *Config) Plan {
	p := Plan{
		GID:   s.GID,
		Steps: len(s.Steps),
		Retry: Backoff{First: s.RetryInterval, Max: cfg.MaxRetryInterval, Limit: s.RetryLimit},
	}
	if p.Retry.First == 0 {
		p.Retry.First = cfg.RetryInterval
	}
	if s.Concurrent {
		p.Ordered = true
		p.After = make([][]int, len(s.Steps))
		for i, step := range s.Steps {
			p.After[i] = step.After
		}
		p.before = inverted(s.Steps)
	}
	return p
}

// inverted gives, of each step, those that wait for it.
func inverted(steps []Step) [][]int {
	before := make([][]int, len(steps))
	for i, step := range steps {
		for _, j := range step.After {
			before[j] = append(before[j], i)
		}
	}
	return before
}

// open reports whether every step that step i waits for has succeeded: only then
// can i have been started.
func (p *Plan) open(marks store.Marks, i int) bool {
	if !p.Ordered {
		return i == 0 || marks.At(store.Action(i-1)) == store.MarkSucceeded
	}
	for _, j := range p.After[i] {
		if marks.At(store.Action(j)) != store.MarkSucceeded {
			return false
		}
	}
	return true
}

// undone reports whether every step that waited for step i, and may have been
// started, has been compensated.
func (p *Plan) undone(marks store.Marks, i int) bool {
	if !p.Ordered {
		return i == p.Steps-1 || p.closed(marks, i+1)
	}
	for _, j := range p.before[i] {
		if !p.closed(marks, j) {
			return false
		}
	}
	return true
}

// closed reports whether of step i nothing is left to compensate.
func (p *Plan) closed(marks store.Marks, i int) bool {
	return !p.open(marks, i) || marks.At(store.Compensation(i)) != store.MarkPending
}

// LeftUndone lists the steps, from 0, that may have done something and whose
// compensation is not known to have succeeded: an action was answered, or every
// action it waits for has succeeded, so that it may have been called. A saga that
// failed by itself has none.
func (i Info) LeftUndone() []int {
	plan := i.Saga.plan(&Config{})
	var steps []int
	for step := range plan.Steps {
		called := i.Marks.At(store.Action(step)) != store.MarkPending || plan.open(i.Marks, step)
		if called && i.Marks.At(store.Compensation(step)) != store.MarkSucceeded {
			steps = append(steps, step)
		}
	}
	return steps
}
