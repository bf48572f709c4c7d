package machine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// FuzzDecide checks what holds for any state, also for those that no saga gets
// into, and any events. Only what is under way is as it must be, since no store
// has a say in that: branches that the saga has, each once, without a mark, and
// compensations not before the abort.
func FuzzDecide(f *testing.F) {
	const second = int64(time.Second)
	f.Add(byte('s'), "----", "", []byte{}, []byte{}, []byte{}, second, 10*second, 0)
	f.Add(byte('s'), "y---", "", []byte{2}, []byte{}, []byte{1, 2}, second, 10*second, 0)
	f.Add(byte('s'), "y---", "", []byte{2}, []byte{}, []byte{2, 2}, second, 10*second, 0)
	f.Add(byte('s'), "------", "\x00\x00\x00\x06", []byte{0, 2, 4}, []byte{}, []byte{1, 0, 2, 2, 1, 4, 1, 0}, second, second, 2)
	f.Add(byte('s'), "------", "\x00", []byte{4}, []byte{0, 1, 9, 2, 0, 9}, []byte{3, 4}, second, second, 2)
	f.Add(byte('s'), "--n-y-", "\x00", []byte{}, []byte{0, 1, 9}, []byte{0, 0}, second, second, 2)
	f.Add(byte('s'), "--n---", "\x00", []byte{4}, []byte{}, []byte{}, second, second, 0)
	f.Add(byte('a'), "y-n-", "", []byte{3}, []byte{3, 200, 255}, []byte{4, 3}, second, 100*second, 2)
	f.Add(byte('a'), "y-ny", "", []byte{1}, []byte{}, []byte{1, 1}, second, second, 0)
	f.Add(byte('a'), "--------", "\x00\x01\x01\x06", []byte{0, 7}, []byte{}, []byte{1, 0, 3, 7}, int64(1), int64(1), 0)
	f.Add(byte('S'), "y-y-", "", []byte{1}, []byte{1, 1, 1}, []byte{1, 1, 0, 0}, second, second, 0)
	f.Add(byte('F'), "nyyn", "\x00", []byte{}, []byte{250, 1, 1}, []byte{9, 7}, second, second, -1)
	f.Fuzz(func(t *testing.T, status byte, marks, order string, calling, holds, events []byte, first, most int64, limit int) {
		s, ok := anyState(status, marks, calling, holds)
		if !ok || first <= 0 || most <= 0 {
			t.Skip()
		}
		p := anyPlan(s.Marks.Steps(), order, first, most, limit)
		checkDecision(t, p, s, anyEvents(events))
	})
}

// anyState makes a state.
func anyState(status byte, marks string, calling, holds []byte) (machine.State, bool) {
	s := machine.State{Status: store.Status(status), Marks: anyMarks(marks), Aborted: "once", RetryReason: "long ago"}
	if !s.Status.Valid() || s.Marks.Steps() < 1 || s.Marks.Steps() > 64 {
		return s, false
	}
	for _, c := range calling {
		b := store.Branch(int(c) % len(s.Marks))
		possible := s.Marks.At(b) == store.MarkPending && (s.Status != store.StatusSubmitted || !b.IsCompensation())
		if possible && !slices.Contains(s.Calling, b) {
			s.Calling = append(s.Calling, b)
		}
	}
	for ; len(holds) >= 3; holds = holds[3:] {
		h := machine.Retry{Branch: store.Branch(int8(holds[0])), Tries: int(int8(holds[1]))}
		h.Wait = time.Duration(int8(holds[2])) << (holds[1] % 64)
		s.Retries = append(s.Retries, h)
	}
	return s, true
}

// anyMarks makes marks, as many as a number of steps has, of any text.
func anyMarks(text string) store.Marks {
	marks := []byte(text)[:len(text)/2*2]
	for i, c := range marks {
		switch store.Mark(c) {
		case store.MarkPending, store.MarkSucceeded, store.MarkFailed:
		default:
			marks[i] = "-yn"[c%3]
		}
	}
	return store.Marks(marks)
}

// anyPlan makes that of a saga whose steps wait for some of those that come next,
// as the bits of order say; of a serial one if there are none.
func anyPlan(steps int, order string, first, most int64, limit int) *machine.Plan {
	s := newSaga(steps)
	s.GID, s.Concurrent, s.RetryInterval, s.RetryLimit = "g", order != "", time.Duration(first), limit
	for i := range min(len(order), steps) {
		for bit := range 8 {
			if j := i + 1 + bit; order[i]>>bit&1 == 1 && j < steps {
				s.Steps[i].After = append(s.Steps[i].After, j)
			}
		}
	}
	p := planOf(s)
	p.Backoff.Max = time.Duration(most)
	return p
}

func anyEvents(text []byte) (events []machine.Event) {
	for i := 0; i+1 < len(text); i += 2 {
		e := machine.Event{Outcome: machine.Outcome(int8(text[i])), Branch: store.Branch(int8(text[i+1])), Reason: fmt.Sprint("why ", i)}
		events = append(events, e)
	}
	return events
}

// spare is a copy of list with room behind it, which nobody may write to.
func spare[T any](list []T) []T { return append(make([]T, 0, len(list)+4), list...) }

func checkDecision(t *testing.T, p *machine.Plan, s machine.State, events []machine.Event) {
	given := s
	given.Calling, given.Retries = spare(s.Calling), spare(s.Retries)
	d := machine.Decide(p, given, events...)
	fail := func(what string) { t.Fatalf("%+v, then %+v: %s: %+v", s, events, what, d) }

	var zero machine.Retry
	switch {
	case !reflect.DeepEqual(d, machine.Decide(p, given, events...)):
		fail("asked again it decides otherwise")
	case !slices.Equal(given.Calling, s.Calling) || !slices.Equal(given.Retries, s.Retries):
		fail("changes its arguments")
	case slices.Max(append(given.Calling[:cap(given.Calling)][len(s.Calling):], 0)) != 0,
		slices.ContainsFunc(given.Retries[:cap(given.Retries)][len(s.Retries):], func(h machine.Retry) bool { return h != zero }):
		fail("writes behind its arguments")
	}
	if s.Status.Final() {
		if !reflect.DeepEqual(d, machine.Decision{State: given}) {
			fail("has ended, and goes on")
		}
		return
	}
	checkMarks(s, d, fail)
	checkChange(s, d, fail)
	checkCalls(p, s, d, events, fail)

	if again := machine.Decide(p, d.State); d.Deferred == 0 && (again.Change || len(again.Calls) > 0) {
		fail(fmt.Sprintf("leaves something to do: %+v", again))
	}
	// What comes from elsewhere changes nothing, wherever it comes.
	for _, b := range []store.Branch{-1, 0, store.Branch(len(events) % len(s.Marks)), store.Branch(len(s.Marks))} {
		if !slices.Contains(s.Calling, b) {
			noise := machine.Event{Branch: b, Outcome: machine.Outcome(1 + len(events)%4), Reason: "noise"}
			noisy := slices.Insert(slices.Clone(events), len(events)/2, noise)
			if !reflect.DeepEqual(d, machine.Decide(p, given, noisy...)) {
				fail(fmt.Sprintf("hears %+v, which is not under way", noise))
			}
		}
	}
}

// checkMarks checks that what is set was not, and is what the state holds.
func checkMarks(s machine.State, d machine.Decision, fail func(string)) {
	marked := s.Marks
	for _, m := range d.Marks {
		if int(m.Branch) >= len(marked) || marked.At(m.Branch) != store.MarkPending {
			fail("changes a mark")
		}
		if m.Branch.IsCompensation() && m.Mark != store.MarkSucceeded {
			fail("a compensation is marked as refused")
		}
		marked = marked.With(m.Branch, m.Mark)
	}
	if d.State.Marks != marked {
		fail("holds other marks than it writes")
	}
}

// checkChange checks that what is to be written can be, and is all that there is.
func checkChange(s machine.State, d machine.Decision, fail func(string)) {
	if !d.Change {
		if d.State.Status != s.Status || d.State.Marks != s.Marks || d.Marks != nil || d.Note || d.Deferred != 0 {
			fail("is more than no change")
		}
		return
	}
	t := store.Transition{
		GID: "g", Epoch: 1, From: s.Status, To: d.State.Status, Marks: d.Marks, Due: d.Deferred, Release: d.Deferred != 0,
	}
	if d.Note {
		t.Note = d.State.Note()
	} else if d.State.Aborted != s.Aborted {
		fail("the note is not written")
	}
	if err := t.Validate(); err != nil {
		fail("cannot be written: " + err.Error())
	}
	if s.Status == store.StatusSubmitted && d.State.Status == store.StatusAborting {
		if !d.Note || d.State.Aborted == s.Aborted {
			fail("nobody learns why it is aborted")
		}
		if slices.ContainsFunc(d.State.Retries, func(h machine.Retry) bool { return !h.Branch.IsCompensation() }) {
			fail("holds actions when aborting")
		}
	}
}

// checkCalls checks that each call may be made, and that what follows is never
// nothing.
func checkCalls(p *machine.Plan, s machine.State, d machine.Decision, events []machine.Event, fail func(string)) {
	ended := d.State.Status.Final()
	switch {
	case ended && (len(d.Calls) > 0 || d.Deferred != 0):
		fail("has ended, and goes on")
	case d.Deferred != 0 && (len(d.State.Calling) > 0 || d.Deferred < time.Millisecond):
		fail("cannot be put off so")
	case !ended && d.Deferred == 0 && len(d.State.Calling) == 0:
		fail("is the end of the road")
	}
	var underWay []store.Branch
	for _, b := range s.Calling {
		if !slices.ContainsFunc(events, func(e machine.Event) bool { return e.Branch == b && e.Outcome != 0 }) {
			underWay = append(underWay, b)
		}
	}
	if !slices.Equal(append(slices.Clip(underWay), d.Calls...), d.State.Calling) {
		fail("loses sight of what is under way")
	}
	for i, b := range d.Calls {
		held := slices.IndexFunc(d.State.Retries, func(h machine.Retry) bool { return h.Branch == b })
		switch {
		case slices.Contains(d.Calls[:i], b) || slices.Contains(underWay, b):
			fail("calls one twice")
		case b < 0 || int(b) >= len(s.Marks) || d.State.Marks.At(b) != store.MarkPending:
			fail("calls one that has ended")
		case b.IsCompensation() != (d.State.Status == store.StatusAborting):
			fail("calls one whose time it is not")
		case b.IsCompensation() && slices.Contains(d.State.Calling, store.Action(b.Step())):
			fail("undoes what is being done")
		case held >= 0 && d.State.Retries[held].Wait > 0:
			fail("calls one that is held")
		case !openIn(p, d.State.Marks, b.Step()):
			fail("calls one of a step that cannot have its turn")
		}
		if b.IsCompensation() {
			for later := range p.Steps {
				if waits(p, later, b.Step()) && openIn(p, d.State.Marks, later) && d.State.Marks.At(store.Compensation(later)) == store.MarkPending {
					fail("undoes a step before another that waited for it")
				}
			}
		}
	}
}

// waits reports whether step i waits for step j.
func waits(p *machine.Plan, i, j int) bool {
	if p.After != nil {
		return slices.Contains(p.After[i], j)
	}
	return i == j+1
}

// openIn reports whether all that step i waits for has succeeded.
func openIn(p *machine.Plan, marks store.Marks, i int) bool {
	for j := range p.Steps {
		if waits(p, i, j) && marks.At(store.Action(j)) != store.MarkSucceeded {
			return false
		}
	}
	return true
}
