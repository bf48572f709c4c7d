package saga

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// calls are the calls of branches that one run has under way.
type calls struct {
	ctx     context.Context // of all calls; nil before the first
	cutOff  context.CancelFunc
	answers chan answer
	pending int // answers that are still to come

	// A participant whose answer is not received may be at work until the deadline of
	// the call.
	busyUntil       time.Time // of actions
	cutOffBusyUntil time.Time // of actions and compensations that stop has cut off
}

// answer is how a call ended.
type answer struct {
	machine.Event
	busyUntil time.Time // the participant may be at work until then
}

// take accounts for one pending answer.
func (c *calls) take(a answer) machine.Event {
	c.pending--
	if !a.Branch.IsCompensation() {
		c.busyUntil = later(c.busyUntil, a.busyUntil)
	}
	return a.Event
}

// busyFor is how long an action may still be at work, in whole milliseconds as a store
// keeps it.
func (c *calls) busyFor() time.Duration {
	if c.busyUntil.IsZero() {
		return 0
	}
	return ceilMillis(max(time.Until(c.busyUntil), 0))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func ceilMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// drain adds the answers that are there already.
func (c *calls) drain(events []machine.Event) []machine.Event {
	for {
		select {
		case a := <-c.answers:
			events = append(events, c.take(a))
		default:
			return events
		}
	}
}

// stop cuts off the calls under way, waits for them to return, and returns the answers
// that came all the same. Stopping twice is allowed.
func (c *calls) stop() (answered []machine.Event) {
	if c.ctx == nil {
		return nil
	}
	c.cutOff()
	for c.pending > 0 {
		a := <-c.answers
		c.cutOffBusyUntil = later(c.cutOffBusyUntil, a.busyUntil)
		if e := c.take(a); e.Outcome != machine.Unknown {
			answered = append(answered, e)
		}
	}
	return answered
}

// startCalls calls branches in the background. Branches without a URL succeed at once,
// and are added to events. Answers count only if the saga is still ours, which the next
// write finds out.
func (c *Coordinator) startCalls(r *run, branches []store.Branch, events []machine.Event) []machine.Event {
	for _, b := range branches {
		if r.saga.url(b) == "" {
			events = append(events, machine.Event{Outcome: machine.Succeeded, Branch: b})
			continue
		}
		if r.calls.ctx == nil {
			r.calls.ctx, r.calls.cutOff = context.WithCancel(c.ctx)
			r.calls.answers = make(chan answer)
		}
		r.calls.pending++
		notBefore, leaseEnd := time.Time{}, r.leaseEnd
		if b.IsCompensation() {
			notBefore = r.calls.busyUntil // of any action: telling them apart is not worth it
		}
		go func() { r.calls.answers <- c.call(r, b, notBefore, leaseEnd) }()
	}
	return events
}

// call calls a branch, not before notBefore and not beyond leaseEnd: if this process was
// stopped meanwhile, nothing of the lease may be left.
func (c *Coordinator) call(r *run, b store.Branch, notBefore, leaseEnd time.Time) answer {
	a := answer{Event: machine.Event{Branch: b, Outcome: machine.Unknown}}
	if !notBefore.IsZero() { // most need not read the clock
		select {
		case <-time.After(time.Until(notBefore)):
		case <-r.calls.ctx.Done():
			return a
		}
	}
	began := time.Now()
	deadline := began.Add(c.requestTimeout(r.saga, b))
	if leaseEnd.Before(deadline) {
		deadline = leaseEnd
	}
	if !began.Before(deadline) {
		a.Reason = "the lease ended before the call began"
		return a
	}
	ctx, cancel := context.WithDeadline(r.calls.ctx, deadline)
	defer cancel()
	call := Call{
		GID: r.saga.GID, Branch: b, URL: r.saga.url(b), Payload: r.saga.Steps[b.Step()].Payload, Headers: r.saga.Headers,
	}
	outcome, why := c.caller.Call(ctx, call)
	switch outcome {
	case machine.Unknown:
		a.busyUntil = deadline
	case machine.Ended:
		outcome = machine.Unknown
	}
	a.Outcome = outcome
	if why != "" {
		a.Reason = machine.Reason(fmt.Sprintf("step %d, %s: %s", b.Step()+1, Op(b), why))
	}
	if b.IsCompensation() && outcome == machine.Failed {
		atomic.AddInt64(&c.stats.RefusedCompensations, 1)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(Attempt{Call: call, Began: began, Took: time.Since(began), Outcome: outcome, Reason: a.Reason})
	}
	return a
}

// withoutAll returns list without the elements of less, all of which it holds.
func withoutAll(list, less []store.Branch) []store.Branch {
	switch len(less) {
	case 0:
		return list
	case len(list):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(b store.Branch) bool { return slices.Contains(less, b) })
}
