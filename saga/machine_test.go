package saga_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/storetest"
)

const retry = 7 * time.Second

// submitted is a saga of n steps of which so many actions have succeeded.
func submitted(n, done int) saga.State {
	return saga.State{
		Status: store.StatusSubmitted,
		Marks:  store.Marks(strings.Repeat("y-", done) + strings.Repeat("--", n-done)),
	}
}

// aborting is a saga of n steps whose action k was refused, and of which all
// steps down to last have been compensated; last is k+1 when none has.
func aborting(n, k, last int) saga.State {
	marks := strings.Repeat("y-", k) + "n-" + strings.Repeat("--", n-k-1)
	for i := last; i <= k; i++ {
		marks = marks[:2*i+1] + "y" + marks[2*i+2:]
	}
	return saga.State{Status: store.StatusAborting, Marks: store.Marks(marks)}
}

// as is s in another status.
func as(s saga.State, status store.Status) saga.State {
	s.Status = status
	return s
}

func answer(b store.Branch, outcome saga.Outcome) saga.Event {
	return saga.Event{Answered: true, Branch: b, Outcome: outcome, Reason: "because"}
}

// undecided is every outcome that is no decision, those that are none included.
var undecided = []saga.Outcome{saga.Ongoing, saga.Unknown, 0, 99, -1}

// TestDecide_Table goes through the table of the package comment, row by row,
// for every state that a saga can be in.
func TestDecide_Table(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		for i := range n {
			s, action := submitted(n, i), store.Action(i)
			decides(t, s, saga.Event{}, saga.Decision{State: s, Call: action})

			mark := []store.SetMark{{Branch: action, Mark: store.MarkSucceeded}}
			next := saga.Decision{State: submitted(n, i+1), Change: true, Marks: mark, Call: store.Action(i + 1)}
			if i == n-1 {
				next.State.Status, next.Call = store.StatusSucceeded, saga.NoCall
			}
			decides(t, s, answer(action, saga.Succeeded), next)

			decides(t, s, answer(action, saga.Failed), saga.Decision{
				State: aborting(n, i, i+1), Change: true, Reason: "because", Call: store.Compensation(i),
				Marks: []store.SetMark{{Branch: action, Mark: store.MarkFailed}},
			})
			for _, outcome := range undecided {
				decides(t, s, answer(action, outcome), putOff(s))
			}
			ignoresOthers(t, s, action)
		}
		for k := range n {
			for j := k; j >= 0; j-- {
				s, compensation := aborting(n, k, j+1), store.Compensation(j)
				decides(t, s, saga.Event{}, saga.Decision{State: s, Call: compensation})

				mark := []store.SetMark{{Branch: compensation, Mark: store.MarkSucceeded}}
				next := saga.Decision{State: aborting(n, k, j), Change: true, Marks: mark, Call: store.Compensation(j - 1)}
				if j == 0 {
					next.State.Status, next.Call = store.StatusFailed, saga.NoCall
				}
				decides(t, s, answer(compensation, saga.Succeeded), next)

				for _, outcome := range append([]saga.Outcome{saga.Failed}, undecided...) {
					decides(t, s, answer(compensation, outcome), putOff(s))
				}
				ignoresOthers(t, s, compensation)
			}
			ignoresOthers(t, as(aborting(n, k, 0), store.StatusFailed), saga.NoCall)
		}
		ignoresOthers(t, as(submitted(n, n), store.StatusSucceeded), saga.NoCall)
	}
}

// Written by hand, so that a mistake in the helpers above shows.
func TestDecide_Examples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from  saga.State
		event saga.Event
		to    saga.State
		call  store.Branch
	}{
		{saga.State{Status: 's', Marks: "----"}, saga.Event{}, saga.State{Status: 's', Marks: "----"}, 0},
		{saga.State{Status: 's', Marks: "----"}, answer(0, saga.Succeeded), saga.State{Status: 's', Marks: "y---"}, 2},
		{saga.State{Status: 's', Marks: "y---"}, answer(2, saga.Succeeded), saga.State{Status: 'S', Marks: "y-y-"}, saga.NoCall},
		{saga.State{Status: 's', Marks: "y---"}, answer(2, saga.Failed), saga.State{Status: 'a', Marks: "y-n-"}, 3},
		{saga.State{Status: 'a', Marks: "y-n-"}, answer(3, saga.Succeeded), saga.State{Status: 'a', Marks: "y-ny"}, 1},
		{saga.State{Status: 'a', Marks: "y-ny"}, answer(1, saga.Succeeded), saga.State{Status: 'F', Marks: "yyny"}, saga.NoCall},
		{saga.State{Status: 's', Marks: "----"}, answer(0, saga.Failed), saga.State{Status: 'a', Marks: "n---"}, 1},
		{saga.State{Status: 'a', Marks: "n---"}, answer(1, saga.Succeeded), saga.State{Status: 'F', Marks: "ny--"}, saga.NoCall},
		// Aborted before the action that was under way had answered: it may have
		// begun, so it is undone, and the one after it was never started.
		{saga.State{Status: 'a', Marks: "y-----"}, saga.Event{}, saga.State{Status: 'a', Marks: "y-----"}, 3},
		{saga.State{Status: 'a', Marks: "y-y-"}, saga.Event{}, saga.State{Status: 'a', Marks: "y-y-"}, 3},
		// All branches are marked and the end was not: it is written now.
		{saga.State{Status: 's', Marks: "y-y-"}, saga.Event{}, saga.State{Status: 'S', Marks: "y-y-"}, saga.NoCall},
		{saga.State{Status: 'a', Marks: "yyny"}, saga.Event{}, saga.State{Status: 'F', Marks: "yyny"}, saga.NoCall},
	} {
		d := saga.Decide(tt.from, tt.event, retry)
		require.Equal(t, tt.to, d.State, "%+v, then %+v", tt.from, tt.event)
		require.Equal(t, tt.call, d.Call, "%+v, then %+v", tt.from, tt.event)
		require.Equal(t, tt.to != tt.from, d.Change, "%+v, then %+v", tt.from, tt.event)
	}
}

func decides(t *testing.T, s saga.State, e saga.Event, want saga.Decision) {
	t.Helper()
	require.Equal(t, want, saga.Decide(s, e, retry), "%v %s, then %+v", s.Status, s.Marks, e)
}

func putOff(s saga.State) saga.Decision {
	return saga.Decision{State: s, Change: true, Due: retry, Reason: "because", Call: saga.NoCall}
}

// ignoresOthers checks that no answer of a branch that is not awaited changes s.
func ignoresOthers(t *testing.T, s saga.State, awaited store.Branch) {
	t.Helper()
	for b := store.Branch(-2); int(b) <= len(s.Marks)+1; b++ {
		if b == awaited && b != saga.NoCall {
			continue
		}
		for _, outcome := range append([]saga.Outcome{saga.Succeeded, saga.Failed}, undecided...) {
			decides(t, s, answer(b, outcome), saga.Decision{State: s, Call: awaited})
		}
	}
	decides(t, s, saga.Event{}, saga.Decision{State: s, Call: awaited})
}

// TestDecide_Random runs sagas whose branches answer as they like, with crashes
// before and after each write and answers that come late or twice, and checks
// every step of the way. What is written goes through a store, which refuses
// marks and statuses that go back.
func TestDecide_Random(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "steps")
		w := newWorld(t, n)
		s, event := w.state(), saga.Event{}
		for round := 0; !s.Status.Final(); round++ {
			require.Less(t, round, 500, "it does not end")
			fair := round >= 100 // from then on branches decide, and nothing crashes
			d := saga.Decide(s, event, retry)
			if !fair && rapid.IntRange(0, 9).Draw(t, "crash before the write") == 0 {
				s, event = w.state(), saga.Event{}
				continue
			}
			w.write(s, d)
			s = w.state()
			require.Equal(t, s, d.State, "what is written is not what was decided")
			if s.Status.Final() {
				break
			}
			if !fair && rapid.IntRange(0, 9).Draw(t, "crash after the write") == 0 {
				event = saga.Event{}
				continue
			}
			if d.Call == saga.NoCall {
				require.Positive(t, d.Due, "neither ended, nor put off, nor is anything to be called")
				event = saga.Event{}
				continue
			}
			outcome := w.call(s, d.Call, fair)
			late := answer(store.Branch(rapid.IntRange(0, 2*n-1).Draw(t, "late")), saga.Outcome(rapid.IntRange(1, 4).Draw(t, "its outcome")))
			if late.Branch != d.Call {
				ignored := saga.Decide(s, late, retry)
				require.False(t, ignored.Change, "a late answer of %d changes %+v", late.Branch, s)
				require.Equal(t, s, ignored.State)
			}
			event = answer(d.Call, outcome)
		}
		w.ended(s)
		require.False(t, saga.Decide(s, event, retry).Change, "the last answer once more")
	})
}

// world is one saga in a store, and its branches.
type world struct {
	t         *rapid.T
	store     store.Store
	begun     []store.Branch // in the order of their first calls
	succeeded map[store.Branch]bool
	refused   store.Branch // the action, or NoCall
}

func newWorld(t *rapid.T, steps int) *world {
	w := &world{t: t, store: storetest.NewModel(time.Hour), succeeded: map[store.Branch]bool{}, refused: saga.NoCall}
	errs := w.store.Apply(t.Context(), []store.Change{&store.Create{GID: "g", Body: []byte("{}"), Steps: steps, Owner: "o"}})
	require.NoError(t, errs[0])
	return w
}

func (w *world) state() saga.State {
	r, err := w.store.Get(w.t.Context(), "g")
	require.NoError(w.t, err)
	return saga.State{Status: r.Status, Marks: r.Marks}
}

func (w *world) write(s saga.State, d saga.Decision) {
	if !d.Change {
		require.Equal(w.t, s, d.State)
		return
	}
	errs := w.store.Apply(w.t.Context(), []store.Change{&store.Transition{
		GID: "g", Epoch: 1, From: s.Status, To: d.State.Status, Marks: d.Marks, Due: d.Due, Reason: d.Reason,
	}})
	require.NoError(w.t, errs[0], "%+v, then %+v", s, d)
}

// call checks that branch b may be called in state s and says what came of it.
func (w *world) call(s saga.State, b store.Branch, fair bool) saga.Outcome {
	t, i := w.t, b.Step()
	first := true
	for _, was := range w.begun {
		first = first && was != b
	}
	if b.IsCompensation() {
		require.Equal(t, store.StatusAborting, s.Status, "a compensation runs")
		require.Contains(t, w.begun, store.Action(i), "what was not begun is undone")
		for later := i + 1; later < s.Marks.Steps(); later++ {
			if s.Marks.At(store.Action(later)) != store.MarkPending {
				require.True(t, w.succeeded[store.Compensation(later)], "step %d is undone before step %d", i, later)
			}
		}
	} else {
		require.Equal(t, store.StatusSubmitted, s.Status, "an action runs")
		for _, was := range w.begun {
			require.False(t, was.IsCompensation(), "an action is begun after a compensation")
		}
		for before := range i {
			require.True(t, w.succeeded[store.Action(before)], "action %d is begun before action %d", i, before)
		}
	}
	if first {
		w.begun = append(w.begun, b)
	}
	// A branch that has decided stays with it.
	switch {
	case w.succeeded[b]:
		return saga.Succeeded
	case w.refused == b:
		return saga.Failed
	}
	outcome := saga.Outcome(rapid.IntRange(1, 4).Draw(t, fmt.Sprint("outcome of ", b)))
	if fair && (outcome > saga.Failed || b.IsCompensation()) {
		outcome = saga.Succeeded
	}
	switch {
	case outcome == saga.Succeeded:
		w.succeeded[b] = true
	case outcome == saga.Failed && !b.IsCompensation():
		w.refused = b
	}
	return outcome
}

// ended checks the end s against what was called.
func (w *world) ended(s saga.State) {
	t := w.t
	var actions, compensations []store.Branch
	for _, b := range w.begun {
		if b.IsCompensation() {
			compensations = append(compensations, b)
		} else {
			actions = append(actions, b)
		}
	}
	if s.Status == store.StatusSucceeded {
		require.Empty(t, compensations)
		require.Len(t, actions, s.Marks.Steps())
		require.Equal(t, saga.NoCall, w.refused)
		return
	}
	require.NotEqual(t, saga.NoCall, w.refused, "failed, and no action was refused")
	require.Len(t, compensations, len(actions), "what was begun, and nothing else, is undone")
	for i, b := range compensations {
		require.Equal(t, store.Compensation(len(actions)-1-i), b, "in reverse order")
		require.True(t, w.succeeded[b])
	}
}
