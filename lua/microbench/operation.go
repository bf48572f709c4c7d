package microbench

import (
	"fmt"
	"strconv"
	"strings"

	"sagabench/lua"
)

// operation is one of package lua's, with calls like those that the store makes:
// see redisstore.Apply and ClaimDue, and package lua for the convention.
type operation struct {
	script lua.Script
	saved  bool // its sagas are there before
	due    int  // whether they are in their due index before: see below
	leaves int  // and after
	// words are the KEYS, their number before them, and the ARGV of a call.
	words func(words []string, call group, s Shape) []string
	// items is how many items the answer has when all was done.
	items func(sagas int) int
	// branch is the one it marks or, if it reads no marks, 0: the actions before
	// it have succeeded.
	branch func(s Shape) int
	reads  int // 1 if it reads the mark of that branch
}

// Whether a saga is in its due index.
const (
	notDue = iota
	dueLater
	overdue
)

// operations are those of the scripts, which are in the order of lua.All.
func operations(scripts []lua.Script) []operation {
	return []operation{
		{script: scripts[0], leaves: dueLater, words: saveWords, items: none, branch: first},
		// It never looks into the due index, so its sagas need not be there.
		{script: scripts[1], saved: true, words: updateWords, items: none, branch: updated, reads: 1},
		{script: scripts[2], saved: true, due: dueLater, words: completeWords, items: none, branch: ended, reads: 1},
		{script: scripts[3], saved: true, due: dueLater, leaves: dueLater, words: rescheduleWords, items: none, branch: first},
		{script: scripts[4], saved: true, due: overdue, leaves: overdue, words: claimWords, items: pairs, branch: first},
	}
}

// What an answer holds when all was done.
func none(int) int        { return 0 }
func pairs(sagas int) int { return 1 + 2*sagas }

const (
	owner     = "microbch"
	nobody    = "        "
	setAside  = "600000" // ms; store.Quarantine
	epoch     = "00000001"
	retention = "3600000" // ms
	note      = `{"holds":[[0,1,10000]]}`
)

// key is the operation's, or that of a variant of it, at a shape.
func (o operation) key(variant string, s Shape) Key {
	return Key{Probe: o.script.Name, Variant: variant, Shape: s}
}

func saveWords(words []string, call group, s Shape) []string {
	words = appendKeys(words, call, true)
	saga := newSaga(s)
	words = append(words, strconv.Itoa(len(call.sagas)), strconv.FormatInt(lease.Milliseconds(), 10))
	for range call.sagas {
		words = append(words, saga)
	}
	return words
}

func updateWords(words []string, call group, s Shape) []string {
	words = appendKeys(words, call, false)
	return append(words, strconv.Itoa(len(call.sagas)), change('s', updated(s), "y", ""))
}

func completeWords(words []string, call group, s Shape) []string {
	words = append(appendKeys(words, call, true), retention)
	return append(words, strconv.Itoa(len(call.sagas)), change('S', ended(s), "y", ""))
}

// rescheduleWords put sagas off, as when a branch is not decided: until later,
// owned by nobody, with a note of how often it was tried.
func rescheduleWords(words []string, call group, _ Shape) []string {
	words = appendKeys(words, call, true)
	return append(words, strconv.Itoa(len(call.sagas)), strconv.FormatInt(lease.Milliseconds(), 10), nobody,
		change('s', 0, "", note))
}

// claimWords are of a lease that ends at once.
func claimWords(words []string, call group, _ Shape) []string {
	return append(appendKeys(words, call, true), owner, setAside, "0")
}

func appendKeys(words []string, call group, index bool) []string {
	if !index {
		return append(append(words, strconv.Itoa(len(call.sagas))), call.sagas...)
	}
	return append(append(words, strconv.Itoa(1+len(call.sagas)), call.index), call.sagas...)
}

func first(Shape) int { return 0 }

// updated is the action in the middle of those that a saga of so many steps
// marks one by one.
func updated(s Shape) int { return max(0, s.Steps-2) / 2 * 2 }

// ended is the last action, whose mark travels with the end.
func ended(s Shape) int { return 2 * (s.Steps - 1) }

// change is as change.lua describes it, from an epoch and status that a saga of
// stored has.
func change(to byte, first int, marks, kept string) string {
	if kept != "" {
		kept = "\x00" + kept
	}
	return fmt.Sprintf("%ss%c%04d%s%s", epoch, to, first, marks, kept)
}

// newSaga is the string of a saga from its owner on, as it is saved.
func newSaga(s Shape) string {
	return owner + epoch + "s" + strings.Repeat("-", 2*s.Steps) + " " + body(s)
}

// stored is the string of a saga that the operation finds.
func (o operation) stored(s Shape) string {
	const times = "1750000000000"
	done := o.branch(s)
	return times + times + owner + epoch + "s" + strings.Repeat("y-", done/2) + strings.Repeat("-", 2*s.Steps-done) + " " + body(s)
}

// head is what the operation reads of it with GETRANGE.
func (o operation) head(s Shape) string {
	return o.stored(s)[lua.AtOwner : lua.AtMarks+o.branch(s)+o.reads]
}

// body is like the coordinator's, of steps without a call.
func body(s Shape) string {
	step := "{}"
	if s.Payload > 0 {
		step = `{"payload":"` + strings.Repeat("x", s.Payload) + `"}`
	}
	return `{"steps":[` + strings.TrimSuffix(strings.Repeat(step+",", s.Steps), ",") + "]}"
}
