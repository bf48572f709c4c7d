package saga

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sagabench/store"
)

// calls are the branches that one run has under way.
type calls struct {
	ctx     context.Context // of all of them; nil before the first
	cutOff  context.CancelFunc
	answers chan answer
	waiting int // for so many answers

	// A participant whose answer is not heard may be at work until the deadline of
	// the call.
	busy  time.Time // until then an action may be
	after time.Time // until then a branch may be whose call was cut off by stop
}

// answer is how a call ended.
type answer struct {
	Event
	busy time.Time // until then the participant may still be at work
}

// take takes an answer that was waited for.
func (c *calls) take(a answer) Event {
	c.waiting--
	if !a.Branch.IsCompensation() {
		c.busy = later(c.busy, a.busy)
	}
	return a.Event
}

// left is for how long an action may still be at work, to be written.
func (c *calls) left() time.Duration {
	if c.busy.IsZero() {
		return 0
	}
	return upToMillis(max(time.Until(c.busy), 0))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// upToMillis is what a store takes, and not less.
func upToMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// more takes what else has been answered already.
func (c *calls) more(events []Event) []Event {
	for {
		select {
		case a := <-c.answers:
			events = append(events, c.take(a))
		default:
			return events
		}
	}
}

// stop cuts off what is under way, waits for it to end, and returns what was
// answered all the same. Stopping twice is allowed.
func (c *calls) stop() (answered []Event) {
	if c.ctx == nil {
		return nil
	}
	c.cutOff()
	for c.waiting > 0 {
		a := <-c.answers
		c.after = later(c.after, a.busy)
		if e := c.take(a); e.Outcome != Unknown {
			answered = append(answered, e)
		}
	}
	return answered
}

// callAll calls branches. Those without a URL succeed at once, and are added to
// events. An answer counts only if the saga is still ours, which the next write
// finds out.
func (c *Coordinator) callAll(r *run, branches []store.Branch, events []Event) []Event {
	for _, b := range branches {
		if r.saga.url(b) == "" {
			events = append(events, Event{Outcome: Succeeded, Branch: b})
			continue
		}
		if r.calls.ctx == nil {
			r.calls.ctx, r.calls.cutOff = context.WithCancel(c.ctx)
			r.calls.answers = make(chan answer)
		}
		r.calls.waiting++
		lease, from := r.until, time.Time{}
		if b.IsCompensation() {
			from = r.calls.busy // of its action, or of another: it is not worth to tell them apart
		}
		go func() { r.calls.answers <- c.call(r, b, from, lease) }()
	}
	return events
}

// call asks a branch, not before from, and not beyond the lease: when this
// process was stopped there may be nothing left of it.
func (c *Coordinator) call(r *run, b store.Branch, from, lease time.Time) answer {
	a := answer{Event: Event{Branch: b, Outcome: Unknown}}
	if !from.IsZero() { // few have to wait: no look at the clock for the others
		select {
		case <-time.After(time.Until(from)):
		case <-r.calls.ctx.Done():
			return a
		}
	}
	began := time.Now()
	deadline := began.Add(c.limit(r.saga, b))
	if lease.Before(deadline) {
		deadline = lease
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
	case Unknown:
		a.busy = deadline
	case Ended:
		outcome = Unknown
	}
	a.Outcome = outcome
	if why != "" {
		a.Reason = reason(fmt.Sprintf("step %d, %s: %s", b.Step()+1, Op(b), why))
	}
	if b.IsCompensation() && outcome == Failed {
		c.stats.refusedCompensations.Add(1)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(Attempt{Call: call, Began: began, Took: time.Since(began), Outcome: outcome, Reason: a.Reason})
	}
	return a
}

// withoutAll is list without less, all of which it holds.
func withoutAll(list, less []store.Branch) []store.Branch {
	switch len(less) {
	case 0:
		return list
	case len(list): // all of them
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(b store.Branch) bool { return slices.Contains(less, b) })
}
