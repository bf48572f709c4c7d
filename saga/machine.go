package saga

import (
	"time"

	"sagabench/store"
)

// State is all that decides what a saga does next.
type State struct {
	Status store.Status
	Marks  store.Marks
}

// Outcome is what became of calling a branch.
type Outcome int

// The outcomes of a call.
const (
	Succeeded Outcome = iota + 1
	Failed            // refused, for good
	Ongoing           // not decided yet: ask again
	Unknown           // no answer, or none that can be understood: ask again
)

// Event is what happened to a saga: somebody took it up (the zero value), or a
// branch answered.
type Event struct {
	Answered bool
	Branch   store.Branch
	Outcome  Outcome
	Reason   string // for people; kept when the saga is aborted or put off
}

// Decision is what follows: first the change is made durable, if there is one,
// and only then the branch is called.
type Decision struct {
	State  State           // as it is once the change is durable
	Change bool            // whether the fields below hold something to write
	Marks  []store.SetMark // of this event; State.Marks holds them already
	Due    time.Duration   // as in store.Transition; set when the saga is put off
	Reason string
	Call   store.Branch // to be called next, or NoCall
}

// NoCall means that nothing is to be called: the saga has ended or is put off.
const NoCall store.Branch = -1

// Decide is the state machine; the package comment draws it. It is pure: what
// it returns depends on its arguments alone. Answers of a branch that is not
// the awaited one (late, repeated) change nothing.
func Decide(s State, e Event, retry time.Duration) Decision {
	awaited := s.awaited()
	switch {
	case !e.Answered || awaited == NoCall || e.Branch != awaited:
		next := s.settled()
		return Decision{State: next, Change: next != s, Call: next.awaited()}
	case e.Outcome == Succeeded:
		return s.mark(awaited, store.MarkSucceeded, s.Status, "")
	case e.Outcome == Failed && !awaited.IsCompensation():
		return s.mark(awaited, store.MarkFailed, store.StatusAborting, e.Reason)
	default:
		// Not decided yet; or a compensation was refused, which leaves nothing
		// but to try again until somebody has mended what refuses it.
		return Decision{State: s, Change: true, Due: retry, Reason: e.Reason, Call: NoCall}
	}
}

func (s State) mark(b store.Branch, mark store.Mark, status store.Status, reason string) Decision {
	next := State{Status: status, Marks: s.Marks.With(b, mark)}.settled()
	return Decision{
		State:  next,
		Change: true,
		Marks:  []store.SetMark{{Branch: b, Mark: mark}},
		Reason: reason,
		Call:   next.awaited(),
	}
}

// settled is s, ended if no branch is left to wait for.
func (s State) settled() State {
	if !s.Status.Final() && s.awaited() == NoCall {
		if s.Status == store.StatusSubmitted {
			s.Status = store.StatusSucceeded
		} else {
			s.Status = store.StatusFailed
		}
	}
	return s
}

// awaited is the branch whose answer decides what happens next.
func (s State) awaited() store.Branch {
	switch s.Status {
	case store.StatusSubmitted:
		if i := s.reached(); i < s.Marks.Steps() {
			return store.Action(i)
		}
	case store.StatusAborting:
		for i := min(s.reached(), s.Marks.Steps()-1); i >= 0; i-- {
			if b := store.Compensation(i); s.Marks.At(b) == store.MarkPending {
				return b
			}
		}
	}
	return NoCall
}

// reached is the first step whose action is not known to have succeeded. No
// later one was ever started. It itself may have been, so it is compensated
// like those before it.
func (s State) reached() int {
	for i := range s.Marks.Steps() {
		if s.Marks.At(store.Action(i)) != store.MarkSucceeded {
			return i
		}
	}
	return s.Marks.Steps()
}
