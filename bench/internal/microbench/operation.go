package microbench

import (
	"fmt"
	"strconv"
	"strings"

	"sagabench/lua"
)

// operation is one of package lua's, with calls like those of the Redis store: see
// redisstore.Apply and ClaimDue, and package lua for the calling convention.
type operation struct {
	script lua.Script
	exists bool     // its sagas exist before
	before dueState // of its sagas
	after  dueState
	// args appends the KEYS with their number, and the ARGV, of a call.
	args func(args []string, call callKeys, s Shape) []string
	// claims is set if it returns its sagas, and reads them from their first byte in case
	// they are unreadable.
	claims bool
	// branch is the one that it marks; the actions before it have succeeded. nil: the
	// operation reads no marks.
	branch func(s Shape) int
}

// dueState says whether sagas are in their due index.
type dueState int

const (
	notDue dueState = iota
	dueLater
	overdue
)

var operationsByName = map[string]operation{
	lua.Save.Name: {after: dueLater, args: saveArgs},
	// update never looks into the due index, so its sagas need not be in it.
	lua.Update.Name:     {exists: true, args: updateArgs, branch: updatedBranch},
	lua.Complete.Name:   {exists: true, before: dueLater, args: completeArgs, branch: lastBranch},
	lua.Reschedule.Name: {exists: true, before: dueLater, after: dueLater, args: rescheduleArgs},
	lua.Claim.Name:      {exists: true, before: overdue, after: overdue, args: claimArgs, claims: true},
}

// operationOf returns what a script does.
func operationOf(script lua.Script) operation {
	o := operationsByName[script.Name]
	o.script = script
	return o
}

const (
	owner     = "microbch"
	nobody    = "        "
	setAside  = "600000" // ms; store.Quarantine
	epoch     = "00000001"
	retention = "3600000" // ms
	note      = `{"holds":[[0,1,10000]]}`
)

var leaseMS = strconv.FormatInt(lease.Milliseconds(), 10)

func saveArgs(args []string, call callKeys, s Shape) []string {
	args = append(appendKeys(args, call, true), strconv.Itoa(len(call.sagas)), leaseMS)
	saga := newSaga(s)
	for range call.sagas {
		args = append(args, saga)
	}
	return args
}

func updateArgs(args []string, call callKeys, s Shape) []string {
	return append(appendKeys(args, call, false), strconv.Itoa(len(call.sagas)), change('s', updatedBranch(s), "y", ""))
}

func completeArgs(args []string, call callKeys, s Shape) []string {
	return append(appendKeys(args, call, true), retention, strconv.Itoa(len(call.sagas)), change('S', lastBranch(s), "y", ""))
}

// rescheduleArgs are those of sagas with an undecided branch: due later, without an
// owner, with a note of the attempts.
func rescheduleArgs(args []string, call callKeys, _ Shape) []string {
	return append(appendKeys(args, call, true), strconv.Itoa(len(call.sagas)), leaseMS, nobody, change('s', 0, "", note))
}

// claimArgs have a lease that ends at once.
func claimArgs(args []string, call callKeys, _ Shape) []string {
	return append(appendKeys(args, call, true), owner, setAside, "0")
}

func appendKeys(args []string, call callKeys, withIndex bool) []string {
	if !withIndex {
		return append(append(args, strconv.Itoa(len(call.sagas))), call.sagas...)
	}
	return append(append(args, strconv.Itoa(1+len(call.sagas)), call.index), call.sagas...)
}

// updatedBranch is an action in the middle of the saga.
func updatedBranch(s Shape) int { return max(0, s.Steps-2) / 2 * 2 }

// lastBranch is the last action.
func lastBranch(s Shape) int { return 2 * (s.Steps - 1) }

// change is described in change.lua. Owner, epoch and status before it are those of stored.
func change(to byte, first int, marks, note string) string {
	if note != "" {
		note = "\x00" + note
	}
	return fmt.Sprintf("%s%ss%c%04d%s%s", owner, epoch, to, first, marks, note)
}

// newSaga is the string of a new saga from its owner on.
func newSaga(s Shape) string {
	return owner + epoch + "s" + strings.Repeat("-", 2*s.Steps) + " " + body(s)
}

// stored is the string of a saga that the operation finds.
func (o operation) stored(s Shape) string {
	const times = "1750000000000"
	done := 0
	if o.branch != nil {
		done = o.branch(s)
	}
	return times + times + owner + epoch + "s" + strings.Repeat("y-", done/2) + strings.Repeat("-", 2*s.Steps-done) + " " + body(s)
}

// head is the part of stored that the operation reads with GETRANGE.
func (o operation) head(s Shape) string {
	if o.claims {
		return o.stored(s)[:min(2044, len(o.stored(s)))]
	}
	end := lua.AtMarks
	if o.branch != nil {
		end += o.branch(s) + 1
	}
	return o.stored(s)[lua.AtOwner:end]
}

// body is like the coordinator's, of steps without a call.
func body(s Shape) string {
	step := "{}"
	if s.Payload > 0 {
		step = `{"payload":"` + strings.Repeat("x", s.Payload) + `"}`
	}
	return `{"steps":[` + strings.TrimSuffix(strings.Repeat(step+",", s.Steps), ",") + "]}"
}
