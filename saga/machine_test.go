package saga_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/store"
)

// interval is the first pause of the plans below; none is longer than a minute.
const interval = 7 * time.Second

func planOf(s *saga.Saga) *saga.Plan {
	cfg := saga.DefaultConfig()
	cfg.RetryInterval, cfg.MaxRetryInterval = interval, time.Minute
	p := saga.PlanOf(s, &cfg)
	return &p
}

// submitted is a saga of n steps of which so many actions have succeeded.
func submitted(n, done int, calling ...store.Branch) saga.State {
	return saga.State{
		Status:  store.StatusSubmitted,
		Marks:   store.Marks(strings.Repeat("y-", done) + strings.Repeat("--", n-done)),
		Calling: calling,
	}
}

// aborting is a saga of n steps whose action k has the mark that it was aborted
// with, and of which all steps down to last have been compensated; last is k+1
// when none has.
func aborting(n, k int, mark store.Mark, last int, calling ...store.Branch) saga.State {
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
func in(status store.Status, s saga.State) saga.State {
	s.Status = status
	return s
}

// held is s with one branch on hold, which has just given an answer.
func held(s saga.State, h saga.Hold) saga.State {
	s.Holds, s.Held, s.Calling = []saga.Hold{h}, "because", nil
	return s
}

func answer(b store.Branch, outcome saga.Outcome) saga.Event {
	return saga.Event{Branch: b, Outcome: outcome, Reason: "because"}
}

var (
	abort = saga.Event{Reason: "because"}

	// unanswered is every outcome that is no answer, those that are none included.
	unanswered = []saga.Outcome{saga.Unknown, 99, -1}
)

// decides checks one row of the table.
func decides(t *testing.T, p *saga.Plan, s saga.State, want saga.Decision, events ...saga.Event) {
	t.Helper()
	// As text, for an empty list may be nil or not.
	require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", saga.Decide(p, s, events...)), "%+v, then %+v", s, events)
}

// ignoresOthers checks that no answer of a branch that is not under way changes s.
func ignoresOthers(t *testing.T, p *saga.Plan, s saga.State) {
	t.Helper()
	underWay := fmt.Sprint(s.Calling)
	for b := store.Branch(-2); int(b) <= len(s.Marks)+1; b++ {
		if fmt.Sprint([]store.Branch{b}) == underWay {
			continue
		}
		for _, outcome := range append([]saga.Outcome{saga.Succeeded, saga.Failed, saga.Ongoing}, unanswered...) {
			decides(t, p, s, saga.Decision{State: s}, answer(b, outcome))
		}
	}
	decides(t, p, s, saga.Decision{State: s})
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
		decides(t, p, succeeded, saga.Decision{State: succeeded}, abort)
	}
}

// rowsOfActions are those of a saga whose turn it is to do step i.
func rowsOfActions(t *testing.T, p *saga.Plan, i int) {
	n, action := p.Steps, store.Action(i)
	idle, calling := submitted(n, i), submitted(n, i, action)
	ignoresOthers(t, p, calling)
	decides(t, p, idle, saga.Decision{State: calling, Calls: calling.Calling})

	next := saga.Decision{
		State: in(store.StatusSucceeded, submitted(n, n)), Change: true,
		Marks: []store.SetMark{{Branch: action, Mark: store.MarkSucceeded}},
	}
	if i < n-1 {
		next.State, next.Calls = submitted(n, i+1, store.Action(i+1)), []store.Branch{store.Action(i + 1)}
	}
	decides(t, p, calling, next, answer(action, saga.Succeeded))

	refused := saga.Decision{
		State: aborting(n, i, store.MarkFailed, i+1, store.Compensation(i)), Change: true, Note: true,
		Marks: []store.SetMark{{Branch: action, Mark: store.MarkFailed}},
		Calls: []store.Branch{store.Compensation(i)},
	}
	decides(t, p, calling, refused, answer(action, saga.Failed))

	decides(t, p, calling, saga.Decision{
		State: held(idle, saga.Hold{Branch: action}), Change: true, Note: true, PutOff: interval,
	}, answer(action, saga.Ongoing))
	limited := *p
	limited.Retry.Limit = 1
	for _, outcome := range unanswered {
		once := held(idle, saga.Hold{Branch: action, Tries: 1})
		putOff := saga.Decision{State: once, Change: true, Note: true, PutOff: saga.PauseOf(p.Retry, p.GID, action, 1)}
		decides(t, p, calling, putOff, answer(action, outcome))
		decides(t, &limited, calling, putOff, answer(action, outcome))

		once.Calling = calling.Calling
		given := saga.Decision{
			State: aborting(n, i, store.MarkPending, i+1, store.Compensation(i)), Change: true, Note: true, // nobody knows
			Calls: []store.Branch{store.Compensation(i)},
		}
		given.State.Aborted, given.State.Held = "no answer after 1 retries: because", "because"
		decides(t, &limited, once, given, answer(action, outcome))
	}

	// Aborted while it is under way: its end is waited for, and does not count.
	waiting := aborting(n, i, store.MarkPending, i+1, action)
	decides(t, p, calling, saga.Decision{State: waiting, Change: true, Note: true}, abort)
	ignoresOthers(t, p, waiting)
	decides(t, p, waiting, saga.Decision{State: waiting}, abort)
	undoing := aborting(n, i, store.MarkPending, i+1, store.Compensation(i))
	for _, outcome := range append([]saga.Outcome{saga.Succeeded, saga.Failed, saga.Ongoing}, unanswered...) {
		decides(t, p, waiting, saga.Decision{State: undoing, Calls: undoing.Calling}, answer(action, outcome))
	}
	// Aborted when it was taken up: it may have begun.
	decides(t, p, idle, saga.Decision{State: undoing, Change: true, Note: true, Calls: undoing.Calling}, abort)
}

// rowsOfCompensations are those of a saga that was aborted when step k was being
// done, and whose turn it is to undo step j.
func rowsOfCompensations(t *testing.T, p *saga.Plan, k, j int, mark store.Mark) {
	n, compensation := p.Steps, store.Compensation(j)
	idle, calling := aborting(n, k, mark, j+1), aborting(n, k, mark, j+1, compensation)
	ignoresOthers(t, p, calling)
	decides(t, p, idle, saga.Decision{State: calling, Calls: calling.Calling})
	decides(t, p, calling, saga.Decision{State: calling}, abort)

	next := saga.Decision{
		State: in(store.StatusFailed, aborting(n, k, mark, 0)), Change: true,
		Marks: []store.SetMark{{Branch: compensation, Mark: store.MarkSucceeded}},
	}
	if j > 0 {
		next.State, next.Calls = aborting(n, k, mark, j, store.Compensation(j-1)), []store.Branch{store.Compensation(j - 1)}
	}
	decides(t, p, calling, next, answer(compensation, saga.Succeeded))
	decides(t, p, calling, next, answer(compensation, saga.Succeeded), abort)

	decides(t, p, calling, saga.Decision{
		State: held(idle, saga.Hold{Branch: compensation}), Change: true, Note: true, PutOff: interval,
	}, answer(compensation, saga.Ongoing))
	limited := *p
	limited.Retry.Limit = 1 // which is one of actions
	for _, outcome := range append([]saga.Outcome{saga.Failed}, unanswered...) {
		for _, tries := range []int{0, 1, 5} {
			before := held(idle, saga.Hold{Branch: compensation, Tries: tries})
			before.Calling = calling.Calling
			decides(t, &limited, before, saga.Decision{
				State:  held(idle, saga.Hold{Branch: compensation, Tries: tries + 1}),
				Change: true, Note: true, PutOff: saga.PauseOf(p.Retry, p.GID, compensation, tries+1),
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
		p.Retry.Limit = limit
		calls := func(outcomes ...saga.Outcome) (n int, s saga.State) {
			s = submitted(1, 0)
			for s.Status == store.StatusSubmitted {
				s = saga.Decide(p, s).State
				require.Equal(t, []store.Branch{0}, s.Calling)
				outcome := saga.Unknown
				if n < len(outcomes) {
					outcome = outcomes[n]
				}
				s = saga.Decide(p, s, answer(0, outcome)).State
				n++
			}
			return n, s
		}
		n, s := calls()
		require.Equal(t, limit+1, n)
		require.Equal(t, fmt.Sprintf("no answer after %d retries: because", limit), s.Aborted)
		require.Equal(t, store.Marks("--"), s.Marks)

		n, _ = calls(saga.Unknown, saga.Ongoing, saga.Ongoing)
		require.Equal(t, 3+limit+1, n, "an answer has the count begin anew")
	}
}

// A branch that is ongoing is asked again at the same interval, however often,
// and forgets how often it did not answer before.
func TestDecide_Ongoing_WaitsTheIntervalEachTime(t *testing.T) {
	t.Parallel()
	p := planOf(newSaga(2))
	for _, s := range []saga.State{submitted(2, 1), aborting(2, 1, store.MarkPending, 2)} {
		for i := range 100 {
			s = saga.Decide(p, s).State
			require.Len(t, s.Calling, 1)
			if i == 50 {
				s.Holds = []saga.Hold{{Branch: s.Calling[0], Tries: 9}}
			}
			d := saga.Decide(p, s, answer(s.Calling[0], saga.Ongoing))
			require.Equal(t, interval, d.PutOff)
			require.Equal(t, []saga.Hold{{Branch: s.Calling[0]}}, d.State.Holds)
			s = d.State
		}
	}
	short := newSaga(1)
	short.RetryInterval = 1 // less than a store can tell
	require.Equal(t, time.Millisecond, saga.Decide(planOf(short), submitted(1, 0, 0), answer(0, saga.Ongoing)).PutOff)
	require.Equal(t, time.Millisecond, saga.Decide(planOf(short), submitted(1, 0, 0), answer(0, saga.Unknown)).PutOff)
}
