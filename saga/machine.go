package saga

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

	// Calling are the branches under way, in no order. No store knows them: a
	// saga that was taken up has none.
	Calling []store.Branch
	Holds   []Hold // branches that were called and must be called again

	Aborted string // why it was aborted; for people
	Held    string // what last held it up; for people
	// Busy is for how long an action that was called, and has not answered, may be
	// at work at most, from when this is written; or from when it is read, as
	// nobody knows how long ago that was.
	Busy   time.Duration
	Forced bool // stopped by force: what it left undone stays so
}

// Hold is a branch that has been called and did not decide.
type Hold struct {
	Branch store.Branch
	Tries  int // calls without an answer, since the last answer
	// Wait is for how long it is left alone. It does not run while others are under
	// way, and runs out for one of the holds whenever the saga is taken up.
	Wait time.Duration
}

// Outcome is what became of calling a branch.
type Outcome int

// The outcomes of a call.
const (
	Succeeded Outcome = iota + 1
	Failed            // refused, for good
	Ongoing           // not decided yet: ask again
	Unknown           // no answer, or none that can be understood: ask again
	// Ended is Unknown, and the branch is not at work: it was never reached, or has
	// returned. A Caller says it; what is observed and decided on is Unknown.
	Ended
)

// Event is what happened to a saga: a branch answered, or, with an Outcome of
// zero, its abort is demanded: by a person or by its timeout.
type Event struct {
	Outcome Outcome
	Branch  store.Branch
	Reason  string // for people
}

// Decision is what follows: first the change is made durable, if there is one,
// and only then branches are called.
type Decision struct {
	State  State           // as it is once the change is durable and the branches are called
	Change bool            // whether there is something to write
	Marks  []store.SetMark // set by the events; State.Marks holds them already
	Note   bool            // whether the change holds what a store keeps in its note
	PutOff time.Duration   // if not 0: nothing can be done until then
	Calls  []store.Branch  // to be called now; State.Calling holds them already
}

// Decide is the state machine; the package comment draws it. It is pure: what it
// returns depends on its arguments alone, and it changes none of them. The events
// have happened since the last decision; a saga that was taken up has none.
// Answers of branches that are not under way (late, repeated) change nothing.
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
	d.settle(p)
	d.Change = len(d.Marks) > 0 || d.State.Status != s.Status || d.PutOff > 0
	return d
}

// abort turns a saga from doing to undoing.
func (d *Decision) abort(why string) {
	if d.State.Status != store.StatusSubmitted {
		return
	}
	// What succeeded together with it is not marked: the mark would open what was
	// never called.
	for _, m := range d.Marks {
		d.State.Marks = d.State.Marks.With(m.Branch, store.MarkPending)
	}
	d.Marks = nil
	d.State.Status = store.StatusAborting
	d.State.Aborted = why
	d.State.Holds = nil // of actions, which are not called again
	d.Note = true
}

func (d *Decision) answered(p *Plan, e Event) {
	undoing := d.State.Status != store.StatusSubmitted
	if undoing && !e.Branch.IsCompensation() {
		return // the answer of an action does not count any more, only that it has ended
	}
	switch tries := d.State.tries(e.Branch) + 1; {
	case e.Outcome == Succeeded:
		d.mark(e.Branch, store.MarkSucceeded)
	case e.Outcome == Ongoing:
		d.hold(Hold{Branch: e.Branch, Wait: max(p.Retry.First, time.Millisecond)}, e.Reason)
	case !undoing && e.Outcome == Failed:
		d.abort(e.Reason)
		d.mark(e.Branch, store.MarkFailed)
	case !undoing && p.Retry.Limit > 0 && tries > p.Retry.Limit:
		// It is not marked: nobody knows what became of it.
		d.abort(fmt.Sprintf("no answer after %d retries: %s", p.Retry.Limit, e.Reason))
	default:
		// No answer. Or a compensation was refused, which leaves nothing but to try
		// again until somebody has mended what refuses it.
		d.hold(Hold{Branch: e.Branch, Tries: tries, Wait: p.Retry.pause(p.GID, e.Branch, tries)}, e.Reason)
	}
}

func (d *Decision) mark(b store.Branch, m store.Mark) {
	d.State.Marks = d.State.Marks.With(b, m)
	d.Marks = append(d.Marks, store.SetMark{Branch: b, Mark: m})
	if i := d.State.held(b); i >= 0 {
		d.State.Holds = without(d.State.Holds, i)
	}
}

func (d *Decision) hold(h Hold, why string) {
	holds := slices.Clone(d.State.Holds)
	if i := d.State.held(h.Branch); i >= 0 {
		holds[i] = h
	} else {
		holds = append(holds, h)
	}
	d.State.Holds, d.State.Held = holds, why
}

// settle decides what the events leave to be done: calls, the end, or a pause.
func (d *Decision) settle(p *Plan) {
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
		d.putOff(p)
	case !left && s.Status == store.StatusSubmitted:
		s.Status = store.StatusSucceeded
	case !left:
		s.Status = store.StatusFailed
	}
}

// callActions calls those whose turn it is, and reports whether any is not done.
func (d *Decision) callActions(p *Plan) (left bool) {
	for i := range p.Steps {
		b := store.Action(i)
		switch d.State.Marks.At(b) {
		case store.MarkSucceeded:
			continue
		case store.MarkFailed:
			// A store that holds such a saga was not written by this machine.
			d.abort(fmt.Sprintf("step %d was refused", i+1))
			d.Calls = nil
			return d.callCompensations(p)
		}
		left = true
		if p.open(d.State.Marks, i) {
			d.call(b)
		}
		if !p.Ordered {
			break // no later one can have its turn
		}
	}
	return left
}

// callCompensations does the same for those of the steps that may have been
// started. Each waits until its own action has ended.
func (d *Decision) callCompensations(p *Plan) (left bool) {
	for i := p.Steps - 1; i >= 0; i-- {
		if p.closed(d.State.Marks, i) {
			continue
		}
		left = true
		if p.undone(d.State.Marks, i) && !slices.Contains(d.State.Calling, store.Action(i)) {
			d.call(store.Compensation(i))
		}
	}
	return left
}

func (d *Decision) call(b store.Branch) {
	if i := d.State.held(b); i >= 0 && d.State.Holds[i].Wait > 0 {
		return
	}
	if !slices.Contains(d.State.Calling, b) {
		d.Calls = append(d.Calls, b)
	}
}

// putOff lets the saga rest until the first of the holds runs out. Holds of
// branches that are done are dropped: marks are written without the note.
func (d *Decision) putOff(p *Plan) {
	s := &d.State
	undoing := s.Status == store.StatusAborting
	var holds []Hold
	d.PutOff = p.Retry.First
	for _, h := range s.Holds {
		if h.Branch < 0 || int(h.Branch) >= len(s.Marks) || s.Marks.At(h.Branch) != store.MarkPending || h.Branch.IsCompensation() != undoing {
			continue
		}
		if len(holds) == 0 || h.Wait < d.PutOff {
			d.PutOff = h.Wait
		}
		holds = append(holds, h)
	}
	d.PutOff = max(d.PutOff, time.Millisecond)
	for i := range holds {
		holds[i].Wait = max(holds[i].Wait-d.PutOff, 0)
	}
	s.Holds = holds
	d.Note = true
}

func (s State) tries(b store.Branch) int {
	if i := s.held(b); i >= 0 {
		return s.Holds[i].Tries
	}
	return 0
}

// held is the place of a branch among the holds, or -1.
func (s State) held(b store.Branch) int {
	return slices.IndexFunc(s.Holds, func(h Hold) bool { return h.Branch == b })
}

// without is a copy of list less the element at i.
func without[T any](list []T, i int) []T {
	if len(list) == 1 {
		return nil
	}
	return append(slices.Clone(list[:i]), list[i+1:]...)
}
