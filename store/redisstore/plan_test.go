package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/lua"
	"sagabench/store"
)

func planner() *Store {
	return &Store{cfg: Config{Prefix: "p", Shards: 2, Retention: time.Minute}, indexes: []string{"p:{0}", "p:{1}"}, slots: []int{0, 0}, nodes: &nodes{only: &node{}}}
}

// Whatever a batch is made of, its calls, read as the scripts do, say of every
// valid change once what is to be done.
func TestPlan_SaysEveryChangeOnce(t *testing.T) {
	t.Parallel()
	errBad := errors.New("not valid")
	rapid.Check(t, func(t *rapid.T) {
		s := planner()
		changes := make([]store.Change, rapid.IntRange(0, 100).Draw(t, "changes"))
		errs := make([]error, len(changes))
		want := map[string]string{}
		for i := range changes {
			changes[i] = drawChange(t, fmt.Sprint("g", i))
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				errs[i] = errBad
			} else {
				want[s.sagaKey(changes[i].Gid())] = told(changes[i])
			}
		}
		got := map[string]string{}
		for _, call := range s.plan(changes, errs) {
			var keys []string
			for key, what := range readCall(t, call) {
				got[key] = what
				keys = append(keys, key)
			}
			require.Len(t, call.changes, len(keys))
			for _, i := range call.changes {
				require.Contains(t, keys, s.sagaKey(changes[i].Gid()))
			}
		}
		require.Equal(t, want, got)
	})
}

func drawChange(t *rapid.T, gid string) store.Change {
	due := rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Minute}).Draw(t, "due")
	if rapid.Bool().Draw(t, "create") {
		return &store.Create{GID: gid, Body: []byte(gid), Steps: 2, Owner: "owner", Due: due}
	}
	c := &store.Transition{GID: gid, From: store.StatusSubmitted, To: store.StatusSubmitted, Due: due}
	c.Epoch = rapid.Uint32Range(1, 2).Draw(t, "epoch")
	if rapid.Bool().Draw(t, "ends") {
		c.To, c.Due = store.StatusSucceeded, 0
	}
	if rapid.Bool().Draw(t, "marked") {
		c.Marks = []store.SetMark{{Branch: store.Branch(rapid.IntRange(0, 1).Draw(t, "branch")), Mark: store.MarkSucceeded}}
	}
	c.Note = rapid.SampledFrom([]string{"", "a note"}).Draw(t, "note")
	c.Release = c.Due != 0 && rapid.Bool().Draw(t, "release")
	return c
}

// told is what a script must be told of a change.
func told(c store.Change) string {
	switch c := c.(type) {
	case *store.Create:
		return fmt.Sprint("save in ", millis(c.Due), ": ", encodeCreate(c))
	case *store.Transition:
		switch {
		case c.To.Final():
			return fmt.Sprint("complete for 60000: ", encodeTransition(c))
		case c.Due == 0 && c.Note == "":
			return "update: " + encodeTransition(c)
		default:
			due := map[time.Duration]string{-1: "0", 0: "", time.Second: "1000", time.Minute: "60000"}[c.Due]
			owner := map[bool]string{true: "        "}[c.Release]
			return "reschedule in " + due + " for " + owner + ": " + encodeTransition(c)
		}
	}
	return ""
}

// readCall reads the keys and arguments of a call as its script does, and gives
// what it says of each saga, by its key.
func readCall(t require.TestingT, call *scriptCall) map[string]string {
	said := map[string]string{}
	keys, args := call.keys, call.args
	next := func(list *[]string) string {
		require.NotEmpty(t, *list, "%s", call.script.Name)
		first := (*list)[0]
		*list = (*list)[1:]
		return first
	}
	retention := ""
	if call.script == &lua.Complete {
		retention = next(&args)
	}
	for len(keys) > 0 {
		index := ""
		if call.script != &lua.Update {
			index = next(&keys)
		}
		size, err := strconv.Atoi(next(&args))
		require.NoError(t, err)
		var what string
		switch call.script {
		case &lua.Save:
			what = "save in " + next(&args)
		case &lua.Complete:
			what = "complete for " + retention + ": " + next(&args)
		case &lua.Update:
			what = "update: " + next(&args)
		case &lua.Reschedule:
			what = "reschedule in " + next(&args) + " for " + next(&args) + ": " + next(&args)
		}
		for range size {
			key := next(&keys)
			require.NotContains(t, said, key)
			require.True(t, index == "" || index == key[:len(index)], "%s is not of the shard of %s", key, index)
			said[key] = what
			if call.script == &lua.Save {
				said[key] += ": " + next(&args)
			}
		}
	}
	require.Empty(t, args)
	return said
}

func TestPlan_AlikeChanges_ShareAGroup(t *testing.T) {
	t.Parallel()
	s := planner()
	var changes []store.Change
	for i := range 100 {
		changes = append(changes,
			&store.Create{GID: fmt.Sprint("a", i), Body: []byte("{}"), Steps: 2, Owner: "owner", Due: time.Second},
			&store.Transition{GID: fmt.Sprint("b", i), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted},
			&store.Transition{GID: fmt.Sprint("c", i), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded})
	}
	groups := map[string]int{}
	for _, call := range s.plan(changes, make([]error, len(changes))) {
		require.NotContains(t, groups, call.script.Name, "a call a script")
		groups[call.script.Name] = groupsOf(call)
	}
	require.Equal(t, map[string]int{"save": 2, "update": 1, "complete": 2}, groups)
}

// groupsOf counts the groups of a call: a due index, or all of an update, each.
func groupsOf(call *scriptCall) int {
	if call.script == &lua.Update {
		return len(call.args) / 2
	}
	return len(call.keys) - len(call.changes)
}

func TestPlan_TooManyForOneCall_AreSplit(t *testing.T) {
	t.Parallel()
	s := planner()
	changes := make([]store.Change, 2*lua.MaxSagas+1)
	for i := range changes {
		changes[i] = &store.Transition{GID: fmt.Sprint("g", i), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted}
	}
	var sizes []int
	for _, call := range s.plan(changes, make([]error, len(changes))) {
		sizes = append(sizes, len(readCall(t, call)))
	}
	require.Equal(t, []int{lua.MaxSagas, lua.MaxSagas, 1}, sizes)
}
