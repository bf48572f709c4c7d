package saga

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sagabench/store"
)

// A store may lose what it has acknowledged: by a crash, if it does not sync every
// write, or by a failover to a replica that is behind. A coordinator notices when a
// write of its own is refused or not answered, or when it takes up a saga that it
// knows to be aborting. It writes again what it knows: that a saga is aborting, so
// that no action is called once a compensation may have been, and its marks.

// gone says what is known of a saga that is not there any more, and how it ended
// nobody can tell.
func (c *Coordinator) gone(r *run, t *store.Transition, unsure bool, err error) error {
	last := fmt.Sprintf("%v was not written", t.To)
	if unsure {
		last = fmt.Sprintf("whether %v was written is not known", t.To)
	}
	keep := c.store.Retention()
	if keep == 0 {
		return fmt.Errorf("%w: %s, and then the saga was gone; finished sagas are not kept: %w", ErrEndUnknown, last, err)
	}
	if !c.mayBeDropped(r) {
		c.lostWrites(r, "found", "nothing")
	}
	return fmt.Errorf("%w: %s, and then the saga was gone; finished sagas are kept for %v: %w", ErrEndUnknown, last, keep, err)
}

// mayBeDropped reports whether the saga may be gone without having been lost. Nobody
// drops an unfinished one. Somebody else may have ended it and its retention have
// passed, if that is shorter than the time since it was ours.
func (c *Coordinator) mayBeDropped(r *run) bool {
	return c.cfg.Lease-time.Until(r.until) >= c.store.Retention()
}

// another reports whether a record is another saga's, created when r's was gone. As
// long as r was created here and the record never claimed, its owner tells.
func (c *Coordinator) another(r *run, record store.Record) bool {
	if !c.mayBeDropped(r) {
		return false
	}
	if r.record.IsZero() {
		return record.Epoch == 1 && record.Owner != "" && record.Owner != c.owner
	}
	return !record.Created.Equal(r.record)
}

// lostWrites says loudly that the store has lost what r knows it to have acknowledged.
func (c *Coordinator) lostWrites(r *run, found ...any) {
	c.stats.lostWrites.Add(1)
	c.log.Error("the store has lost writes that it had acknowledged",
		append([]any{"gid", r.saga.GID, "epoch", r.epoch, "status", r.state.Status, "marks", r.state.Marks}, found...)...)
}

// lacks reports whether a record is behind what r knows to have been written.
func (r *run) lacks(record store.Record) bool {
	return record.Epoch < r.epoch || !reaches(r.state.Status, record.Status) || len(missing(r.state.Marks, record.Marks)) > 0
}

// reaches reports whether a saga that was seen in one status may be found in another.
func reaches(from, to store.Status) bool { return from == to || from.CanBecome(to) }

// missing are the marks that are known and not found.
func missing(known, found store.Marks) (marks []store.SetMark) {
	for i := range min(len(known), len(found)) { // a gid may have become another saga's
		b := store.Branch(i)
		if known.At(b) != store.MarkPending && found.At(b) == store.MarkPending {
			marks = append(marks, store.SetMark{Branch: b, Mark: known.At(b)})
		}
	}
	return marks
}

// restore writes what a record lacks, whoever it belongs to now: like anybody who
// demands an abort. What another coordinator did not know when it took the saga
// over it learns with its next write.
func (c *Coordinator) restore(r *run, record store.Record) error {
	t := &store.Transition{GID: record.GID, Epoch: record.Epoch, From: record.Status, To: record.Status, Marks: missing(r.state.Marks, record.Marks)}
	again := r.behind // and it could not be mended: that is one loss
	if !reaches(r.state.Status, record.Status) {
		var found State
		_ = found.readNote(record.Note) // whoever went on meanwhile may have called an action
		r.calls.busy = later(r.calls.busy, time.Now().Add(found.Busy))
		if !again {
			r.state.Aborted = lostAbort(r.state.Aborted)
		}
		r.state.Busy = r.calls.left()
		t.To, t.Note = r.state.Status, r.state.note()
		if record.Owner == "" { // nobody runs it, who would go on
			t.Due, t.Release = atOnce, true
		}
	}
	if record.Status.Final() || t.To == t.From && record.Epoch != r.epoch {
		t = nil // nothing can be written, or only marks, of a saga that is not ours
	}
	if !again {
		c.lostWrites(r, "found_epoch", record.Epoch, "found_status", record.Status, "found_marks", record.Marks, "restored", t != nil)
	}
	if t == nil {
		return nil
	}
	err := c.commit.Apply(context.Background(), t)
	r.behind = err != nil
	return err
}

// lostAbort is the reason of an abort that had to be written again.
func lostAbort(why string) string {
	return reason("the store lost this abort, so it was written again: " + why)
}

// aborts remembers sagas that this process knows to be aborting, so that it knows
// even when the store does not any more. It is bounded in number. A gid may be used
// anew, but not while a saga that ended under it is kept.
type aborts struct {
	mu    sync.Mutex
	sagas map[string]abortedUntil
	order []string // of sagas, oldest first
}

type abortedUntil struct {
	state State
	at    time.Time // when that was last heard
	end   time.Time // until then nobody else has the gid
}

const maxAborts = 16 << 10

func (a *aborts) add(gid string, s State, keep time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.sagas == nil {
		a.sagas = make(map[string]abortedUntil)
	}
	if _, known := a.sagas[gid]; !known {
		if len(a.order) == maxAborts {
			delete(a.sagas, a.order[0])
			a.order = a.order[1:]
		}
		a.order = append(a.order, gid)
	}
	a.sagas[gid] = abortedUntil{State{Status: store.StatusAborting, Marks: s.Marks, Aborted: s.Aborted, Forced: s.Forced}, now, now.Add(keep)}
}

// state is how the saga was when last heard of, if it was aborting. One that was
// created later than that, and than the gid can be free again, is another. Ages are
// by a store's clock, to the millisecond.
func (a *aborts) state(gid string, created time.Time) (State, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.sagas[gid]
	return known.state, ok && (time.Now().Before(known.end) || !created.After(known.at.Add(time.Millisecond)))
}

// recall has a run that is about to begin know of an abort that the store has
// lost. It has no lease then, so it must write before it calls anything, which is
// refused, as the store is behind: persist does the rest.
func (c *Coordinator) recall(r *run) {
	switch r.state.Status {
	case store.StatusAborting:
		c.aborts.add(r.saga.GID, r.state, c.store.Retention())
	case store.StatusSubmitted:
		known, ok := c.aborts.state(r.saga.GID, r.created)
		if !ok {
			return
		}
		marks := r.state.Marks
		for _, m := range missing(known.Marks, marks) {
			marks = marks.With(m.Branch, m.Mark)
		}
		known.Marks = marks
		r.state, r.until = known, time.Time{}
	}
}
