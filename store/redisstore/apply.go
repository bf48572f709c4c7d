package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sagabench/lua"
	"sagabench/store"
)

// Apply implements store.Applier in one round trip.
func (s *Store) Apply(ctx context.Context, changes []store.Change) []error {
	errs, _ := store.CheckBatch(changes)
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

// plannedCall is a script call and the changes it makes, by their number in
// the batch, in the order in which the script counts them.
type plannedCall struct {
	scriptCall
	changes []int
}

// plan puts the valid changes into as few script calls as there are scripts,
// unless there are more than one call may take.
func (s *Store) plan(changes []store.Change, errs []error) []*plannedCall {
	// By script, then by shard: the changes of one shard are one group of KEYS.
	type bucket struct {
		script lua.Script
		shards [][]int
		n      int
	}
	var buckets [4]bucket
	for i, change := range changes {
		if errs[i] != nil {
			continue
		}
		kind, script := operation(change)
		b := &buckets[kind]
		if b.shards == nil {
			b.script, b.shards = script, make([][]int, s.cfg.Shards)
		}
		shard := s.shard(change.Gid())
		b.shards[shard] = append(b.shards[shard], i)
		b.n++
	}
	var plan []*plannedCall
	for _, b := range buckets {
		for shard, numbers := range b.shards {
			for len(numbers) > 0 {
				if n := len(plan); n == 0 || plan[n-1].script.SHA1 != b.script.SHA1 || len(plan[n-1].changes) == lua.MaxSagas {
					plan = append(plan, s.newCall(b.script, b.n))
				}
				call := plan[len(plan)-1]
				take := min(len(numbers), lua.MaxSagas-len(call.changes))
				s.addGroup(call, shard, numbers[:take], changes)
				numbers = numbers[take:]
			}
		}
	}
	return plan
}

// operation is which script makes a change, with a number to sort by.
func operation(change store.Change) (int, lua.Script) {
	t, ok := change.(*store.Transition)
	switch {
	case !ok:
		return 0, lua.Save
	case t.To.Final():
		return 1, lua.Complete
	case t.To == t.From && t.Due == 0 && t.Reason == "":
		return 2, lua.Update
	default:
		return 3, lua.Reschedule
	}
}

func (s *Store) newCall(script lua.Script, sagas int) *plannedCall {
	call := &plannedCall{changes: make([]int, 0, sagas)}
	call.script = script
	call.keys = make([]string, 0, sagas+min(sagas, s.cfg.Shards))
	call.args = make([]string, 0, 2*sagas+min(sagas, s.cfg.Shards))
	if script.SHA1 == lua.Complete.SHA1 {
		call.args = append(call.args, millis(s.cfg.Retention))
	}
	return call
}

func (s *Store) addGroup(call *plannedCall, shard int, numbers []int, changes []store.Change) {
	if call.script.SHA1 != lua.Update.SHA1 { // which does not touch the due index
		call.keys = append(call.keys, s.indexKey(shard))
		call.args = append(call.args, strconv.Itoa(len(numbers)))
	}
	for _, i := range numbers {
		call.keys = append(call.keys, s.sagaKey(changes[i].Gid()))
		switch c := changes[i].(type) {
		case *store.Create:
			call.args = append(call.args, millis(max(c.Due, 0)), encodeCreate(c))
		case *store.Transition:
			if call.script.SHA1 == lua.Reschedule.SHA1 {
				call.args = append(call.args, encodeDue(c.Due))
			}
			call.args = append(call.args, encodeTransition(c))
		}
	}
	call.changes = append(call.changes, numbers...)
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

// encodeCreate is save.lua's argument: owner, marks, blank, body.
func encodeCreate(c *store.Create) string {
	var b strings.Builder
	b.Grow(store.MaxOwnerBytes + 2*c.Steps + 1 + len(c.Body))
	b.WriteString(padOwner(c.Owner))
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
	b := make([]byte, 0, 14+int(last-first+1)+1+len(t.Reason))
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
	if t.Reason != "" {
		b = append(b, 0)
		b = append(b, t.Reason...)
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
