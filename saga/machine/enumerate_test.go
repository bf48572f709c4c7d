package machine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/saga/machine"
	"sagabench/store"
)

var update = flag.Bool("update", false, "write the golden files")

// combination is a saga of three steps, and all that happens to it.
type combination struct {
	plan     *machine.Plan
	waitsFor [3][]int

	// What the branches answer: y yes, n refused, o ongoing, u no answer; the last
	// of them again and again.
	actions       [3]string
	compensations string // each of them
	answers       order

	// When it runs out of time: before event number late, from 0, or before the
	// first answer of the action of step lateFor; -1 for neither. An event is an
	// answer, or some that come together, or that the saga is taken up.
	late, lateFor int
}

// five are what the action of a step may come to: success; refusal; ongoing once,
// and no answer once, before success; no answer ever.
var five = []string{"y", "n", "oy", "uy", "u"}

// order is in which order those answer who are under way.
type order string

const (
	forward  order = "the longest under way answers first"
	backward order = "the last called answers first"
	together order = "all under way answer at once"
)

// split tells those who answer next from the others.
func (o order) split(underWay []store.Branch) (next, rest []store.Branch) {
	n := len(underWay)
	switch {
	case n == 0 || o == together:
		return underWay, nil
	case o == backward:
		return underWay[n-1:], underWay[:n-1]
	default:
		return underWay[:1], underWay[1:]
	}
}

// reaction is what follows from events.
type reaction struct {
	calls     []store.Branch
	undone    []int // steps whose compensations have succeeded
	ended, ok bool
}

// ending is how a saga ends.
type ending struct {
	ok     bool
	undone string // steps, in the order in which they were compensated
	events int
}

func (e ending) String() string {
	if e.ok {
		return "ok" + e.undone
	}
	return "undo " + e.undone
}

// play has somebody run the saga.
func (c *combination) play(react func([]machine.Event) reaction) (end ending) {
	var underWay []store.Branch
	var answered [6]int
	for late := false; ; end.events++ {
		if end.events > 100 {
			return ending{undone: "never"}
		}
		var events []machine.Event
		next, rest := c.answers.split(underWay)
		lateFor := func(b store.Branch) bool { return b == store.Action(c.lateFor) && answered[b] == 0 }
		if !late && (end.events == c.late || slices.ContainsFunc(next, lateFor)) {
			late = true
			events = append(events, abort)
			end.events--
		} else {
			for _, b := range next {
				events = append(events, answer(b, c.says(b, answered[b])))
				answered[b]++
			}
			underWay = slices.Clone(rest)
		}
		now := react(events)
		for _, i := range now.undone {
			end.undone += string(rune('0' + i))
		}
		if now.ended {
			end.ok = now.ok
			return end
		}
		underWay = append(underWay, now.calls...)
	}
}

func (c *combination) says(b store.Branch, i int) machine.Outcome {
	answers := c.compensations
	if !b.IsCompensation() {
		answers = c.actions[b.Step()]
	}
	return machine.Outcome(1 + strings.IndexByte("ynou", answers[min(i, len(answers)-1)]))
}

// byMachine runs it as Decide says.
func (c *combination) byMachine() ending {
	s := submitted(3, 0)
	return c.play(func(events []machine.Event) (now reaction) {
		d := machine.Decide(c.plan, s, events...)
		for _, m := range d.Marks {
			if m.Branch.IsCompensation() {
				now.undone = append(now.undone, m.Branch.Step())
			}
		}
		s = d.State
		now.calls, now.ended, now.ok = d.Calls, s.Status.Final(), s.Status == store.StatusSucceeded
		return now
	})
}

// byReference runs it as the rules say.
func (c *combination) byReference() ending {
	r := reference{waitsFor: c.waitsFor, limited: c.plan.Backoff.Limit > 0}
	return c.play(r.react)
}

// ordered is a saga of three steps that run one after another, if waitsFor is nil,
// and otherwise wait for each other as it says. All pauses are equally long.
func ordered(waitsFor *[3][]int, limit int) combination {
	s := newSaga(3)
	c := combination{waitsFor: [3][]int{1: {0}, 2: {1}}, compensations: "y", answers: forward, late: -1, lateFor: -1}
	if waitsFor != nil {
		c.waitsFor = *waitsFor
		s = concurrent(c.waitsFor[:]...)
	}
	s.RetryInterval, s.RetryLimit = 1, limit // every pause is the shortest there is
	c.plan = planOf(s)
	c.plan.Backoff.Max = s.RetryInterval
	return c
}

// everyOrder is each in which three steps may wait for each other.
func everyOrder(t *testing.T) (all []*[3][]int) {
	for edges := range 1 << 6 {
		var waitsFor [3][]int
		for bit, e := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}} {
			if edges>>bit&1 == 1 {
				waitsFor[e[0]] = append(waitsFor[e[0]], e[1])
			}
		}
		if concurrent(waitsFor[:]...).Validate() == nil {
			all = append(all, &waitsFor)
		}
	}
	require.Len(t, all, 25, "as many as there are acyclic graphs of three numbered nodes")
	return all
}

// everyFate calls f with each of what three actions may come to.
func everyFate(f func([3]string)) {
	for _, a := range five {
		for _, b := range five {
			for _, c := range five {
				f([3]string{a, b, c})
			}
		}
	}
}

// TestDecide_Enumerated plays every saga of three steps: each order, each fate of
// each action, answers in each order, with and without a limit of retries, and out
// of time at every moment; at some of them also with unwilling compensations. Each
// must end as the reference says.
func TestDecide_Enumerated(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, waitsFor := range append(everyOrder(t), nil) {
		everyFate(func(fates [3]string) {
			for _, answers := range []order{forward, backward, together} {
				c := ordered(waitsFor, 2)
				c.actions, c.answers = fates, answers
				events := c.judge(t)
				for c.late = range events + 1 {
					c.judge(t)
				}
				c.compensations = "unouy"
				for c.late = -1; c.late <= events; c.late += 3 {
					c.judge(t)
				}
				if slices.Contains(fates[:], "u") { // without a limit it would go on for ever
					c := ordered(waitsFor, 0)
					c.actions, c.answers = fates, answers
					for c.late = range 12 {
						c.judge(t)
					}
				}
			}
		})
	}
}

// judge has the saga run in both ways, and returns in how many events it ended.
func (c *combination) judge(t *testing.T) int {
	got, want := c.byMachine(), c.byReference()
	if got != want || got.events == 0 && c.late != 0 {
		t.Fatalf("%+v: ends as %+v, should as %+v", c, got, want)
	}
	return got.events
}

// TestDecide_Enumerated_Golden shows how a part of them end, for people to read,
// and so that a change is seen.
func TestDecide_Enumerated_Golden(t *testing.T) {
	t.Parallel()
	names := []string{"serial", "free", "1<0", "2<0,1", "1<0 2<0", "1<0 2<1", "0<1 1<2"}
	waitsFor := []*[3][]int{nil, {}, {1: {0}}, {2: {0, 1}}, {1: {0}, 2: {0}}, {1: {0}, 2: {1}}, {0: {1}, 1: {2}}}
	var b strings.Builder
	b.WriteString(`How sagas of three steps end. Written by go test ./saga -run Golden -update

A row is what the actions of the steps 0, 1 and 2 come to: y success, n refusal,
o ongoing and then success, u no answer and then success, x never an answer, for
which the saga is aborted after two retries.
A column is an order: "2<0,1" is step 2 waiting for steps 0 and 1.
"ok" is success, "undo 20" failure, with step 2 and then step 0 compensated.
`)
	table := func(title string, edit func(*combination)) {
		fmt.Fprintf(&b, "\n%s\n\n", title)
		line := fmt.Sprintf("%-5s", "")
		for _, name := range names {
			line += fmt.Sprintf("%-10s", name)
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		everyFate(func(fates [3]string) {
			line := ""
			for _, fate := range fates {
				line += map[string]string{"y": "y", "n": "n", "oy": "o", "uy": "u", "u": "x"}[fate]
			}
			line = fmt.Sprintf("%-5s", line)
			for i := range names {
				c := ordered(waitsFor[i], 2)
				c.actions = fates
				edit(&c)
				line += fmt.Sprintf("%-10v", c.byMachine())
			}
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
		})
	}
	table("In time; "+string(forward), func(*combination) {})
	table("In time; "+string(backward), func(c *combination) { c.answers = backward })
	for i := range 3 {
		table(fmt.Sprintf("Out of time when step %d is about to answer first; %s", i, forward), func(c *combination) { c.lateFor = i })
	}

	path := filepath.Join("testdata", "outcomes.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"))
}
