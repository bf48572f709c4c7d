package machine_test

import (
	"slices"

	"sagabench/saga/machine"
	"sagabench/store"
)

// reference runs sagas of three steps by the rules alone: who has succeeded, who
// rests and who is under way is all that it knows. Pauses are all equally long,
// so those who rest are all called again at once, when nothing else is to be done.
type reference struct {
	waitsFor [3][]int
	limited  bool // to two retries of an action

	did, resting [6]bool // branches
	silent       [6]int  // calls without an answer, since the last answer
	underWay     []store.Branch
	aborted      bool
}

func (r *reference) react(events []machine.Event) (now reaction) {
	if len(r.underWay) == 0 {
		r.resting = [6]bool{} // it was put off, and is taken up
	}
	var good []store.Branch
	for _, e := range events {
		if e.Outcome == 0 {
			r.aborted = true
			continue
		}
		r.underWay = slices.DeleteFunc(r.underWay, func(b store.Branch) bool { return b == e.Branch })
		if r.aborted && !e.Branch.IsCompensation() {
			continue // its end is all that counts
		}
		if r.silent[e.Branch]++; e.Outcome != machine.Unknown {
			r.silent[e.Branch] = 0
		}
		refused := e.Outcome == machine.Failed || r.limited && r.silent[e.Branch] > 2
		switch {
		case e.Outcome == machine.Succeeded:
			good = append(good, e.Branch)
		case refused && !e.Branch.IsCompensation():
			r.aborted = true
		default:
			r.resting[e.Branch] = true
		}
	}
	for _, b := range good {
		if b.IsCompensation() {
			now.undone = append(now.undone, b.Step())
		}
		// What succeeded together with a refusal does not open anything any more.
		r.did[b] = b.IsCompensation() || !r.aborted
	}

	turn, left := r.doing, false
	if r.aborted {
		turn = r.undoing
	}
	for i := range 3 {
		b, its := turn(i)
		left = left || b >= 0 && !r.did[b]
		if its && !r.did[b] && !r.resting[b] && !slices.Contains(r.underWay, b) {
			now.calls = append(now.calls, b)
		}
	}
	r.underWay = append(r.underWay, now.calls...)
	now.ended, now.ok = !left, !r.aborted
	return now
}

// open: all that step i waits for has succeeded.
func (r *reference) open(i int) bool {
	return !slices.ContainsFunc(r.waitsFor[i], func(j int) bool { return !r.did[store.Action(j)] })
}

// doing is the action number i, and whether it has its turn.
func (r *reference) doing(i int) (store.Branch, bool) { return store.Action(i), r.open(i) }

// undoing is the compensation number i from the end, and whether it has its turn;
// -1 if its step cannot have begun.
func (r *reference) undoing(i int) (store.Branch, bool) {
	i = 2 - i
	if !r.open(i) {
		return -1, false
	}
	its := !slices.Contains(r.underWay, store.Action(i))
	for j := range 3 {
		if slices.Contains(r.waitsFor[j], i) && r.open(j) && !r.did[store.Compensation(j)] {
			its = false
		}
	}
	return store.Compensation(i), its
}
