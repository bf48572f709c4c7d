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
	answers chan Event
	waiting int // for so many answers
}

// more takes what else has been answered already.
func (c *calls) more(events []Event) []Event {
	c.waiting--
	for {
		select {
		case e := <-c.answers:
			c.waiting--
			events = append(events, e)
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
	for ; c.waiting > 0; c.waiting-- {
		if e := <-c.answers; e.Outcome != Unknown {
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
			r.calls.answers = make(chan Event)
		}
		r.calls.waiting++
		go func() { r.calls.answers <- c.call(r, b) }()
	}
	return events
}

// call asks a branch.
func (c *Coordinator) call(r *run, b store.Branch) Event {
	ctx, cancel := context.WithTimeout(r.calls.ctx, c.limit(r.saga, b))
	defer cancel()
	call := Call{
		GID: r.saga.GID, Branch: b, URL: r.saga.url(b), Payload: r.saga.Steps[b.Step()].Payload, Headers: r.saga.Headers,
	}
	began := time.Now()
	outcome, why := c.caller.Call(ctx, call)
	e := Event{Branch: b, Outcome: outcome}
	if why != "" {
		e.Reason = reason(fmt.Sprintf("step %d, %s: %s", b.Step()+1, Op(b), why))
	}
	if b.IsCompensation() && outcome == Failed {
		c.stats.refusedCompensations.Add(1)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(Attempt{Call: call, Began: began, Took: time.Since(began), Outcome: outcome, Reason: e.Reason})
	}
	return e
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
