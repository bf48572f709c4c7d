package saga_test

import (
	"strings"
	"testing"
	"time"

	"sagabench/saga"
	"sagabench/store"
)

// FuzzDecide checks what holds for any state, also for those that no saga gets
// into, and any event.
func FuzzDecide(f *testing.F) {
	f.Add(byte(0), "----", false, 0, 0, int64(time.Second))
	f.Add(byte(0), "y---", true, 2, 1, int64(time.Second))
	f.Add(byte(0), "y---", true, 2, 2, int64(time.Second))
	f.Add(byte(0), "y-y-", false, 0, 0, int64(1))
	f.Add(byte(1), "y-n-", true, 3, 1, int64(time.Hour))
	f.Add(byte(1), "y-ny", true, 1, 4, int64(time.Hour))
	f.Add(byte(1), "yyyy", true, -1, 3, int64(time.Hour))
	f.Add(byte(2), "y-y-", true, 2, 2, int64(time.Second))
	f.Add(byte(3), "nyyn", true, 7, 9, int64(time.Second))
	f.Fuzz(func(t *testing.T, status byte, marks string, answered bool, branch, outcome int, retry int64) {
		if len(marks) < 2 || len(marks) > 2*store.MaxSteps || retry <= 0 {
			t.Skip()
		}
		s := saga.State{
			Status: []store.Status{store.StatusSubmitted, store.StatusAborting, store.StatusSucceeded, store.StatusFailed}[status%4],
			Marks:  anyMarks(marks),
		}
		if s.Status == store.StatusSubmitted { // a refusal is written together with the abort
			s.Marks = store.Marks(strings.ReplaceAll(string(s.Marks), "n", "-"))
		}
		e := saga.Event{Answered: answered, Branch: store.Branch(branch), Outcome: saga.Outcome(outcome), Reason: "why"}
		d := saga.Decide(s, e, time.Duration(retry))

		again := saga.Decide(s, e, time.Duration(retry))
		if again.State != d.State || again.Call != d.Call || again.Due != d.Due || again.Change != d.Change {
			t.Fatalf("%+v, %+v: %+v, and asked again %+v", s, e, d, again)
		}
		marked := s.Marks
		for _, m := range d.Marks {
			if was := s.Marks.At(m.Branch); was != store.MarkPending && was != m.Mark {
				t.Errorf("%+v, %+v: mark %d is changed", s, e, m.Branch)
			}
			marked = marked.With(m.Branch, m.Mark)
		}
		if d.State.Marks != marked {
			t.Errorf("%+v, %+v: marks are %s, with what is written %s", s, e, d.State.Marks, marked)
		}
		if !d.Change {
			if d.State != s || d.Marks != nil || d.Due != 0 || d.Reason != "" {
				t.Errorf("%+v, %+v: %+v is more than no change", s, e, d)
			}
		} else if err := (&store.Transition{
			GID: "g", Epoch: 1, From: s.Status, To: d.State.Status, Marks: d.Marks, Due: d.Due, Reason: d.Reason,
		}).Validate(); err != nil {
			t.Errorf("%+v, %+v: cannot be written: %v", s, e, err)
		}
		switch ended := d.State.Status.Final(); {
		case d.Call == saga.NoCall && !ended && d.Due <= 0:
			t.Errorf("%+v, %+v: %+v is the end of the road", s, e, d)
		case d.Call != saga.NoCall && (ended || d.Due != 0):
			t.Errorf("%+v, %+v: %+v, and yet calls", s, e, d)
		case d.Call != saga.NoCall && d.Call.IsCompensation() != (d.State.Status == store.StatusAborting):
			t.Errorf("%+v, %+v: calls %d when %v", s, e, d.Call, d.State.Status)
		case d.Call != saga.NoCall && d.State.Marks.At(d.Call) == store.MarkSucceeded:
			t.Errorf("%+v, %+v: calls %d, which has succeeded", s, e, d.Call)
		}
	})
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
