//go:build linux

package saga_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/saga"
	"sagabench/store"
)

// Two coordinator processes work on one store. Again and again one of them is
// stopped for longer than its lease, in the middle of its sagas, while the other
// takes them over, and is then continued. Nothing it believes then is true any
// more, and nobody may be able to tell. On an SQL server it may be stopped in a
// transaction, whose rows nobody else can claim meanwhile.
func TestCoordinator_StoppedPastItsLease(t *testing.T) {
	t.Parallel()
	pairs := []*pair{
		{name: "redis", url: labtest.Start(t, lab.Redis, lab.Config{}).URL(), stops: 30},
		{name: "mysql", url: labtest.Start(t, lab.MySQL, lab.Config{Settings: map[string]string{"innodb_flush_method": "nosync"}}).URL(), stops: 15},
		{name: "postgres", url: labtest.Start(t, lab.Postgres, lab.Config{Settings: map[string]string{"fsync": "off"}}).URL(), stops: 15},
	}
	for _, p := range pairs {
		p.start(t)
	}
	deadline := time.Now().Add(busyPatience)
	for i := 0; slices.ContainsFunc(pairs, (*pair).goesOn); i++ { // side by side: most of the time is waiting
		require.True(t, time.Now().Before(deadline), "too little happens while one is stopped")
		for _, p := range pairs {
			p.stop(t, i)
		}
		time.Sleep(stoppedLease + 10*time.Millisecond + rand.N(60*time.Millisecond))
		for _, p := range pairs {
			p.goOn(t, i)
		}
		time.Sleep(10*time.Millisecond + rand.N(30*time.Millisecond)) // both run
	}
	for _, p := range pairs {
		t.Run(p.name, p.judge)
	}
}

func (p *pair) judge(t *testing.T) {
	p.end()
	for _, node := range p.nodes {
		require.NoError(t, node.Stop(busyPatience))
	}
	p.server.Close() // waits for calls that nobody waits for any more

	s, err := openStopped(t.Context(), p.url)
	require.NoError(t, err)
	defer s.Close()
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, stats.Unfinished, "all clients have their answers")
	verify(t, s)
	sagas := histories(t, s, p.nodes[:], p.all)
	silences := silencesOf(sagas)
	wrong := 0
	var sum tally
	for _, h := range sagas {
		failures := h.judge(silences, &sum)
		if len(failures) == 0 {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("saga %s:\n%s\n%s", h.gid, strings.Join(failures, "\n"), h.story(silences))
		}
	}
	t.Logf("%d sagas, %d of them wrong, %+v", len(sagas), wrong, sum)
	require.Zero(t, wrong)

	// A run in which nothing happens shows nothing.
	require.Positive(t, sum.Failed)
	require.Positive(t, sum.Succeeded)
	require.Positive(t, sum.Takeovers)
	require.Positive(t, sum.RefusedLate, "stale writes that were tried")
	require.Positive(t, sum.Answered)
}

// busyPatience is for a machine that has other things to do: with leases this short
// sagas end late then, as they change hands.
const busyPatience = 6 * patience

// history is all that is known of a saga when it is over.
type history struct {
	gid    string
	after  [][]int // of each step, those that it waits for
	timed  bool    // it may have been aborted for taking too long
	record store.Record
	lines  []line
	calls  []*called // in the order in which they began
}

// histories puts together what the store holds, what the processes said and
// what the participants saw.
func histories(t *testing.T, s store.Store, nodes []*process, all *participants) map[string]*history {
	sagas := map[string]*history{}
	err := store.Walk(t.Context(), s, store.Query{Limit: store.MaxListLimit}, func(r store.Record) {
		info, err := saga.Read(r)
		require.NoError(t, err)
		h := &history{gid: r.GID, record: r, timed: info.Saga.Timeout > 0}
		for i := range info.Saga.Steps {
			h.after = append(h.after, (&simulated{saga: info.Saga}).before(i))
		}
		sagas[r.GID] = h
	})
	require.NoError(t, err)
	of := func(gid string) *history {
		if sagas[gid] == nil { // require.Contains would compare all keys each time
			t.Fatalf("saga %s is not in the store", gid)
		}
		return sagas[gid]
	}
	for _, p := range nodes {
		for text := range strings.Lines(p.said.String()) {
			l, err := parseLine(p.name, text)
			require.NoError(t, err)
			h := of(l.gid)
			h.lines = append(h.lines, l)
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, c := range all.journal {
		h := of(c.gid)
		h.calls = append(h.calls, c)
	}
	return sagas
}

// tally counts what happened.
type tally struct {
	Succeeded, Failed    int
	Answered, Unanswered int
	Claims, Takeovers    int // Takeovers are the claims of sagas that nobody had let go
	RefusedLate          int // writes under an epoch that had been raised
	CalledLate           int // calls that had been decided on before their process fell silent
}

// silence is a time in which a process showed no sign of life: it was stopped, or
// the machine had no time for it.
type silence struct{ from, to time.Time }

// silencesOf lists, for each process, those after which a call may be late. It is
// made under a lease that is to outlast it by a tenth.
func silencesOf(sagas map[string]*history) map[string][]silence {
	signs := map[string][]time.Time{}
	for _, h := range sagas {
		for _, l := range h.lines {
			signs[l.by] = append(signs[l.by], l.at)
		}
		for _, c := range h.calls {
			signs[c.by] = append(signs[c.by], c.since)
		}
	}
	silences := map[string][]silence{}
	for by, times := range signs {
		slices.SortFunc(times, time.Time.Compare)
		for i := range times[1:] {
			if times[i+1].Sub(times[i]) >= stoppedLimit+stoppedLease/10 {
				silences[by] = append(silences[by], silence{times[i], times[i+1]})
			}
		}
	}
	return silences
}

// judge says what is wrong with a saga.
func (h *history) judge(silences map[string][]silence, sum *tally) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	h.judgeWrites(fail, sum)
	h.judgeOutcome(fail, sum)
	h.judgeCalls(fail, silences, sum)
	return failures
}

// judgeWrites looks for writes under an epoch that had been raised. What was
// acknowledged before a claim is in what that claim returned, as a claim is
// atomic; what is not in it was written later.
func (h *history) judgeWrites(fail func(string, ...any), sum *tally) {
	var claims []line // lowest epoch first
	owners, released := map[uint32]string{}, map[uint32]bool{}
	for _, l := range h.lines {
		switch l.kind {
		case "claimed":
			claims = append(claims, l)
		case "released":
			released[l.epoch] = true
		case "created", "wrote":
		default:
			continue
		}
		if owner, known := owners[l.epoch]; known && owner != l.by {
			fail("both processes wrote under epoch %d", l.epoch)
		}
		owners[l.epoch] = l.by
		if l.epoch > h.record.Epoch {
			fail("epoch %d was seen, and in the end it is %d", l.epoch, h.record.Epoch)
		}
	}
	slices.SortFunc(claims, func(a, b line) int { return int(a.epoch) - int(b.epoch) })
	for i, c := range claims {
		if c.epoch == 1 || i > 0 && claims[i-1].epoch == c.epoch {
			fail("epoch %d was given twice", c.epoch)
		}
		if sum.Claims++; !released[c.epoch-1] {
			sum.Takeovers++
		}
	}
	for _, l := range h.lines {
		next := slices.IndexFunc(claims, func(c line) bool { return c.epoch > l.epoch })
		switch l.kind {
		case "refused":
			if next >= 0 {
				sum.RefusedLate++
			}
		case "wrote", "released":
			if next >= 0 && !l.within(claims[next].status, claims[next].marks) {
				fail("%s wrote %v %s under epoch %d, and epoch %d began with %v %s: a stale write",
					l.by, l.status, l.marks, l.epoch, claims[next].epoch, claims[next].status, claims[next].marks)
			}
			if !l.within(h.record.Status, h.record.Marks) {
				fail("%s wrote %v %s under epoch %d, and it ended %v %s: a lost write",
					l.by, l.status, l.marks, l.epoch, h.record.Status, h.record.Marks)
			}
		}
	}
}

// judgeOutcome looks for a second one.
func (h *history) judgeOutcome(fail func(string, ...any), sum *tally) {
	switch h.record.Status {
	case store.StatusSucceeded:
		sum.Succeeded++
	case store.StatusFailed:
		sum.Failed++
	default:
		fail("it does not end: %v", h.record.Status)
	}
	ends := 0
	for _, l := range h.lines {
		switch l.kind {
		case "answered":
			sum.Answered++
			if l.status != h.record.Status {
				fail("a client of %s was told %v, and it is %v", l.by, l.status, h.record.Status)
			}
		case "unanswered":
			sum.Unanswered++
		case "wrote":
			if l.status.Final() {
				ends++
			}
		}
	}
	if ends > 1 {
		fail("it was ended %d times", ends)
	}
}

// judgeCalls looks for calls that should not have been made, or are missing.
func (h *history) judgeCalls(fail func(string, ...any), silences map[string][]silence, sum *tally) {
	times, claims, refused, undone := map[store.Branch]int{}, 0, false, time.Time{}
	for _, l := range h.lines {
		if l.kind == "claimed" {
			claims++
		}
	}
	for _, c := range h.calls {
		times[c.branch]++
		refused = refused || c.answer == http.StatusConflict
		if c.branch.IsCompensation() && (undone.IsZero() || c.since.Before(undone)) {
			undone = c.since
		}
	}
	for b, n := range times {
		if n > 1+claims { // whoever takes a saga up calls a branch once
			fail("%s was called %d times, and it was taken over %d times", label(b), n, claims)
		}
	}
	succeeded := h.record.Status == store.StatusSucceeded
	switch {
	case succeeded && refused:
		fail("it succeeded, and an action was refused")
	case succeeded && !undone.IsZero():
		fail("it succeeded, and was compensated")
	case !succeeded && !refused && !h.timed:
		fail("it failed without a reason: %s", h.record.Note)
	}
	for i := range h.after {
		if succeeded && !h.doneBy(store.Action(i), time.Now()) {
			fail("it succeeded, and action %d never did", i)
		}
		if !succeeded && times[store.Action(i)] > 0 && !h.doneBy(store.Compensation(i), time.Now()) {
			fail("it failed, and step %d was begun and not compensated", i)
		}
	}
	for _, c := range h.calls {
		switch {
		case c.branch.IsCompensation():
			h.judgeOrder(fail, c)
		case undone.IsZero() || !c.since.After(undone):
		case h.decidedBefore(c, silences[c.by]):
			sum.CalledLate++
		default:
			fail("%s called %s %v after a compensation had begun", c.by, label(c.branch), c.since.Sub(undone))
		}
	}
}

// judgeOrder checks that what was begun after a step is undone before it.
func (h *history) judgeOrder(fail func(string, ...any), c *called) {
	for later, after := range h.after {
		begun := slices.ContainsFunc(h.calls, func(a *called) bool {
			return a.branch == store.Action(later) && a.since.Before(c.since)
		})
		if begun && slices.Contains(after, c.branch.Step()) && !h.doneBy(store.Compensation(later), c.began) {
			fail("step %d was undone before step %d", c.branch.Step(), later)
		}
	}
}

// decidedBefore reports whether a call may have been decided on before its
// process fell silent, to be made as soon as it woke up. Nobody can keep a process
// from that, but participants can tell (see package barrier).
func (h *history) decidedBefore(c *called, silences []silence) bool {
	var taken time.Time // when its process last took the saga up
	for _, l := range h.lines {
		if l.by == c.by && (l.kind == "created" || l.kind == "claimed") && l.at.After(taken) && l.at.Before(c.since) {
			taken = l.at
		}
	}
	repeated := slices.ContainsFunc(h.calls, func(a *called) bool {
		return a.by == c.by && a.branch == c.branch && a.since.After(taken) && a.since.Before(c.since)
	})
	return !repeated && slices.ContainsFunc(silences, func(s silence) bool {
		open := !slices.ContainsFunc(h.after[c.branch.Step()], func(i int) bool {
			return !h.doneBy(store.Action(i), s.from)
		})
		return open && !s.from.Before(taken) && !s.to.After(c.since)
	})
}

// doneBy reports whether a branch had succeeded by then.
func (h *history) doneBy(b store.Branch, then time.Time) bool {
	return slices.ContainsFunc(h.calls, func(c *called) bool {
		return c.branch == b && c.answer == http.StatusOK && !c.ended.After(then)
	})
}

// story tells what happened, in order.
func (h *history) story(silences map[string][]silence) string {
	type event struct {
		at   time.Time
		what string
	}
	var events []event
	add := func(at time.Time, what ...any) { events = append(events, event{at, fmt.Sprint(what...)}) }
	for _, l := range h.lines {
		add(l.at, l.by, " ", l)
	}
	for _, c := range h.calls {
		add(c.since, c.by, " calls ", label(c.branch))
		add(c.began, c.by, "'s ", label(c.branch), " begins")
		add(c.ended, c.by, "'s ", label(c.branch), " answers ", c.answer)
	}
	inOrder := func(a, b event) int { return a.at.Compare(b.at) }
	first, last := slices.MinFunc(events, inOrder).at, slices.MaxFunc(events, inOrder).at
	for by, list := range silences {
		for _, s := range list {
			if s.to.After(first) && s.from.Before(last) {
				add(s.from, by, " falls silent")
				add(s.to, by, " shows signs of life")
			}
		}
	}
	slices.SortFunc(events, inOrder)
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%7.1f ms  %s\n", e.at.Sub(first).Seconds()*1000, e.what)
	}
	return b.String()
}
