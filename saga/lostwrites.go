package saga

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sagabench/saga/machine"
	"sagabench/store"
)

// A store may lose acknowledged writes: in a crash, if it does not sync every write, or in
// a failover to a replica that is behind. A coordinator notices when a write of its own is
// refused or not answered, or when it resumes a saga that it knows to be aborting. It then
// restores what it knows: the abort, so that no action is called once a compensation may
// have been, and the marks.

// onNotFound returns nil if the saga is absent because t ended it: finished sagas are not
// kept, and nobody else ends it under our lease (see ForceStop). Otherwise it is not known
// how the saga ended.
func (c *Coordinator) onNotFound(r *run, t *store.Transition, unsure bool, err error) error {
	retention := c.store.Retention()
	if t.To.Final() && unsure && retention == 0 && time.Now().Before(r.leaseEnd) {
		return nil
	}
	last, kept := fmt.Sprintf("%v was not written", t.To), "finished sagas are not kept"
	if unsure {
		last = fmt.Sprintf("whether %v was written is not known", t.To)
	}
	if retention > 0 {
		kept = fmt.Sprintf("finished sagas are kept for %v", retention)
		if !c.mayBeExpired(r) {
			c.reportLostWrites(r, "found", "nothing")
		}
	}
	r.gone = fmt.Errorf("%w: %s, and then the saga was gone; %s: %w", ErrEndUnknown, last, kept, err)
	return r.gone
}

// mayBeExpired reports whether another coordinator may have ended the saga so long ago
// that its retention is over. Otherwise an absent saga was lost.
func (c *Coordinator) mayBeExpired(r *run) bool {
	return c.cfg.Lease-time.Until(r.leaseEnd) >= c.store.Retention()
}

// isOtherSaga reports whether a record belongs to another saga, which was created when r's
// was gone. If r's was created here and never claimed, its owner tells.
func (c *Coordinator) isOtherSaga(r *run, record store.Record) bool {
	if !c.mayBeExpired(r) {
		return false
	}
	if r.recordCreated.IsZero() {
		return record.Epoch == 1 && record.Owner != "" && record.Owner != c.owner
	}
	return !record.Created.Equal(r.recordCreated)
}

func (c *Coordinator) reportLostWrites(r *run, found ...any) {
	atomic.AddInt64(&c.stats.LostWrites, 1)
	c.log.Error("the store has lost writes that it had acknowledged",
		append([]any{"gid", r.saga.GID, "epoch", r.epoch, "status", r.state.Status, "marks", r.state.Marks}, found...)...)
}

// lacks reports whether a record lacks something that r, of this owner, knows to be written.
func (r *run) lacks(record store.Record, owner string) bool {
	return record.Epoch < r.epoch || record.Epoch == r.epoch && isOthers(record, owner) || !canReach(r.state.Status, record.Status) || len(missingMarks(r.state.Marks, record.Marks)) > 0
}

// isOthers reports whether another coordinator owns the saga. If it does so under our own
// epoch, the store has lost our claim and given that epoch again.
func isOthers(record store.Record, owner string) bool {
	return record.Owner != "" && record.Owner != owner
}

// canReach reports whether a saga that was in one status may be in another one later.
func canReach(from, to store.Status) bool { return from == to || from.CanBecome(to) }

// missingMarks returns the known marks that were not found.
func missingMarks(known, found store.Marks) (marks []store.SetMark) {
	for i := range min(len(known), len(found)) { // the gid may belong to another saga now
		b := store.Branch(i)
		if known.At(b) != store.MarkPending && found.At(b) == store.MarkPending {
			marks = append(marks, store.SetMark{Branch: b, Mark: known.At(b)})
		}
	}
	return marks
}

// restore writes what a record lacks, whoever owns the saga now, as a control command does.
// A coordinator that took the saga over without it learns of it with its next write.
func (c *Coordinator) restore(r *run, record store.Record) error {
	t := &store.Transition{
		GID: record.GID, Epoch: record.Epoch, From: record.Status, To: record.Status, Marks: missingMarks(r.state.Marks, record.Marks),
	}
	reported := r.lostWrites // the same loss, which could not be restored before
	if !canReach(r.state.Status, record.Status) {
		var found machine.State
		_ = found.SetNote(record.Note) // another coordinator may have called an action meanwhile
		r.calls.busyUntil = later(r.calls.busyUntil, time.Now().Add(found.Busy))
		if !reported {
			r.state.Aborted = machine.Reason("the store lost this abort, so it was written again: " + r.state.Aborted)
		}
		r.state.Busy = r.calls.busyFor()
		t.To, t.Note = r.state.Status, r.state.Note()
		if record.Owner == "" { // nobody runs it
			t.Due, t.Release = dueNow, true
		}
	}
	writable := !record.Status.Final() && (t.To != t.From || record.Epoch == r.epoch && !isOthers(record, c.owner)) // marks only if the saga is ours
	if !reported {
		c.reportLostWrites(r, "found_epoch", record.Epoch, "found_status", record.Status, "found_marks", record.Marks, "restored", writable)
	}
	if !writable {
		return nil
	}
	err := c.commit.Apply(context.Background(), t)
	r.lostWrites = err != nil
	return err
}

// aborts remembers the newest aborted sagas of this process, in case the store forgets
// them. Another saga may get the same gid, but not within the retention.
type aborts struct {
	mu    sync.Mutex
	sagas map[string]knownAbort
	order []string // gids, oldest first
}

type knownAbort struct {
	state    machine.State
	at       time.Time // of the newest state
	gidTaken time.Time // until then no other saga has the gid
}

const maxAborts = 16 << 10

func (a *aborts) add(gid string, s machine.State, retention time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if _, known := a.sagas[gid]; !known {
		if len(a.order) == maxAborts {
			delete(a.sagas, a.order[0])
			a.order = a.order[1:]
		}
		a.order = append(a.order, gid)
	}
	state := machine.State{Status: store.StatusAborting, Marks: s.Marks, Aborted: s.Aborted, Forced: s.Forced}
	a.sagas[gid] = knownAbort{state, now, now.Add(retention)}
}

// state returns the newest state of a saga that is known to be aborting. A saga that was
// created after that state, and after the gid became free, is another one. Ages are by the
// store's clock, to the millisecond.
func (a *aborts) state(gid string, created time.Time) (machine.State, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.sagas[gid]
	return known.state, ok && (time.Now().Before(known.gidTaken) || !created.After(known.at.Add(time.Millisecond)))
}

// recallAbort gives a starting run an abort that the store has lost. The run has no lease
// then, so it must write before it calls anything. That write is refused, as the store is
// behind, and writeAgain restores the abort.
func (c *Coordinator) recallAbort(r *run) {
	switch r.state.Status {
	case store.StatusAborting:
		c.aborts.add(r.saga.GID, r.state, c.store.Retention())
	case store.StatusSubmitted:
		known, ok := c.aborts.state(r.saga.GID, r.created)
		if !ok {
			return
		}
		marks := r.state.Marks
		for _, m := range missingMarks(known.Marks, marks) {
			marks = marks.With(m.Branch, m.Mark)
		}
		known.Marks = marks
		r.state, r.leaseEnd = known, time.Time{}
	}
}
