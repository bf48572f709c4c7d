// Package audit compares what clients were told with what the store holds, once
// all is quiet. It trusts neither: an acknowledged saga must be there, ended, and
// in the way the client was told; a failed one must be undone step by step. Two
// kinds of sagas are exempt, and counted: one that was sent longer ago than the
// store keeps finished sagas need not be there, and what was stopped by force need
// not be undone.
package audit

import (
	"context"
	"fmt"
	"time"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/result"
	"sagabench/saga"
	"sagabench/store"
)

// Result is what an audit found.
type Result struct {
	result.Check
	// Findings holds the first MaxFindings violations in words, the store's
	// own about its bookkeeping among them.
	Findings []string
	// Total is the number of findings, listed or not.
	Total int
	// Sagas is how many the store holds.
	Sagas int64
	// FirstLost is when the first of the lost sagas was acknowledged, LastAcknowledged when
	// the last of all was; zero: none is lost, or was acknowledged.
	FirstLost, LastAcknowledged time.Time
}

// MaxFindings bounds Result.Findings.
const MaxFindings = 20

// Store reads the whole store, which must be quiet. It holds every gid: ten million
// sagas took this process 5 GB, garbage included.
func Store(ctx context.Context, s store.Store) (Result, error) {
	a, err := read(ctx, s)
	return a.result(), err
}

// Journals is Store, and compares what the load generator was told: the journals
// in the result directories of one run. The store keeps finished sagas for retention.
// Sagas of the store that are in no journal (a request that met an error may have
// left one) are audited as well.
func Journals(ctx context.Context, s store.Store, retention time.Duration, dirs ...string) (Result, error) {
	a, err := read(ctx, s)
	a.keptSince = time.Now().Add(-retention)
	if err != nil {
		return a.result(), err
	}
	for _, dir := range dirs {
		if err := load.Acknowledged(dir, a.compare); err != nil {
			return a.result(), fmt.Errorf("reading what was acknowledged: %w", err)
		}
	}
	return a.result(), nil
}

type audit struct {
	status                                                  map[string]store.Status
	acknowledged                                            int64
	keptSince                                               time.Time // a saga that ended before may have been dropped
	terminal, lost, bothOutcomes, uncompensated, unfinished int64
	expired, forceStopped                                   int64
	findings                                                []string
	total                                                   int
	firstLost, lastAcknowledged                             time.Time
}

func (a *audit) result() Result {
	return Result{
		Check: result.Check{
			Acknowledged: a.acknowledged,
			Terminal:     &a.terminal, Lost: &a.lost, BothOutcomes: &a.bothOutcomes,
			Uncompensated: &a.uncompensated, Unfinished: &a.unfinished,
			Expired: a.expired, ForceStopped: a.forceStopped,
		},
		Findings: a.findings,
		Total:    a.total,
		Sagas:    int64(len(a.status)),

		FirstLost: a.firstLost, LastAcknowledged: a.lastAcknowledged,
	}
}

func (a *audit) found(count *int64, format string, args ...any) {
	*count++
	a.note(fmt.Sprintf(format, args...))
}

func (a *audit) note(finding string) {
	a.total++
	if len(a.findings) < MaxFindings {
		a.findings = append(a.findings, finding)
	}
}

func read(ctx context.Context, s store.Store) (*audit, error) {
	a := &audit{status: make(map[string]store.Status)}
	if err := store.Walk(ctx, s, store.Query{Limit: 1000}, a.record); err != nil {
		return a, fmt.Errorf("listing the store: %w", err)
	}
	if v, ok := s.(store.Verifier); ok {
		findings, err := v.Verify(ctx)
		if err != nil {
			return a, fmt.Errorf("verifying the store: %w", err)
		}
		for _, f := range findings {
			a.note(f)
		}
	}
	return a, nil
}

// record looks at one saga by itself. A listing may give it twice.
func (a *audit) record(r store.Record) {
	if _, twice := a.status[r.GID]; twice {
		return
	}
	a.status[r.GID] = r.Status
	if !r.Status.Final() {
		a.unfinished++
		if _, err := saga.Read(r); err != nil {
			a.note(fmt.Sprintf("unfinished, and cannot be run: %v", err))
		}
		return
	}
	a.terminal++
	switch {
	case r.Status == store.StatusSucceeded && (!allSucceeded(r.Marks) || anyCompensated(r.Marks)):
		a.found(&a.bothOutcomes, "saga %s: succeeded, but its marks are %s", r.GID, r.Marks)
	case r.Status == store.StatusFailed && allSucceeded(r.Marks):
		a.found(&a.bothOutcomes, "saga %s: failed, but every action succeeded: %s", r.GID, r.Marks)
	case r.Status == store.StatusFailed:
		a.failed(r)
	}
}

// failed checks that nothing of a failed saga was left undone. The order of its
// steps, which says what may have been called, is in its body.
func (a *audit) failed(r store.Record) {
	info, err := saga.Read(r)
	switch {
	case err != nil:
		a.note(err.Error())
	case info.State.Forced:
		a.forceStopped++
	default:
		if steps := info.LeftUndone(); len(steps) > 0 {
			a.found(&a.uncompensated, "saga %s: failed with step %d left undone: %s", r.GID, steps[0]+1, r.Marks)
		}
	}
}

// compare compares one acknowledgement with the store.
func (a *audit) compare(ack load.Acknowledgement) error {
	a.acknowledged++
	if ack.Answered.After(a.lastAcknowledged) {
		a.lastAcknowledged = ack.Answered
	}
	gid, told := ack.GID, ack.Outcome
	switch is, there := a.status[gid]; {
	case !there && ack.Sent.Before(a.keptSince):
		a.expired++
	case !there:
		a.lose(ack, "saga %s: acknowledged as %v, and not in the store", gid, told)
	case !is.Final():
		a.lose(ack, "saga %s: acknowledged as %v, and %v in the store", gid, told, is)
	case is != told:
		a.found(&a.bothOutcomes, "saga %s: acknowledged as %v, and %v in the store", gid, told, is)
	}
	return nil
}

func (a *audit) lose(ack load.Acknowledgement, format string, args ...any) {
	a.found(&a.lost, format, args...)
	if a.firstLost.IsZero() || ack.Answered.Before(a.firstLost) {
		a.firstLost = ack.Answered
	}
}

func allSucceeded(m store.Marks) bool {
	for i := range m.Steps() {
		if m.At(store.Action(i)) != store.MarkSucceeded {
			return false
		}
	}
	return true
}

func anyCompensated(m store.Marks) bool {
	for i := range m.Steps() {
		if m.At(store.Compensation(i)) != store.MarkPending {
			return true
		}
	}
	return false
}
