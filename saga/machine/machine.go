package machine

import (
	"fmt"
	"slices"
	"time"

	"sagabench/store"
)

// State is all that decides what a saga does next.
type State struct {
	Status store.Status
	Marks  store.Marks

	// Calling are the branches under way, in no order. They are not stored: a saga that
	// is resumed has none.
	Calling []store.Branch
	Retries []Retry // of branches that were called and must be called again

	Aborted     string // why the saga was aborted; for people
	RetryReason string // of the newest retry; for people
	// Busy is how long an action that was called, and has not answered, may still be at
	// work. It counts from when it is written, or read: nobody knows how long ago it was
	// written.
	Busy   time.Duration
	Forced bool // stopped by force: no compensation follows
}

// Retry is a scheduled retry: its branch was called and did not decide.
type Retry struct {
	Branch store.Branch
	Tries  int // calls without an answer, since the last answer
	// Wait is the time until the retry. It does not run while other branches are under
	// way, and has ended for at least one retry when the saga is resumed.
	Wait time.Duration
}

// Outcome is the outcome of a call of a branch.
type Outcome int

// The outcomes of a call.
const (
	Succeeded Outcome = iota + 1
	Failed            // refused, for good
	Ongoing           // not decided yet: call again
	Unknown           // no answer, or one that is not understood: call again
	// Ended is Unknown of a branch that is not at work: it was never reached, or has
	// returned. Callers return it. The coordinator turns it into Unknown for the machine
	// and for observers.
	Ended
)

// Event is something that happened to a saga. With an Outcome, a call of a branch ended.
// Without one, the saga must be aborted.
type Event struct {
	Outcome Outcome
	Branch  store.Branch
	Reason  string // for people
}

// Decision is what follows from events. The change, if there is one, must be durable
// before the branches are called.
type Decision struct {
	State    State           // once the change is durable and the branches are called
	Change   bool            // something must be written
	Marks    []store.SetMark // set by the events; State.Marks includes them
	Note     bool            // the change includes the note
	Deferred time.Duration   // time until the next retry, if nothing can be done before; or 0
	Calls    []store.Branch  // to call now; State.Calling includes them
}

// Decide is the state machine. It is pure: its result depends on its arguments alone, and
// it changes none of them. The events are those since the last decision; a saga that is
// resumed has none. Answers of branches that are not under way (late, repeated) change
// nothing.
func Decide(p *Plan, s State, events ...Event) Decision {
	d := Decision{State: s}
	if s.Status.Final() {
		return d
	}
	for _, e := range events {
		if e.Outcome == 0 {
			d.abort(e.Reason)
		} else if i := slices.Index(d.State.Calling, e.Branch); i >= 0 {
			d.State.Calling = without(d.State.Calling, i)
			d.answered(p, e)
		}
	}
	d.proceed(p)
	d.Change = len(d.Marks) > 0 || d.State.Status != s.Status || d.Deferred > 0
	return d
}

// abort turns a saga from actions to compensations.
func (d *Decision) abort(why string) {
	if d.State.Status != store.StatusSubmitted {
		return
	}
	// Actions that succeeded together with the abort are not marked: that would open
	// actions that were never called.
	for _, m := range d.Marks {
		d.State.Marks = d.State.Marks.With(m.Branch, store.MarkPending)
	}
	d.Marks = nil
	d.State.Status = store.StatusAborting
	d.State.Aborted = why
	d.State.Retries = nil // of actions, which are not called again
	d.Note = true
}

func (d *Decision) answered(p *Plan, e Event) {
	aborting := d.State.Status != store.StatusSubmitted
	if aborting && !e.Branch.IsCompensation() {
		return // the answer of an action no longer counts, only that it has ended
	}
	tries := 1
	if i := d.State.retry(e.Branch); i >= 0 {
		tries += d.State.Retries[i].Tries
	}
	switch {
	case e.Outcome == Succeeded:
		d.mark(e.Branch, store.MarkSucceeded)
	case e.Outcome == Ongoing:
		d.retry(Retry{Branch: e.Branch, Wait: max(p.Backoff.First, time.Millisecond)}, e.Reason)
	case !aborting && e.Outcome == Failed:
		d.abort(e.Reason)
		d.mark(e.Branch, store.MarkFailed)
	case !aborting && p.Backoff.Limit > 0 && tries > p.Backoff.Limit:
		// It is not marked: its outcome is unknown.
		d.abort(fmt.Sprintf("no answer after %d retries: %s", p.Backoff.Limit, e.Reason))
	default:
		// No answer, or a refused compensation, which is called until an operator has
		// repaired the participant.
		d.retry(Retry{Branch: e.Branch, Tries: tries, Wait: p.Backoff.Pause(p.GID, e.Branch, tries)}, e.Reason)
	}
}

func (d *Decision) mark(b store.Branch, m store.Mark) {
	d.State.Marks = d.State.Marks.With(b, m)
	d.Marks = append(d.Marks, store.SetMark{Branch: b, Mark: m})
	if i := d.State.retry(b); i >= 0 {
		d.State.Retries = without(d.State.Retries, i)
	}
}

func (d *Decision) retry(r Retry, why string) {
	retries := slices.Clone(d.State.Retries)
	if i := d.State.retry(r.Branch); i >= 0 {
		retries[i] = r
	} else {
		retries = append(retries, r)
	}
	d.State.Retries, d.State.RetryReason = retries, why
}

// proceed chooses what follows the events: calls, the end, or a pause.
func (d *Decision) proceed(p *Plan) {
	s := &d.State
	var left bool
	switch {
	case s.Status == store.StatusSubmitted:
		left = d.callActions(p)
	case !s.Forced:
		left = d.callCompensations(p)
	}
	switch {
	case len(d.Calls) > 0:
		if len(s.Calling) == 0 {
			s.Calling = d.Calls // nobody changes either
		} else {
			s.Calling = slices.Concat(s.Calling, d.Calls)
		}
	case left && len(s.Calling) == 0:
		d.deferSaga(p)
	case !left && s.Status == store.StatusSubmitted:
		s.Status = store.StatusSucceeded
	case !left:
		s.Status = store.StatusFailed
	}
}

// callActions calls the open actions, and reports whether any action is left to do.
func (d *Decision) callActions(p *Plan) (left bool) {
	for i := range p.Steps {
		b := store.Action(i)
		switch d.State.Marks.At(b) {
		case store.MarkSucceeded:
			continue
		case store.MarkFailed:
			// This machine never writes such a state.
			d.abort(fmt.Sprintf("step %d was refused", i+1))
			d.Calls = nil
			return d.callCompensations(p)
		}
		left = true
		if p.isOpen(d.State.Marks, i) {
			d.call(b)
		}
		if !p.concurrent() {
			break // no later action is open
		}
	}
	return left
}

// callCompensations calls the compensations whose turn it is, and reports whether any is
// left to do. Each waits until the action of its step has ended.
func (d *Decision) callCompensations(p *Plan) (left bool) {
	for i := p.Steps - 1; i >= 0; i-- {
		if p.isClosed(d.State.Marks, i) {
			continue
		}
		left = true
		if p.isUndone(d.State.Marks, i) && !slices.Contains(d.State.Calling, store.Action(i)) {
			d.call(store.Compensation(i))
		}
	}
	return left
}

func (d *Decision) call(b store.Branch) {
	if i := d.State.retry(b); i >= 0 && d.State.Retries[i].Wait > 0 {
		return
	}
	if !slices.Contains(d.State.Calling, b) {
		d.Calls = append(d.Calls, b)
	}
}

// deferSaga lets the saga wait for its first retry. Retries of branches that are done are
// dropped here: their marks were written without the note.
func (d *Decision) deferSaga(p *Plan) {
	s := &d.State
	aborting := s.Status == store.StatusAborting
	var retries []Retry
	d.Deferred = p.Backoff.First
	for _, r := range s.Retries {
		if r.Branch < 0 || int(r.Branch) >= len(s.Marks) || s.Marks.At(r.Branch) != store.MarkPending || r.Branch.IsCompensation() != aborting {
			continue
		}
		if len(retries) == 0 || r.Wait < d.Deferred {
			d.Deferred = r.Wait
		}
		retries = append(retries, r)
	}
	d.Deferred = max(d.Deferred, time.Millisecond)
	for i := range retries {
		retries[i].Wait = max(retries[i].Wait-d.Deferred, 0)
	}
	s.Retries = retries
	d.Note = true
}

// retry returns the index of a branch in Retries, or -1.
func (s State) retry(b store.Branch) int {
	return slices.IndexFunc(s.Retries, func(r Retry) bool { return r.Branch == b })
}

// without returns a copy of list without the element at i.
func without[T any](list []T, i int) []T {
	if len(list) == 1 {
		return nil
	}
	return append(slices.Clone(list[:i]), list[i+1:]...)
}
