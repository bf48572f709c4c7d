package machine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

// bodyOf is s as a store keeps it.
func bodyOf(t require.TestingT, s *saga.Saga) []byte {
	body, err := json.Marshal(s)
	require.NoError(t, err)
	return body
}

// recordOf is a saga of so many steps as a store holds it.
func recordOf(t require.TestingT, steps int, note string) store.Record {
	return store.Record{GID: "g", Status: store.StatusAborting, Marks: store.NewMarks(steps), Note: note, Body: bodyOf(t, newSaga(steps))}
}

func TestNote_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := machine.State{Status: store.StatusAborting, Marks: store.NewMarks(9)}
		s.Aborted = machine.Reason(rapid.String().Draw(t, "aborted"))
		s.RetryReason = machine.Reason(string(rapid.SliceOf(rapid.Byte()).Draw(t, "held")))
		for range rapid.IntRange(0, 9).Draw(t, "holds") {
			s.Retries = append(s.Retries, machine.Retry{
				Branch: store.Branch(rapid.IntRange(0, 2*store.MaxSteps-1).Draw(t, "branch")),
				Tries:  rapid.IntRange(0, math.MaxInt).Draw(t, "tries"),
				Wait:   time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "wait")),
			})
		}
		info, err := saga.Read(recordOf(t, 9, s.Note()))
		require.NoError(t, err)
		for i := range s.Retries {
			s.Retries[i].Wait = s.Retries[i].Wait.Truncate(time.Millisecond)
		}
		require.Equal(t, s, info.State)
	})
}

// A saga as wide as there may be, all of it held as often and for as long as can
// be, for reasons that grow when they are written down.
func TestNote_WorstCase_Fits(t *testing.T) {
	t.Parallel()
	const long = math.MaxInt64 * time.Nanosecond // the branches of a saga may be asked to wait a day
	for name, r := range map[string]string{
		"quotes": `"`, "backslashes": `\`, "line separators": "\u2028", "both": "\"\u2028", "control characters": "\x01\x7f\x00",
		"angles": "<&>", "no UTF-8": "\xff\xfe", "four bytes": "😀", "C1": "\u0085",
	} {
		s := machine.State{Status: store.StatusSubmitted, Marks: store.NewMarks(store.MaxSteps)}
		s.RetryReason = machine.Reason(strings.Repeat(r, 2000))
		s.Aborted = "no answer after 1000000 retries: " + s.RetryReason
		for i := range store.MaxSteps {
			s.Retries = append(s.Retries, machine.Retry{Branch: store.Compensation(i), Tries: saga.MaxRetryLimit, Wait: long})
		}
		note := s.Note()
		require.NoError(t, (&store.Transition{
			GID: "g", Epoch: 1, From: s.Status, To: s.Status, Due: 1, Release: true, Note: note,
		}).Validate(), name)
		info, err := saga.Read(recordOf(t, store.MaxSteps, note))
		require.NoError(t, err)
		require.Equal(t, s.RetryReason, info.State.RetryReason, name)
		require.Equal(t, s.Aborted, info.State.Aborted, name)
		require.Len(t, info.State.Retries, store.MaxSteps)
	}
}

// The machine itself gets a saga there, and back.
func TestDecide_ThousandStepsHeld_AreWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	s := newSaga(store.MaxSteps)
	s.Concurrent, s.RetryInterval = true, saga.MaxRetryInterval
	p := planOf(s)
	d := machine.Decide(p, submitted(store.MaxSteps, 0))
	require.Len(t, d.Calls, store.MaxSteps)
	var events []machine.Event
	for _, b := range d.Calls {
		events = append(events, machine.Event{Branch: b, Outcome: machine.Unknown, Reason: machine.Reason(strings.Repeat("\u2028", 1000))})
	}
	d = machine.Decide(p, d.State, events...)
	require.Len(t, d.State.Retries, store.MaxSteps)
	note := d.State.Note()
	require.LessOrEqual(t, len(note), store.MaxNoteBytes)
	info, err := saga.Read(store.Record{GID: s.GID, Status: store.StatusSubmitted, Marks: d.State.Marks, Note: note, Body: bodyOf(t, s)})
	require.NoError(t, err)
	require.NotEmpty(t, machine.Decide(p, info.State).Calls)
}

func TestReason_IsOneShortLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  "plain",
		"two\nlines\ttab\r":      "two lines tab ",
		"zero\x00 del\x7f":       "zero  del ",
		"bad \xff\xfe bytes":     "bad  bytes",
		"größer, ≤ \u2028":       "größer, ≤ \u2028",
		strings.Repeat("x", 600): strings.Repeat("x", 512),
		// A character that does not fit is left out whole.
		strings.Repeat("x", 511) + "ü": strings.Repeat("x", 511),
		strings.Repeat("x", 510) + "ü": strings.Repeat("x", 510) + "ü",
		strings.Repeat("€", 200):       strings.Repeat("€", 170),
	} {
		got := machine.Reason(text)
		require.Equal(t, want, got)
		require.True(t, utf8.ValidString(got))
	}
}

func TestRead_NoteThatIsNone_IsAnError(t *testing.T) {
	t.Parallel()
	for _, note := range []string{"x", "{", `{"holds":[["a",1,2]]}`, `{"holds":7}`, `{"held":{}}`} {
		_, err := saga.Read(recordOf(t, 2, note))
		require.ErrorContains(t, err, "decoding saga g", note)
	}
	info, err := saga.Read(recordOf(t, 2, ""))
	require.NoError(t, err)
	require.Equal(t, machine.State{Status: store.StatusAborting, Marks: "----"}, info.State)
	_, err = saga.Read(recordOf(t, 2, fmt.Sprintf(`{"unknown":%d}`, 7)))
	require.NoError(t, err, "a later version may know more")
}

// What a store holds may have been written by anybody. It must not end the
// process of whoever takes it up.
func TestRead_ImpossibleOrder_IsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"steps":[{},{"after":[9]}],"concurrent":true}`,
		`{"steps":[{},{"after":[-1]}],"concurrent":true}`,
		`{"steps":[{"after":[1]},{"after":[0]}],"concurrent":true}`,
		`{"steps":[{},{"after":[0]}]}`,
	} {
		_, err := saga.Read(store.Record{GID: "g", Status: store.StatusSubmitted, Marks: "----", Body: []byte(body)})
		require.ErrorContains(t, err, "after", body)
	}
}

// A reason that is kept does not keep the whole answer it was cut from.
func TestReason_IsAStringOfItsOwn(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 64<<10)
	require.NotSame(t, unsafe.StringData(text), unsafe.StringData(machine.Reason(text)))
}
