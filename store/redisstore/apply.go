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

// Apply implements store.Applier in one round trip to each server that it concerns.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs := store.CheckBatch(changes)
	if err := s.begin(ctx); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	defer s.calls.RUnlock()
	calls := s.plan(changes, errs)
	s.run(ctx, calls)
	for _, call := range calls {
		s.setErrors(ctx, call, errs)
	}
	return errs
}

// plan returns the script calls that make the valid changes. Each call takes all
// changes of its script among lua.MaxSagas changes of the batch, on a cluster those of
// one shard.
func (s *Store) plan(changes []store.Change, errs []error) []*scriptCall {
	calls := make([]*scriptCall, 0, 4)
	for first := 0; first < len(changes); first += lua.MaxSagas {
		groups := store.NewGroups(len(changes))
		for i := first; i < min(first+lua.MaxSagas, len(changes)); i++ {
			if errs[i] == nil {
				groups = groups.Add(i, changes[i], s.groupShard(changes[i]))
			}
		}
		if s.nodes.only != nil {
			calls = s.appendCalls(calls, changes, groups)
			continue
		}
		all := groups.All
		slices.SortStableFunc(all, func(a, b store.Group) int { return a.Shard - b.Shard })
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].Shard == all[0].Shard {
				n++
			}
			groups.All, all = all[:n], all[n:]
			calls = s.appendCalls(calls, changes, groups)
		}
	}
	return calls
}

// anyShard is the shard of changes that need not be grouped by it.
const anyShard = -1

// groupShard returns the shard of a change. On one server it is anyShard if the change
// touches no due index.
func (s *Store) groupShard(change store.Change) int {
	if s.nodes.only != nil && scriptOf(change) == &lua.Update {
		return anyShard
	}
	return s.shard(change.Gid())
}

// scriptOf returns the script that makes a change. It depends only on the operation,
// so a group of changes has one script.
func scriptOf(change store.Change) *lua.Script {
	t, ok := change.(*store.Transition)
	switch {
	case !ok:
		return &lua.Save
	case t.To.Final():
		return &lua.Complete
	case t.To == t.From && t.Due == 0 && t.Note == "": // nor a Release, which has a Due
		return &lua.Update
	default:
		return &lua.Reschedule
	}
}

// appendCalls appends one call per script that the groups need.
func (s *Store) appendCalls(calls []*scriptCall, changes []store.Change, groups store.Groups) []*scriptCall {
	for _, script := range [...]*lua.Script{&lua.Save, &lua.Update, &lua.Complete, &lua.Reschedule} {
		count, sagas := 0, 0
		for _, g := range groups.All {
			if scriptOf(g.Change) == script {
				count++
				sagas += g.Len
			}
		}
		if sagas == 0 {
			continue
		}
		call := &scriptCall{
			script:  script,
			keys:    make([]string, 0, count+sagas),
			args:    make([]string, 0, 1+4*count+sagas),
			changes: make([]int, 0, sagas),
		}
		call.slot = s.slots[max(0, groups.All[0].Shard)]
		if script == &lua.Complete {
			call.args = append(call.args, millis(s.cfg.Retention))
		}
		for _, g := range groups.All {
			if scriptOf(g.Change) == script {
				before := len(call.changes)
				call.changes = groups.AppendIndexes(call.changes, g)
				s.appendGroup(call, g)
				for _, i := range call.changes[before:] {
					call.keys = append(call.keys, s.sagaKey(changes[i].Gid()))
					if c, ok := changes[i].(*store.Create); ok {
						call.args = append(call.args, encodeCreate(c))
					}
				}
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// appendGroup appends the due index of a group and the operation.
func (s *Store) appendGroup(call *scriptCall, g store.Group) {
	if call.script != &lua.Update {
		call.keys = append(call.keys, s.indexKey(g.Shard))
	}
	call.args = append(call.args, strconv.Itoa(g.Len))
	switch c := g.Change.(type) {
	case *store.Create:
		call.args = append(call.args, millis(c.Due))
	case *store.Transition:
		if call.script == &lua.Reschedule {
			due, owner := "", "" // empty keeps what is there
			if c.Due != 0 {
				due = millis(c.Due)
			}
			if c.Release {
				owner = blankOwner
			}
			call.args = append(call.args, due, owner)
		}
		call.args = append(call.args, encodeTransition(c))
	}
}

// setErrors sets the errors of a call's changes from its reply.
func (s *Store) setErrors(ctx context.Context, call *scriptCall, errs []error) {
	refused, err := call.refusals()
	if err != nil {
		err = s.wrapError(ctx, call.script.Name, err)
		for _, i := range call.changes {
			errs[i] = err
		}
		return
	}
	for n := 0; n < len(refused); n += 2 {
		errs[call.changes[refused[n]-1]] = refusal(refused[n+1])
	}
}

// refusals parses the reply of a script that changes sagas: pairs of the position of a
// refused saga, from 1, and why.
func (c *scriptCall) refusals() ([]int64, error) {
	if c.err != nil {
		return nil, c.err
	}
	pairs, err := c.cmd.Int64Slice()
	if err != nil {
		return nil, err
	}
	valid := len(pairs)%2 == 0
	for n := 0; n < len(pairs); n += 2 {
		valid = valid && 1 <= pairs[n] && pairs[n] <= int64(len(c.changes))
	}
	if !valid {
		return nil, c.malformed()
	}
	return pairs, nil
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
		return fmt.Errorf("redis: a script refused a saga with the unknown code %d", code)
	}
}

// encodeCreate returns the string of a new saga from its owner on.
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

// encodeTransition returns the change text that change.lua describes.
func encodeTransition(t *store.Transition) string {
	first, last := store.Branch(0), store.Branch(-1)
	if len(t.Marks) > 0 {
		first, last = t.Marks[0].Branch, t.Marks[0].Branch
		for _, m := range t.Marks[1:] {
			first, last = min(first, m.Branch), max(last, m.Branch)
		}
	}
	b := make([]byte, 0, 22+int(last-first+1)+1+len(t.Note))
	if t.Owner == "" {
		b = append(b, anyOwner...)
	} else {
		b = append(b, t.Owner...)
		b = append(b, blankOwner[len(t.Owner):]...)
	}
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

func appendEpoch(b []byte, epoch uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[epoch>>shift&15])
	}
	return b
}

// blankOwner has the fixed length of the owner in a saga's string,
// store.MaxOwnerBytes.
const blankOwner = "        "

// anyOwner is what a change expects that does not name the owner.
const anyOwner = "........"

func padOwner(owner string) string { return (owner + blankOwner)[:len(blankOwner)] }

func millis(d time.Duration) string { return strconv.FormatInt(store.Millis(d), 10) }
