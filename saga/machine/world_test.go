package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
)

// world is one saga, the store that holds it, what runs it, and its participants.
type world struct {
	t     *rapid.T
	store *memstore.Store
	saga  *saga.Saga
	plan  *machine.Plan

	mood            string // of the participants: an s, n, o or u for each of the outcomes that they draw from
	aborts, crashes bool
	fair            bool // branches decide, and nothing goes wrong any more

	state  machine.State // as the run knows it
	record store.Record  // as last read from the store

	underWay       []store.Branch // of the present run
	begun          map[store.Branch]bool
	done, refused  map[store.Branch]bool          // who has decided stays with it
	silences       map[store.Branch]int           // calls without an answer
	unanswered     map[store.Branch]int           // since the last time it was ongoing
	rests          map[store.Branch]time.Duration // until when, by the clock
	clock          time.Duration                  // moved by pauses alone
	crashed        bool
	interrupted    map[int]bool // see interrupt
	openAtTheAbort []int        // steps
}

func newWorld(t *rapid.T, s *saga.Saga) *world {
	w := &world{
		t: t, store: memstore.New(time.Hour), saga: s, plan: planOf(s),
		begun: map[store.Branch]bool{}, done: map[store.Branch]bool{}, refused: map[store.Branch]bool{},
		silences: map[store.Branch]int{}, unanswered: map[store.Branch]int{},
		rests: map[store.Branch]time.Duration{}, interrupted: map[int]bool{},
	}
	require.NoError(t, w.apply(&store.Create{GID: "g", Body: bodyOf(t, s), Steps: len(s.Steps), Owner: "o"}))
	w.read()
	w.takeUp()
	return w
}

func (w *world) apply(c store.Change) error {
	return w.store.Apply(w.t.Context(), []store.Change{c})[0]
}

// after are the steps that step i waits for.
func (w *world) after(i int) []int {
	switch {
	case w.saga.Concurrent:
		return w.saga.Steps[i].After
	case i > 0:
		return []int{i - 1}
	default:
		return nil
	}
}

// open are the steps that can have begun, by what is durable.
func (w *world) open(marks store.Marks) (steps []int) {
	pending := func(j int) bool { return marks.At(store.Action(j)) != store.MarkSucceeded }
	for i := range w.saga.Steps {
		if !slices.ContainsFunc(w.after(i), pending) {
			steps = append(steps, i)
		}
	}
	return steps
}

func (w *world) stored() store.Record {
	record, err := w.store.Get(w.t.Context(), "g")
	require.NoError(w.t, err)
	return record
}

// read has the run know what the store does, and checks that nothing there went
// back.
func (w *world) read() {
	was, is := w.record, w.stored()
	info, err := saga.Read(is)
	require.NoError(w.t, err)
	w.state, w.record = info.State, is
	if was.GID == "" {
		return
	}
	require.True(w.t, was.Status == is.Status || was.Status.CanBecome(is.Status), "%v to %v", was.Status, is.Status)
	for b := range was.Marks {
		require.True(w.t, was.Marks[b] == byte(store.MarkPending) || was.Marks[b] == is.Marks[b], "%s to %s", was.Marks, is.Marks)
	}
	if was.Status == store.StatusSubmitted && is.Status == store.StatusAborting {
		w.openAtTheAbort = w.open(was.Marks)
	}
}

// takeUp begins a run.
func (w *world) takeUp() {
	status := w.stored().Status
	require.NoError(w.t, w.apply(&store.Transition{GID: "g", Epoch: w.record.Epoch, From: status, To: status, Due: -1}))
	claimed, err := w.store.ClaimDue(w.t.Context(), "o", time.Hour, 1)
	require.NoError(w.t, err)
	require.Len(w.t, claimed, 1)
	w.underWay = nil
	w.read()
	w.interrupt()
}

// crash ends the run. The next one begins when its calls have ended, too, for
// their deadlines are before that of the lease.
func (w *world) crash() {
	w.crashed = true
	for _, b := range w.underWay {
		w.decide(b)
	}
	clear(w.rests)
	w.takeUp()
}

// interrupt notes which steps have their turn by what is durable and were not
// called, for a run came to its end between that write and the call. The next
// run cannot tell, so it may compensate them: their participants have to cope.
func (w *world) interrupt() {
	for _, i := range w.open(w.record.Marks) {
		w.interrupted[i] = w.interrupted[i] || !w.begun[store.Action(i)]
	}
}

// demand writes an abort into the store, beside the run, and reports whether
// that changed anything.
func (w *world) demand() bool {
	if w.stored().Status != store.StatusSubmitted {
		return false
	}
	require.NoError(w.t, w.apply(&store.Transition{
		GID: "g", Epoch: w.record.Epoch, From: store.StatusSubmitted, To: store.StatusAborting,
		Note: machine.State{Aborted: "on demand"}.Note(),
	}))
	return true
}

// adopt has the run go on from what was demanded.
func (w *world) adopt() {
	w.read()
	w.state.Calling = slices.Clone(w.underWay)
	w.interrupt()
}

func (w *world) transition(d machine.Decision, epoch uint32, from store.Status) *store.Transition {
	t := &store.Transition{
		GID: "g", Epoch: epoch, From: from, To: d.State.Status, Marks: d.Marks, Due: d.Deferred, Release: d.Deferred > 0,
	}
	if d.Note {
		t.Note = d.State.Note()
	}
	return t
}

// write makes a decision durable, unless something else was demanded meanwhile.
func (w *world) write(d machine.Decision) bool {
	was := w.state
	if !d.Change {
		require.Equal(w.t, was.Marks, d.State.Marks)
		require.Equal(w.t, was.Status, d.State.Status)
		require.Zero(w.t, len(d.Marks)+int(d.Deferred))
		require.False(w.t, d.Note)
		return true
	}
	demanded := w.stored().Status != was.Status
	if err := w.apply(w.transition(d, w.record.Epoch, was.Status)); demanded {
		require.ErrorIs(w.t, err, store.ErrConflict)
		return false
	} else {
		require.NoError(w.t, err, "%+v, then %+v", was, d)
	}
	for _, m := range d.Marks {
		w.isTrue(m, d.State.Status)
	}
	w.read()
	require.Equal(w.t, w.state.Status, d.State.Status)
	require.Equal(w.t, w.state.Marks, d.State.Marks)
	if d.Note {
		require.Equal(w.t, w.state.Aborted, d.State.Aborted)
		require.Equal(w.t, w.state.RetryReason, d.State.RetryReason)
		require.Len(w.t, w.state.Retries, len(d.State.Retries))
	}
	w.state.Calling = was.Calling
	return true
}

// isTrue checks a mark that is set, together with a status, against what the run
// was told.
func (w *world) isTrue(m store.SetMark, status store.Status) {
	b := m.Branch
	require.Equal(w.t, b.IsCompensation(), m.Mark == store.MarkSucceeded && (status == store.StatusAborting || status == store.StatusFailed),
		"%s is marked %c when %v", label(b), m.Mark, status)
	switch {
	case m.Mark == store.MarkSucceeded:
		require.True(w.t, w.done[b], "%s is marked, and has not succeeded", label(b))
	default:
		require.True(w.t, w.refused[b], "%s is marked, and was not refused", label(b))
	}
}

// refusesTheLastRun checks that what it decided before it crashed can no longer
// be written.
func (w *world) refusesTheLastRun(d machine.Decision) {
	if d.Change {
		t := w.transition(d, w.record.Epoch-1, w.record.Status)
		if w.record.Status.CanBecome(t.To) {
			require.ErrorIs(w.t, w.apply(t), store.ErrConflict)
		}
	}
}

// begin checks that a branch may be called now.
func (w *world) begin(b store.Branch) {
	i, now := b.Step(), w.stored()
	require.Equal(w.t, store.MarkPending, now.Marks.At(b), "%s has ended", label(b))
	require.NotContains(w.t, w.underWay, b)
	require.GreaterOrEqual(w.t, w.clock+50*time.Millisecond, w.rests[b], "%s rests; less what rounding takes", label(b))
	if b.IsCompensation() {
		require.Equal(w.t, store.StatusAborting, now.Status)
		require.NotContains(w.t, w.underWay, store.Action(i), "step %d is undone while it is being done", i)
		require.Contains(w.t, w.openAtTheAbort, i, "step %d is undone, and cannot have begun", i)
		for _, later := range w.openAtTheAbort {
			if slices.Contains(w.after(later), i) {
				require.Equal(w.t, store.MarkSucceeded, now.Marks.At(store.Compensation(later)), "step %d is undone before step %d", i, later)
			}
		}
	} else {
		require.Equal(w.t, store.StatusSubmitted, w.record.Status) // a demand may not be known yet
		require.Contains(w.t, w.open(now.Marks), i, "step %d has not its turn", i)
		if limit := w.saga.RetryLimit; limit > 0 && !w.crashed { // which may forget some
			require.LessOrEqual(w.t, w.unanswered[b], limit)
		}
	}
	w.begun[b] = true
	w.underWay = append(w.underWay, b)
}

// decide is the end of a call.
func (w *world) decide(b store.Branch) machine.Outcome {
	outcome := machine.Succeeded
	if !w.fair {
		outcome = w.outcome()
	}
	lost := outcome == machine.Unknown && rapid.Bool().Draw(w.t, "the answer is lost")
	switch {
	case w.done[b] && outcome != machine.Unknown:
		return machine.Succeeded
	case w.refused[b] && outcome != machine.Unknown:
		return machine.Failed
	case w.done[b] || w.refused[b]:
	case outcome == machine.Succeeded || lost:
		w.done[b] = true
	case outcome == machine.Failed && !b.IsCompensation():
		w.refused[b] = true
	}
	return outcome
}

// hear notes what the run is told, and for how long it must leave a branch alone.
func (w *world) hear(e machine.Event) {
	w.rests[e.Branch] = w.clock + w.saga.RetryInterval
	switch e.Outcome {
	case machine.Unknown:
		w.silences[e.Branch]++
		w.unanswered[e.Branch]++
	case machine.Ongoing:
		w.unanswered[e.Branch] = 0
	}
}

// ended checks the end.
func (w *world) ended() {
	t := w.t
	var undone []int
	for i := range w.saga.Steps {
		action, compensation := store.Action(i), store.Compensation(i)
		if w.record.Status == store.StatusSucceeded {
			require.True(t, w.done[action])
			require.False(t, w.begun[compensation], "step %d is undone, and the saga succeeded", i)
			continue
		}
		marked := w.record.Marks.At(compensation) == store.MarkSucceeded
		require.Equal(t, w.begun[compensation], marked, "the compensation of step %d was begun, or has ended: not both", i)
		if marked {
			undone = append(undone, i)
			require.True(t, w.begun[action] || w.interrupted[i], "step %d is undone, and was never about to begin", i)
		} else {
			require.False(t, w.begun[action], "step %d was begun, and is not undone", i)
		}
	}
	if w.record.Status == store.StatusSucceeded {
		require.Nil(t, w.openAtTheAbort)
		return
	}
	require.Equal(t, w.openAtTheAbort, undone)
	why, _, _ := strings.Cut(w.state.Aborted, ": ")
	require.Contains(t, w.reasons(), why)
}

// reasons are those for which the saga may have been aborted.
func (w *world) reasons() []string {
	reasons := []string{"on demand", "out of time"}
	for _, n := range w.silences {
		if limit := w.saga.RetryLimit; limit > 0 && n > limit {
			reasons = append(reasons, fmt.Sprintf("no answer after %d retries", limit))
		}
	}
	for b, refused := range w.refused {
		if refused {
			reasons = append(reasons, "said by "+label(b))
		}
	}
	return reasons
}
