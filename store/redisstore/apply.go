package redisstore

import (
	"cmp"
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

// group is the changes of one batch that a script does the same thing for: same
// due index, same arguments.
type group struct {
	script  lua.Script
	shard   int    // -1 where the script touches no due index
	delay   string // ms until due; save and reschedule only
	owner   string // to be written; reschedule only
	change  string // as change.lua describes it; not for save
	changes []int
}

// same reports whether a change that belongs into o may join g.
func (g *group) same(o *group) bool {
	return g.script.SHA1 == o.script.SHA1 && g.shard == o.shard && g.delay == o.delay && g.owner == o.owner &&
		g.change == o.change && len(g.changes) < lua.MaxSagas
}

// groups puts the valid changes into as few groups as there can be.
func (s *Store) groups(changes []store.Change, errs []error) []*group {
	var groups []*group
next:
	for i, change := range changes {
		if errs[i] != nil {
			continue
		}
		wanted := s.groupOf(change)
		// From the end: a change is mostly like one of the last.
		for n := len(groups) - 1; n >= 0 && n >= len(groups)-maxLookBack; n-- {
			if groups[n].same(&wanted) {
				groups[n].changes = append(groups[n].changes, i)
				continue next
			}
		}
		wanted.changes = []int{i}
		groups = append(groups, &wanted)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.script.Name, b.script.Name) })
	return groups
}

// maxLookBack bounds the search for a group where no two changes are alike.
const maxLookBack = 64

func (s *Store) groupOf(change store.Change) group {
	switch c := change.(type) {
	case *store.Create:
		return group{script: lua.Save, shard: s.shard(c.GID), delay: millis(max(c.Due, 0))}
	case *store.Transition:
		g := group{script: lua.Reschedule, shard: s.shard(c.GID), change: encodeTransition(c)}
		switch {
		case c.To.Final():
			g.script = lua.Complete
		case c.To == c.From && c.Due == 0 && c.Note == "": // nor a Release, which has a Due
			g.script, g.shard = lua.Update, -1
		default:
			g.delay = encodeDue(c.Due)
			if c.Release {
				g.owner = padOwner("")
			}
		}
		return g
	default:
		panic(fmt.Sprintf("redis: a change of type %T: package store has two", change))
	}
}

// plannedCall is a script call and the changes it makes, by their number in
// the batch, in the order in which the script counts them.
type plannedCall struct {
	scriptCall
	changes []int
}

// plan makes a call of the groups of one script, or more where they are too
// many for one.
func (s *Store) plan(changes []store.Change, errs []error) (plan []*plannedCall) {
	for _, g := range s.groups(changes, errs) {
		var call *plannedCall
		if n := len(plan); n > 0 && plan[n-1].script.SHA1 == g.script.SHA1 && len(plan[n-1].changes)+len(g.changes) <= lua.MaxSagas {
			call = plan[n-1]
		} else {
			call = &plannedCall{scriptCall: scriptCall{script: g.script}}
			if g.script.SHA1 == lua.Complete.SHA1 {
				call.args = append(call.args, millis(s.cfg.Retention))
			}
			plan = append(plan, call)
		}
		s.add(call, g, changes)
	}
	return plan
}

func (s *Store) add(call *plannedCall, g *group, changes []store.Change) {
	call.changes = append(call.changes, g.changes...)
	if g.shard >= 0 {
		call.keys = append(call.keys, s.indexKey(g.shard))
	}
	call.args = append(call.args, strconv.Itoa(len(g.changes)))
	switch g.script.SHA1 {
	case lua.Save.SHA1:
		call.args = append(call.args, g.delay)
	case lua.Reschedule.SHA1:
		call.args = append(call.args, g.delay, g.owner, g.change)
	default:
		call.args = append(call.args, g.change)
	}
	for _, i := range g.changes {
		call.keys = append(call.keys, s.sagaKey(changes[i].Gid()))
		if c, ok := changes[i].(*store.Create); ok {
			call.args = append(call.args, encodeCreate(c))
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
	b.WriteString(string(store.NewMarks(c.Steps)))
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

func appendEpoch(b []byte, epoch uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[epoch>>shift&15])
	}
	return b
}

// padOwner fills an owner's fixed place in the string of a saga.
func padOwner(owner string) string { return (owner + "        ")[:store.MaxOwnerBytes] }

// millis rounds up, so that nothing is due, or gone, before its time.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}
