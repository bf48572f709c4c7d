package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/lua"
	"sagabench/store"
)

// Apply implements store.Applier in one round trip.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	if err := s.enter(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer s.calls.RUnlock()
	plan := s.plan(changes, errs)
	calls := make([]*scriptCall, len(plan))
	for i, p := range plan {
		calls[i] = &p.scriptCall
	}
	if len(calls) > 0 {
		s.run(ctx, calls)
	}
	for _, p := range plan {
		s.settle(ctx, p, errs)
	}
	return errs
}

// plannedCall is a script call and the changes it makes.
type plannedCall struct {
	scriptCall
	groups  []group
	changes []int // by their number in the batch, in the order in which the script counts them
	size    int   // how many there will be
}

// group is the changes of a call that the script does the same thing for: same
// due index, same arguments. As nobody knows beforehand how many there will be,
// they are linked: see plan.
type group struct {
	shard       int          // -1 where the script touches no due index
	like        store.Change // one of them
	first, last int          // by their number in the batch
	size        int
}

// plan makes a call of the valid changes of one script, or more where they are
// too many for one, with as few groups as there can be.
func (s *Store) plan(changes []store.Change, errs []error) []*plannedCall {
	plan := make([]*plannedCall, 0, 4)
	next := make([]int, len(changes)) // of each change, the one that follows it in its group
	for i, change := range changes {
		if errs[i] != nil {
			continue
		}
		script, shard := s.scriptOf(change)
		n := len(plan) - 1
		for n >= 0 && (plan[n].script != script || plan[n].size == lua.MaxSagas) {
			n--
		}
		if n < 0 {
			n = len(plan)
			plan = append(plan, &plannedCall{scriptCall: scriptCall{script: script}, groups: make([]group, 0, 8)})
		}
		plan[n].join(i, change, shard, next)
	}
	for _, call := range plan {
		s.fill(call, changes, next)
	}
	return plan
}

// scriptOf is what makes a change, and the shard whose due index that touches, or
// -1.
func (s *Store) scriptOf(change store.Change) (script *lua.Script, shard int) {
	switch c := change.(type) {
	case *store.Create:
		return &lua.Save, s.shard(c.GID)
	case *store.Transition:
		switch {
		case c.To.Final():
			return &lua.Complete, s.shard(c.GID)
		case c.To == c.From && c.Due == 0 && c.Note == "": // nor a Release, which has a Due
			return &lua.Update, -1
		default:
			return &lua.Reschedule, s.shard(c.GID)
		}
	default:
		panic(fmt.Sprintf("redis: a change of type %T: package store has two", change))
	}
}

// join adds change i of the batch to the group that it belongs to.
func (call *plannedCall) join(i int, change store.Change, shard int, next []int) {
	call.size++
	// From the end: a change is mostly like one of the last.
	for n := len(call.groups) - 1; n >= 0 && n >= len(call.groups)-maxLookBack; n-- {
		if g := &call.groups[n]; g.shard == shard && alike(g.like, change) {
			next[g.last] = i
			g.last = i
			g.size++
			return
		}
	}
	call.groups = append(call.groups, group{shard: shard, like: change, first: i, last: i, size: 1})
}

// maxLookBack bounds the search for a group where no two changes are alike.
const maxLookBack = 64

// alike reports whether a script is told to do the same by two changes that it
// makes.
func alike(a, b store.Change) bool {
	if a, ok := a.(*store.Create); ok {
		return a.Due == b.(*store.Create).Due
	}
	x, y := a.(*store.Transition), b.(*store.Transition)
	return x.Epoch == y.Epoch && x.From == y.From && x.To == y.To && slices.Equal(x.Marks, y.Marks) &&
		x.Due == y.Due && x.Release == y.Release && x.Note == y.Note
}

// fill writes the keys and arguments of a call.
func (s *Store) fill(call *plannedCall, changes []store.Change, next []int) {
	call.keys = make([]string, 0, len(call.groups)+call.size)
	call.args = make([]string, 0, 1+4*len(call.groups)+call.size)
	call.changes = make([]int, 0, call.size)
	if call.script == &lua.Complete {
		call.args = append(call.args, millis(s.cfg.Retention))
	}
	for _, g := range call.groups {
		if g.shard >= 0 {
			call.keys = append(call.keys, s.indexKey(g.shard))
		}
		call.args = append(call.args, strconv.Itoa(g.size))
		switch c := g.like.(type) {
		case *store.Create:
			call.args = append(call.args, millis(max(c.Due, 0)))
		case *store.Transition:
			if call.script == &lua.Reschedule {
				call.args = append(call.args, encodeDue(c.Due), encodeOwner(c))
			}
			call.args = append(call.args, encodeTransition(c))
		}
		for i, n := g.first, g.size; n > 0; i, n = next[i], n-1 {
			call.changes = append(call.changes, i)
			call.keys = append(call.keys, s.sagaKey(changes[i].Gid()))
			if c, ok := changes[i].(*store.Create); ok {
				call.args = append(call.args, encodeCreate(c))
			}
		}
	}
}

// settle turns a call's answer into the errors of its changes.
func (s *Store) settle(ctx context.Context, call *plannedCall, errs []error) {
	refused, err := call.cmd.Int64Slice()
	if err != nil {
		err = s.failure(ctx, call.script.Name, err)
		for _, i := range call.changes {
			errs[i] = err
		}
		return
	}
	for n := 0; n+1 < len(refused); n += 2 {
		errs[call.changes[refused[n]-1]] = refusal(refused[n+1])
	}
}

func refusal(code int64) error {
	switch code {
	case lua.RefusedExists:
		return store.ErrExists
	case lua.RefusedDuplicate:
		return store.ErrDuplicate
	case lua.RefusedConflict:
		return store.ErrConflict
	case lua.RefusedNotFound:
		return store.ErrNotFound
	case lua.RefusedBranch:
		return fmt.Errorf("%w: branch: the saga has fewer", store.ErrInvalid)
	default:
		return fmt.Errorf("redis: a script refused a saga with code %d, which is none of ours", code)
	}
}

// encodeCreate is the string of a new saga from its owner on.
func encodeCreate(c *store.Create) string {
	var b strings.Builder
	b.Grow(lua.AtMarks - lua.AtOwner + 2*c.Steps + 1 + len(c.Body))
	b.WriteString(padOwner(c.Owner))
	b.WriteString("00000001")
	b.WriteByte(byte(store.StatusSubmitted))
	for range 2 * c.Steps {
		b.WriteByte(byte(store.MarkPending))
	}
	b.WriteByte(' ')
	b.Write(c.Body)
	return b.String()
}

// encodeTransition is a change as change.lua describes it.
func encodeTransition(t *store.Transition) string {
	first, last := store.Branch(0), store.Branch(-1)
	if len(t.Marks) > 0 {
		first, last = t.Marks[0].Branch, t.Marks[0].Branch
		for _, m := range t.Marks[1:] {
			first, last = min(first, m.Branch), max(last, m.Branch)
		}
	}
	b := make([]byte, 0, 14+int(last-first+1)+1+len(t.Note))
	b = appendEpoch(b, t.Epoch)
	b = append(b, byte(t.From), byte(t.To))
	b = append(b, byte('0'+first/1000), byte('0'+first/100%10), byte('0'+first/10%10), byte('0'+first%10))
	patch := len(b)
	for range last - first + 1 {
		b = append(b, lua.Untouched)
	}
	for _, m := range t.Marks {
		b[patch+int(m.Branch-first)] = byte(m.Mark)
	}
	if t.Note != "" {
		b = append(b, 0)
		b = append(b, t.Note...)
	}
	return string(b)
}

// encodeDue is reschedule.lua's delay: empty leaves the due time as it is.
func encodeDue(due time.Duration) string {
	if due == 0 {
		return ""
	}
	return millis(max(due, 0))
}

// encodeOwner is reschedule.lua's owner: empty leaves it as it is.
func encodeOwner(t *store.Transition) string {
	if t.Release {
		return blankOwner
	}
	return ""
}

func appendEpoch(b []byte, epoch uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[epoch>>shift&15])
	}
	return b
}

// blankOwner is store.MaxOwnerBytes long, an owner's fixed place in the string of
// a saga, which padOwner fills.
const blankOwner = "        "

func padOwner(owner string) string { return (owner + blankOwner)[:len(blankOwner)] }

// millis rounds up, so that nothing is due, or gone, before its time.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
