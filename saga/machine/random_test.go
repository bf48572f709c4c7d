package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/internal/race"
	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// TestDecide_Random runs sagas whose branches answer as they like, with answers
// that come together, twice or from elsewhere, aborts at any moment, and crashes
// before and after each write. It checks every step of the way, and the end.
// What is written goes through the model of a store, which refuses marks and
// statuses that go back, and epochs that have passed.
func TestDecide_Random(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, order := range []string{"serial", "free", "ordered"} {
		for _, limit := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, limit %d", order, limit), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) { newWorld(t, drawSaga(t, order, limit)).run() })
			})
		}
	}
}

// drawSaga makes a saga whose steps wait for any of those before them, in an
// order of their own.
func drawSaga(t *rapid.T, order string, limit int) *saga.Saga {
	n := rapid.IntRange(1, 6).Draw(t, "steps")
	s := newSaga(n)
	s.GID, s.RetryLimit, s.Concurrent = "g", limit, order != "serial"
	s.RetryInterval = 2 * time.Second
	if order != "ordered" {
		return s
	}
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	numbers = rapid.Permutation(numbers).Draw(t, "order")
	for at, i := range numbers {
		for _, j := range numbers[:at] {
			if rapid.Bool().Draw(t, fmt.Sprintf("%d waits for %d", i, j)) {
				s.Steps[i].After = append(s.Steps[i].After, j)
			}
		}
	}
	require.NoError(t, s.Validate())
	return s
}

// run takes the saga to its end, as a coordinator does, with all that can go
// wrong for 60 rounds, and from then on with nothing that does.
func (w *world) run() {
	w.mood = rapid.SampledFrom([]string{"snou", "ssssssssnou", "ssssou", "sou", "ssuuuuo"}).Draw(w.t, "mood")
	w.aborts = rapid.Bool().Draw(w.t, "aborts")
	w.crashes = rapid.Bool().Draw(w.t, "crashes")
	events := w.draw()
	for round := 0; !w.state.Status.Final(); round++ {
		require.Less(w.t, round, 600, "it does not end")
		w.fair = round >= 60
		if w.aborts && w.one(30, "somebody demands the abort") {
			w.demand()
		}
		d := machine.Decide(w.plan, w.state, events...)
		if w.crashes && w.one(15, "crash before the write") {
			w.crash()
			w.refusesTheLastRun(d)
			events = w.draw()
			continue
		}
		if !w.write(d) {
			w.adopt()
			events = nil
			continue
		}
		if w.crashes && w.one(15, "crash after the write") && !w.record.Status.Final() {
			w.crash()
			events = w.draw()
			continue
		}
		if w.aborts && len(d.Calls) > 0 && w.one(30, "somebody demands the abort before the calls") && w.demand() {
			w.adopt() // as when the lease has to be renewed
			events = nil
			continue
		}
		w.state = d.State
		switch {
		case w.state.Status.Final():
			require.Empty(w.t, d.Calls, "it has ended, and yet calls")
		case d.Deferred > 0:
			require.Empty(w.t, d.Calls, "it is put off, and yet calls")
			w.clock += d.Deferred
			w.takeUp()
		default:
			for _, b := range d.Calls {
				w.begin(b)
			}
			require.ElementsMatch(w.t, w.underWay, w.state.Calling)
			require.NotEmpty(w.t, w.underWay, "neither ended, nor put off, nor is anything under way")
		}
		events = w.draw()
	}
	w.ended()
	again := machine.Decide(w.plan, w.state, events...)
	require.False(w.t, again.Change || len(again.Calls) > 0, "it has ended, and goes on")
}

// one draws true once in so many times, while things still go wrong.
func (w *world) one(in int, label string) bool {
	return !w.fair && rapid.IntRange(1, in).Draw(w.t, label) == in
}

// draw makes what happens next: some branches answer, or an abort is demanded, or
// both; and what does not count.
func (w *world) draw() (events []machine.Event) {
	if w.aborts && w.one(25, "out of time") {
		events = append(events, machine.Event{Reason: "out of time"})
	}
	if n := len(w.underWay); n > 0 {
		for range rapid.IntRange(1-len(events), n).Draw(w.t, "answers") {
			events = w.drawAnswer(events)
		}
	}
	for w.one(3, "foreign") {
		b := store.Branch(rapid.IntRange(-2, 2*len(w.saga.Steps)+1).Draw(w.t, "of"))
		if !slices.Contains(w.state.Calling, b) {
			events = w.insert(events, 0, machine.Event{Branch: b, Outcome: w.outcome(), Reason: "late"})
		}
	}
	return events
}

// drawAnswer ends a call. The answer may come more than once: the first counts.
func (w *world) drawAnswer(events []machine.Event) []machine.Event {
	at := rapid.IntRange(0, len(w.underWay)-1).Draw(w.t, "which")
	b := w.underWay[at]
	w.underWay = slices.Delete(w.underWay, at, at+1)
	e := machine.Event{Branch: b, Outcome: w.decide(b), Reason: "said by " + label(b)}
	w.hear(e)
	events = w.insert(events, 0, e)
	for w.one(3, "again") {
		events = w.insert(events, slices.Index(events, e)+1, machine.Event{Branch: b, Outcome: w.outcome(), Reason: "once more"})
	}
	return events
}

// insert puts e among the events, not before a place.
func (w *world) insert(events []machine.Event, from int, e machine.Event) []machine.Event {
	return slices.Insert(events, rapid.IntRange(from, len(events)).Draw(w.t, "place"), e)
}

func (w *world) outcome() machine.Outcome {
	return machine.Outcome(1 + strings.IndexByte("snou", rapid.SampledFrom([]byte(w.mood)).Draw(w.t, "outcome")))
}
