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

// concurrent is a saga with a step for each list, which says what it waits for.
func concurrent(after ...[]int) *saga.Saga {
	s := newSaga(len(after))
	s.Concurrent = true
	for i := range after {
		s.Steps[i].After = after[i]
	}
	return s
}

// labels are the branches of a text such as "a0 c1", named as in label.
func labels(text string) (list []store.Branch) {
	for _, name := range strings.Fields(text) {
		var i int
		fmt.Sscanf(name[1:], "%d", &i)
		if name[0] == 'a' {
			list = append(list, store.Action(i))
		} else {
			list = append(list, store.Compensation(i))
		}
	}
	return list
}

// said are the events of a text such as "a0 yes, a1 no, a2 later, c1 silent, abort".
func said(text string) (events []machine.Event) {
	for part := range strings.SplitSeq(text, ", ") {
		name, what, _ := strings.Cut(part, " ")
		switch outcome := map[string]machine.Outcome{"yes": machine.Succeeded, "no": machine.Failed, "later": machine.Ongoing, "silent": machine.Unknown}[what]; {
		case part == "abort":
			events = append(events, abort)
		case outcome != 0:
			events = append(events, answer(labels(name)[0], outcome))
		case part != "":
			panic("not an event: " + part)
		}
	}
	return events
}

// Written by hand, so that a mistake in the helpers of the table shows. Statuses,
// marks and branches are as they are stored and as in label; "under way" are all
// calls before and after, "calls" those that begin.
func TestDecide_Examples(t *testing.T) {
	t.Parallel()
	serial, free := newSaga(3), concurrent(nil, nil, nil)
	diamond := concurrent(nil, []int{0}, []int{0}, []int{1, 2})
	backwards := concurrent([]int{1}, []int{2}, nil)
	for _, tt := range []struct {
		of       *saga.Saga
		from     string // status and marks
		underWay string
		events   string
		to       string
		calls    string
		then     string // under way
		written  string // the marks of the change: y or n, and the branch; "-" is a change without, "" none
	}{
		{serial, "s ------", "", "", "s ------", "a0", "a0", ""},
		{serial, "s ------", "a0", "a0 yes", "s y-----", "a1", "a1", "ya0"},
		{serial, "s y-y---", "a2", "a2 yes", "S y-y-y-", "", "", "ya2"},
		{serial, "s y-----", "a1", "a1 no", "a y-n---", "c1", "c1", "na1"},
		{serial, "a y-n---", "c1", "c1 yes", "a y-ny--", "c0", "c0", "yc1"},
		{serial, "a y-ny--", "c0", "c0 yes", "F yyny--", "", "", "yc0"},
		// All branches are marked and the end was not: it is written now.
		{serial, "s y-y-y-", "", "", "S y-y-y-", "", "", "-"},
		{serial, "a yyny--", "", "", "F yyny--", "", "", "-"},
		// Out of time while a1 is under way: it may have begun, and a2 cannot have.
		{serial, "s y-----", "a1", "abort", "a y-----", "", "a1", "-"},
		{serial, "a y-----", "a1", "a1 yes", "a y-----", "c1", "c1", ""},
		{serial, "a y-----", "", "", "a y-----", "c1", "c1", ""},
		{serial, "a y-----", "c1", "c1 yes", "a y--y--", "c0", "c0", "yc1"},
		{serial, "a y--y--", "c0", "c0 yes", "F yy-y--", "", "", "yc0"},
		// The success that comes with the abort is not marked, or it would open a2.
		{serial, "s y-----", "a1", "a1 yes, abort", "a y-----", "c1", "c1", "-"},
		{serial, "s y-----", "a1", "abort, a1 yes", "a y-----", "c1", "c1", "-"},
		{serial, "s y-y---", "a2", "a2 yes, abort", "a y-y---", "c2", "c2", "-"},
		{serial, "s y-y-n-", "", "", "a y-y-n-", "c2", "c2", "-"}, // which no coordinator writes

		{free, "s ------", "", "", "s ------", "a0 a1 a2", "a0 a1 a2", ""},
		{free, "s ------", "a0 a1 a2", "a1 yes", "s --y---", "", "a0 a2", "ya1"},
		{free, "s --y---", "a0 a2", "a2 yes, a0 yes", "S y-y-y-", "", "", "ya2 ya0"},
		{free, "s --y---", "", "", "s --y---", "a0 a2", "a0 a2", ""},
		{free, "s --y---", "a0 a2", "a2 no", "a --y-n-", "c2 c1", "a0 c2 c1", "na2"},
		{free, "a --y-n-", "a0 c2 c1", "c1 yes", "a --yyn-", "", "a0 c2", "yc1"},
		{free, "a --yyn-", "a0 c2", "a0 yes", "a --yyn-", "c0", "c2 c0", ""},
		{free, "a --yyn-", "c2 c0", "c0 yes, c2 yes", "F -yyyny", "", "", "yc0 yc2"},
		{free, "a --yyn-", "", "", "a --yyn-", "c2 c0", "c2 c0", ""},
		{free, "s --n---", "", "", "a --n---", "c2 c1 c0", "c2 c1 c0", "-"}, // which no coordinator writes
		{free, "s ------", "a0 a1 a2", "a0 no, a1 no", "a n-----", "c1 c0", "a2 c1 c0", "na0"},
		{free, "s ------", "a0 a1 a2", "a0 yes, a1 no, a2 yes", "a --n---", "c2 c1 c0", "c2 c1 c0", "na1"},
		{free, "s ------", "a0 a1 a2", "abort, a0 yes, a2 no", "a ------", "c2 c0", "a1 c2 c0", "-"},
		{free, "s ------", "a0 a1 a2", "a0 yes, a0 no, a0 yes", "s y-----", "", "a1 a2", "ya0"}, // the first one counts

		{diamond, "s --------", "", "", "s --------", "a0", "a0", ""},
		{diamond, "s --------", "a0", "a0 yes", "s y-------", "a1 a2", "a1 a2", "ya0"},
		{diamond, "s y-------", "a1 a2", "a2 yes", "s y---y---", "", "a1", "ya2"},
		{diamond, "s y---y---", "a1", "a1 yes", "s y-y-y---", "a3", "a3", "ya1"},
		{diamond, "s y-y-y---", "a3", "a3 no", "a y-y-y-n-", "c3", "c3", "na3"},
		{diamond, "a y-y-y-n-", "c3", "c3 yes", "a y-y-y-ny", "c2 c1", "c2 c1", "yc3"},
		{diamond, "a y-y-y-ny", "c2 c1", "c1 yes", "a y-yyy-ny", "", "c2", "yc1"},
		{diamond, "a y-yyy-ny", "c2", "c2 yes", "a y-yyyyny", "c0", "c0", "yc2"},
		{diamond, "a y-yyyyny", "c0", "c0 yes", "F yyyyyyny", "", "", "yc0"},
		{diamond, "s y-------", "a1 a2", "a1 no", "a y-n-----", "c1", "a2 c1", "na1"},
		{diamond, "a y-n-----", "a2 c1", "c1 yes", "a y-ny----", "", "a2", "yc1"},
		{diamond, "a y-ny----", "a2", "a2 silent", "a y-ny----", "c2", "c2", ""},
		{diamond, "s y---y---", "a1", "abort, a1 yes", "a y---y---", "c2 c1", "c2 c1", "-"},
		// Step 3 was not called when the abort came with what opens it.
		{diamond, "s y-------", "a1 a2", "a1 yes, a2 yes, abort", "a y-------", "c2 c1", "c2 c1", "-"},

		{backwards, "s ------", "", "", "s ------", "a2", "a2", ""},
		{backwards, "s ------", "a2", "a2 yes", "s ----y-", "a1", "a1", "ya2"},
		{backwards, "s --y-y-", "a0", "a0 no", "a n-y-y-", "c0", "c0", "na0"},
		{backwards, "a ny--y-", "", "", "a ny--y-", "c1", "c1", ""},
		{backwards, "a ------", "", "", "a ------", "c2", "c2", ""},
	} {
		name := fmt.Sprintf("%s, %q under way, then %q", tt.from, tt.underWay, tt.events)
		s := machine.State{Status: store.Status(tt.from[0]), Marks: store.Marks(tt.from[2:]), Calling: labels(tt.underWay)}
		d := machine.Decide(planOf(tt.of), s, said(tt.events)...)
		require.Equal(t, tt.to, fmt.Sprintf("%c %s", d.State.Status, d.State.Marks), name)
		require.Equal(t, labels(tt.calls), d.Calls, name)
		require.Equal(t, fmt.Sprint(labels(tt.then)), fmt.Sprint(d.State.Calling), name)
		require.Equal(t, tt.written != "", d.Change, name)
		var marks []string
		for _, m := range d.Marks {
			marks = append(marks, fmt.Sprintf("%c%s", m.Mark, label(m.Branch)))
		}
		require.Equal(t, strings.Trim(tt.written, "-"), strings.Join(marks, " "), name)
		require.Zero(t, d.Deferred, name)
		require.Equal(t, tt.from[0] == 's' && d.State.Status == store.StatusAborting, d.Note, name)
	}
}

// A saga with something under way is not put off for what is held. Once nothing
// is, it rests until the first of the holds runs out, and the others have so much
// less to wait.
func TestDecide_Holds_AreRelative(t *testing.T) {
	t.Parallel()
	s := concurrent(nil, nil, nil, []int{2})
	s.RetryInterval = 10 * time.Second
	p := planOf(s)
	longer := p.Backoff.Pause(p.GID, store.Action(0), 1)
	require.Greater(t, longer, 10*time.Second)

	d := machine.Decide(p, machine.Decide(p, submitted(4, 0)).State, said("a0 silent, a1 later")...)
	require.False(t, d.Change, "a2 is under way")
	require.Equal(t, []machine.Retry{{Branch: 0, Tries: 1, Wait: longer}, {Branch: 2, Wait: 10 * time.Second}}, d.State.Retries)
	d = machine.Decide(p, d.State, said("a2 yes")...)
	require.Equal(t, labels("a3"), d.Calls, "what is held is not called")
	require.Zero(t, d.Deferred)

	d = machine.Decide(p, d.State, said("a3 yes")...)
	require.Equal(t, 10*time.Second, d.Deferred)
	rest := longer - 10*time.Second
	require.Equal(t, []machine.Retry{{Branch: 0, Tries: 1, Wait: rest}, {Branch: 2}}, d.State.Retries)
	require.True(t, d.Note)

	// Taken up again.
	d = machine.Decide(p, d.State)
	require.Equal(t, labels("a1"), d.Calls)
	require.False(t, d.Change)
	later := machine.Decide(p, d.State, said("a1 later")...)
	require.Equal(t, rest, later.Deferred)
	require.Equal(t, []machine.Retry{{Branch: 0, Tries: 1}, {Branch: 2, Wait: 10*time.Second - rest}}, later.State.Retries)

	d = machine.Decide(p, d.State, said("a1 yes")...)
	require.Equal(t, rest, d.Deferred)
	require.Equal(t, []machine.Retry{{Branch: 0, Tries: 1}}, d.State.Retries, "a1 is done")
	require.Equal(t, []store.SetMark{{Branch: 2, Mark: store.MarkSucceeded}}, d.Marks)
	d = machine.Decide(p, d.State)
	require.Equal(t, labels("a0"), d.Calls)
	d = machine.Decide(p, d.State, said("a0 yes")...)
	require.Equal(t, store.StatusSucceeded, d.State.Status)
}

// Actions are not called again after an abort, so their holds go with it. Those
// of compensations are their own.
func TestDecide_Abort_DropsTheHoldsOfActions(t *testing.T) {
	t.Parallel()
	p := planOf(concurrent(nil, nil, nil))
	underWay := machine.Decide(p, submitted(3, 0)).State
	underWay = machine.Decide(p, underWay, said("a0 later, a1 silent")...).State
	putOff := machine.Decide(p, underWay, said("a2 silent")...).State
	require.Len(t, putOff.Retries, 3)

	for name, d := range map[string]machine.Decision{
		"refused":   machine.Decide(p, underWay, said("a2 no")...),
		"demanded":  machine.Decide(p, underWay, said("abort, a2 yes")...),
		"taken up":  machine.Decide(p, putOff, said("abort")...),
		"both ways": machine.Decide(p, underWay, said("a2 later, abort")...),
	} {
		require.Equal(t, labels("c2 c1 c0"), d.Calls, name)
		require.Empty(t, d.State.Retries, name)
		require.Zero(t, d.Deferred, name)
		require.Equal(t, "because", d.State.Aborted, name)

		d = machine.Decide(p, d.State, said("c0 later, c2 silent, c1 yes")...)
		longer := p.Backoff.Pause(p.GID, store.Compensation(2), 1)
		require.Equal(t, interval, d.Deferred, name)
		require.Equal(t, []machine.Retry{{Branch: 1}, {Branch: 5, Tries: 1, Wait: longer - interval}}, d.State.Retries, name)
		require.Equal(t, labels("c0"), machine.Decide(p, d.State).Calls, name)
	}
}
