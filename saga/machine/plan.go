package machine

import (
	"fmt"
	"slices"

	"sagabench/store"
)

// Plan is the unchanging part of a saga, as far as the machine needs it.
type Plan struct {
	GID     string // spreads the pauses of different sagas
	Steps   int
	After   [][]int // per step, the steps that it waits for; nil: steps run one after another
	before  [][]int // per step, the steps that wait for it
	Backoff Backoff
}

// NewPlan makes a plan. after must pass CheckOrder, and is nil if the steps run one after
// another.
func NewPlan(gid string, steps int, after [][]int, backoff Backoff) Plan {
	return Plan{GID: gid, Steps: steps, After: after, before: inverted(after), Backoff: backoff}
}

func (p *Plan) concurrent() bool { return p.After != nil }

// inverted returns, per step, the steps that wait for it.
func inverted(after [][]int) [][]int {
	before := make([][]int, len(after))
	for i, others := range after {
		for _, j := range others {
			before[j] = append(before[j], i)
		}
	}
	return before
}

// CheckOrder checks that every step of a concurrent saga can be reached. Its error starts
// with the index of a step.
func CheckOrder(after [][]int) error {
	blockers := make([]int, len(after)) // per step, the number of steps it still waits for
	var free []int
	for i, others := range after {
		for k, j := range others {
			switch {
			case j < 0 || j >= len(after):
				return fmt.Errorf("[%d].after: no step %d, they are 0 to %d", i, j, len(after)-1)
			case slices.Contains(others[:k], j):
				return fmt.Errorf("[%d].after: names step %d twice", i, j)
			}
		}
		if blockers[i] = len(others); blockers[i] == 0 {
			free = append(free, i)
		}
	}
	before := inverted(after)
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, j := range before[i] {
			if blockers[j]--; blockers[j] == 0 {
				free = append(free, j)
			}
		}
	}
	for i, n := range blockers {
		if n > 0 {
			return fmt.Errorf("[%d].after: waits for itself, through other steps", i)
		}
	}
	return nil
}

// isOpen reports whether every action that the action of step i waits for has succeeded.
// Only then can it have been called.
func (p *Plan) isOpen(marks store.Marks, i int) bool {
	if !p.concurrent() {
		return i == 0 || marks.At(store.Action(i-1)) == store.MarkSucceeded
	}
	for _, j := range p.After[i] {
		if marks.At(store.Action(j)) != store.MarkSucceeded {
			return false
		}
	}
	return true
}

// isUndone reports whether every step that waits for step i, and may have been started,
// has been compensated.
func (p *Plan) isUndone(marks store.Marks, i int) bool {
	if !p.concurrent() {
		return i == p.Steps-1 || p.isClosed(marks, i+1)
	}
	for _, j := range p.before[i] {
		if !p.isClosed(marks, j) {
			return false
		}
	}
	return true
}

// isClosed reports whether step i needs no compensation any more.
func (p *Plan) isClosed(marks store.Marks, i int) bool {
	return !p.isOpen(marks, i) || marks.At(store.Compensation(i)) != store.MarkPending
}

// LeftUndone lists the steps, from 0, that may have had an effect and whose compensation is
// not known to have succeeded. An action may have had one if it was answered, or open and
// so perhaps called. A saga that was not stopped by force has none when it has failed.
func (p *Plan) LeftUndone(marks store.Marks) []int {
	var steps []int
	for i := range p.Steps {
		called := marks.At(store.Action(i)) != store.MarkPending || p.isOpen(marks, i)
		if called && marks.At(store.Compensation(i)) != store.MarkSucceeded {
			steps = append(steps, i)
		}
	}
	return steps
}
