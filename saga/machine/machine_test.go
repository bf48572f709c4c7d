package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// interval is the first pause of the plans below; none is longer than a minute.
const interval = 7 * time.Second

func planOf(s *saga.Saga) *machine.Plan {
	cfg := saga.DefaultConfig()
	cfg.RetryInterval, cfg.MaxRetryInterval = interval, time.Minute
	p := s.Plan(&cfg)
	return &p
}

// submitted is a saga of n steps of which so many actions have succeeded.
func submitted(n, done int, calling ...store.Branch) machine.State {
	return machine.State{
		Status:  store.StatusSubmitted,
		Marks:   store.Marks(strings.Repeat("y-", done) + strings.Repeat("--", n-done)),
		Calling: calling,
	}
}

// aborting is a saga of n steps whose action k has the mark that it was aborted
// with, and of which all steps down to last have been compensated; last is k+1
// when none has.
func aborting(n, k int, mark store.Mark, last int, calling ...store.Branch) machine.State {
	s := submitted(n, k, calling...)
	s.Status, s.Aborted = store.StatusAborting, "because"
	if mark != store.MarkPending {
		s.Marks = s.Marks.With(store.Action(k), mark)
	}
	for i := last; i <= k; i++ {
		s.Marks = s.Marks.With(store.Compensation(i), store.MarkSucceeded)
	}
	return s
}

// in is s in another status.
func in(status store.Status, s machine.State) machine.State {
	s.Status = status
	return s
}

// held is s with one branch on hold, which has just given an answer.
func held(s machine.State, h machine.Retry) machine.State {
	s.Retries, s.RetryReason, s.Calling = []machine.Retry{h}, "because", nil
	return s
}

func answer(b store.Branch, outcome machine.Outcome) machine.Event {
	return machine.Event{Branch: b, Outcome: outcome, Reason: "because"}
}

var (
	abort = machine.Event{Reason: "because"}

	// unanswered is every outcome that is no answer, those that are none included.
	unanswered = []machine.Outcome{machine.Unknown, 99, -1}
)

// decides checks one row of the table.
func decides(t *testing.T, p *machine.Plan, s machine.State, want machine.Decision, events ...machine.Event) {
	t.Helper()
	// As text, for an empty list may be nil or not.
	require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", machine.Decide(p, s, events...)), "%+v, then %+v", s, events)
}

// ignoresOthers checks that no answer of a branch that is not under way changes s.
func ignoresOthers(t *testing.T, p *machine.Plan, s machine.State) {
	t.Helper()
	underWay := fmt.Sprint(s.Calling)
	for b := store.Branch(-2); int(b) <= len(s.Marks)+1; b++ {
		if fmt.Sprint([]store.Branch{b}) == underWay {
			continue
		}
		for _, outcome := range append([]machine.Outcome{machine.Succeeded, machine.Failed, machine.Ongoing}, unanswered...) {
			decides(t, p, s, machine.Decision{State: s}, answer(b, outcome))
		}
	}
	decides(t, p, s, machine.Decision{State: s})
}

// TestDecide_Table goes through the table of the package comment, row by row, for
// every state that a saga of up to five steps, one after another, can be in.
func TestDecide_Table(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		p := planOf(newSaga(n))
		for i := range n {
			rowsOfActions(t, p, i)
			for last := i; last >= 0; last-- {
				rowsOfCompensations(t, p, i, last, store.MarkFailed)  // it was refused
				rowsOfCompensations(t, p, i, last, store.MarkPending) // nobody knows
			}
			ignoresOthers(t, p, in(store.StatusFailed, aborting(n, i, store.MarkFailed, 0)))
		}
		succeeded := in(store.StatusSucceeded, submitted(n, n))
		ignoresOthers(t, p, succeeded)
		decides(t, p, succeeded, machine.Decision{State: succeeded}, abort)
	}
}

// rowsOfActions are those of a saga whose turn it is to do step i.
func rowsOfActions(t *testing.T, p *machine.Plan, i int) {
	n, action := p.Steps, store.Action(i)
	idle, calling := submitted(n, i), submitted(n, i, action)
	ignoresOthers(t, p, calling)
	decides(t, p, idle, machine.Decision{State: calling, Calls: calling.Calling})

	next := machine.Decision{
		State: in(store.StatusSucceeded, submitted(n, n)), Change: true,
		Marks: []store.SetMark{{Branch: action, Mark: store.MarkSucceeded}},
	}
	if i < n-1 {
		next.State, next.Calls = submitted(n, i+1, store.Action(i+1)), []store.Branch{store.Action(i + 1)}
	}
	decides(t, p, calling, next, answer(action, machine.Succeeded))

	refused := machine.Decision{
		State: aborting(n, i, store.MarkFailed, i+1, store.Compensation(i)), Change: true, Note: true,
		Marks: []store.SetMark{{Branch: action, Mark: store.MarkFailed}},
		Calls: []store.Branch{store.Compensation(i)},
	}
	decides(t, p, calling, refused, answer(action, machine.Failed))

	decides(t, p, calling, machine.Decision{
		State: held(idle, machine.Retry{Branch: action}), Change: true, Note: true, Deferred: interval,
	}, answer(action, machine.Ongoing))
	limited := *p
	limited.Backoff.Limit = 1
	for _, outcome := range unanswered {
		once := held(idle, machine.Retry{Branch: action, Tries: 1})
		putOff := machine.Decision{State: once, Change: true, Note: true, Deferred: p.Backoff.Pause(p.GID, action, 1)}
		decides(t, p, calling, putOff, answer(action, outcome))
		decides(t, &limited, calling, putOff, answer(action, outcome))

		once.Calling = calling.Calling
		given := machine.Decision{
			State: aborting(n, i, store.MarkPending, i+1, store.Compensation(i)), Change: true, Note: true, // nobody knows
			Calls: []store.Branch{store.Compensation(i)},
		}
		given.State.Aborted, given.State.RetryReason = "no answer after 1 retries: because", "because"
		decides(t, &limited, once, given, answer(action, outcome))
	}

	// Aborted while it is under way: its end is waited for, and does not count.
	waiting := aborting(n, i, store.MarkPending, i+1, action)
	decides(t, p, calling, machine.Decision{State: waiting, Change: true, Note: true}, abort)
	ignoresOthers(t, p, waiting)
	decides(t, p, waiting, machine.Decision{State: waiting}, abort)
	undoing := aborting(n, i, store.MarkPending, i+1, store.Compensation(i))
	for _, outcome := range append([]machine.Outcome{machine.Succeeded, machine.Failed, machine.Ongoing}, unanswered...) {
		decides(t, p, waiting, machine.Decision{State: undoing, Calls: undoing.Calling}, answer(action, outcome))
	}
	// Aborted when it was taken up: it may have begun.
	decides(t, p, idle, machine.Decision{State: undoing, Change: true, Note: true, Calls: undoing.Calling}, abort)
}

// rowsOfCompensations are those of a saga that was aborted when step k was being
// done, and whose turn it is to undo step j.
func rowsOfCompensations(t *testing.T, p *machine.Plan, k, j int, mark store.Mark) {
	n, compensation := p.Steps, store.Compensation(j)
	idle, calling := aborting(n, k, mark, j+1), aborting(n, k, mark, j+1, compensation)
	ignoresOthers(t, p, calling)
	decides(t, p, idle, machine.Decision{State: calling, Calls: calling.Calling})
	decides(t, p, calling, machine.Decision{State: calling}, abort)

	next := machine.Decision{
		State: in(store.StatusFailed, aborting(n, k, mark, 0)), Change: true,
		Marks: []store.SetMark{{Branch: compensation, Mark: store.MarkSucceeded}},
	}
	if j > 0 {
		next.State, next.Calls = aborting(n, k, mark, j, store.Compensation(j-1)), []store.Branch{store.Compensation(j - 1)}
	}
	decides(t, p, calling, next, answer(compensation, machine.Succeeded))
	decides(t, p, calling, next, answer(compensation, machine.Succeeded), abort)

	decides(t, p, calling, machine.Decision{
		State: held(idle, machine.Retry{Branch: compensation}), Change: true, Note: true, Deferred: interval,
	}, answer(compensation, machine.Ongoing))
	limited := *p
	limited.Backoff.Limit = 1 // which is one of actions
	for _, outcome := range append([]machine.Outcome{machine.Failed}, unanswered...) {
		for _, tries := range []int{0, 1, 5} {
			before := held(idle, machine.Retry{Branch: compensation, Tries: tries})
			before.Calling = calling.Calling
			decides(t, &limited, before, machine.Decision{
				State:  held(idle, machine.Retry{Branch: compensation, Tries: tries + 1}),
				Change: true, Note: true, Deferred: p.Backoff.Pause(p.GID, compensation, tries+1),
			}, answer(compensation, outcome))
		}
	}
}

// The limit counts retries, so it is one call less than there may be. What became of
// the action stays unknown.
func TestDecide_NoAnswer_IsAbortedAfterTheLimit(t *testing.T) {
	t.Parallel()
	for limit := 1; limit <= 4; limit++ {
		p := planOf(newSaga(1))
		p.Backoff.Limit = limit
		calls := func(outcomes ...machine.Outcome) (n int, s machine.State) {
			s = submitted(1, 0)
			for s.Status == store.StatusSubmitted {
				s = machine.Decide(p, s).State
				require.Equal(t, []store.Branch{0}, s.Calling)
				outcome := machine.Unknown
				if n < len(outcomes) {
					outcome = outcomes[n]
				}
				s = machine.Decide(p, s, answer(0, outcome)).State
				n++
			}
			return n, s
		}
		n, s := calls()
		require.Equal(t, limit+1, n)
		require.Equal(t, fmt.Sprintf("no answer after %d retries: because", limit), s.Aborted)
		require.Equal(t, store.Marks("--"), s.Marks)

		n, _ = calls(machine.Unknown, machine.Ongoing, machine.Ongoing)
		require.Equal(t, 3+limit+1, n, "an answer has the count begin anew")
	}
}

// A branch that is ongoing is asked again at the same interval, however often,
// and forgets how often it did not answer before.
func TestDecide_Ongoing_WaitsTheIntervalEachTime(t *testing.T) {
	t.Parallel()
	p := planOf(newSaga(2))
	for _, s := range []machine.State{submitted(2, 1), aborting(2, 1, store.MarkPending, 2)} {
		for i := range 100 {
			s = machine.Decide(p, s).State
			require.Len(t, s.Calling, 1)
			if i == 50 {
				s.Retries = []machine.Retry{{Branch: s.Calling[0], Tries: 9}}
			}
			d := machine.Decide(p, s, answer(s.Calling[0], machine.Ongoing))
			require.Equal(t, interval, d.Deferred)
			require.Equal(t, []machine.Retry{{Branch: s.Calling[0]}}, d.State.Retries)
			s = d.State
		}
	}
	short := newSaga(1)
	short.RetryInterval = 1 // less than a store can tell
	require.Equal(t, time.Millisecond, machine.Decide(planOf(short), submitted(1, 0, 0), answer(0, machine.Ongoing)).Deferred)
	require.Equal(t, time.Millisecond, machine.Decide(planOf(short), submitted(1, 0, 0), answer(0, machine.Unknown)).Deferred)
}
