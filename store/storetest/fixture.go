package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// fixture is one test and its store. Its methods fail the test when the call
// fails, so only the test's own goroutine may use them.
type fixture struct {
	t     *testing.T
	h     Harness
	store store.Store
}

func open(t *testing.T, h Harness, opts Options) *fixture {
	f := &fixture{t: t, h: h, store: h.Open(t, opts)}
	t.Cleanup(func() {
		if !t.Failed() {
			verify(t, f.store)
		}
		require.NoError(t, f.store.Close())
	})
	return f
}

func (f *fixture) reopen() { f.store = f.h.Reopen(f.t, f.store) }

func (f *fixture) ctx() context.Context { return f.t.Context() }

// apply applies one batch.
func (f *fixture) apply(changes ...store.Change) []error {
	f.t.Helper()
	errs := f.store.Apply(f.ctx(), changes)
	require.Len(f.t, errs, len(changes), "one error per change")
	return errs
}

// must applies one batch without an error.
func (f *fixture) must(changes ...store.Change) {
	f.t.Helper()
	for i, err := range f.apply(changes...) {
		require.NoError(f.t, err, "change %d, of %s", i, changes[i].Gid())
	}
}

// refused applies one change, which gets the error want.
func (f *fixture) refused(want error, c store.Change) {
	f.t.Helper()
	require.ErrorIs(f.t, f.apply(c)[0], want)
}

func (f *fixture) get(gid string) store.Record {
	f.t.Helper()
	r, err := f.store.Get(f.ctx(), gid)
	require.NoError(f.t, err, "get %s", gid)
	require.Equal(f.t, gid, r.GID)
	wellFormed(f.t, r)
	return r
}

func (f *fixture) absent(gid string) {
	f.t.Helper()
	_, err := f.store.Get(f.ctx(), gid)
	require.ErrorIs(f.t, err, store.ErrNotFound, "get %s", gid)
}

// unchanged fails if the store holds another record than r.
func (f *fixture) unchanged(r store.Record) {
	f.t.Helper()
	same(f.t, r, f.get(r.GID))
}

func (f *fixture) claim(owner string, lease time.Duration, limit int) []store.Record {
	f.t.Helper()
	records, err := f.store.ClaimDue(f.ctx(), owner, lease, limit)
	require.NoError(f.t, err, "claim")
	require.LessOrEqual(f.t, len(records), limit, "more than the limit")
	for _, r := range records {
		wellFormed(f.t, r)
	}
	return records
}

func (f *fixture) stats() store.Stats {
	f.t.Helper()
	s, err := f.store.Stats(f.ctx())
	require.NoError(f.t, err, "stats")
	return s
}

// list returns the sagas of all pages of q by gid.
func (f *fixture) list(q store.Query) map[string]store.Record {
	f.t.Helper()
	return listAll(f.ctx(), f.t, f.store, q)
}

// clock returns the store's time: it makes an unfinished saga due at once.
func (f *fixture) clock(gid string) time.Time {
	f.t.Helper()
	f.must(stay(f.get(gid), due(-1)))
	return f.get(gid).Due
}

// tick waits until the store's clock is later than after, and returns its time.
func (f *fixture) tick(gid string, after time.Time) (now time.Time) {
	f.t.Helper()
	f.until("the store's clock advances", func() bool {
		now = f.clock(gid)
		return now.After(after)
	})
	return now
}

// until polls cond until it holds.
func (f *fixture) until(what string, cond func() bool) {
	f.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-poll.C {
		require.True(f.t, time.Now().Before(deadline), "not within %v: %s", patience, what)
	}
}

// create creates a saga of two steps that is due in an hour.
func create(gid string, edits ...func(*store.Create)) *store.Create {
	c := &store.Create{GID: gid, Body: []byte("body of " + gid), Steps: 2, Owner: "first", Due: long}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// each returns one change per gid.
func each(gids []string, change func(i int, gid string) store.Change) []store.Change {
	changes := make([]store.Change, len(gids))
	for i, gid := range gids {
		changes[i] = change(i, gid)
	}
	return changes
}

// createAll creates a saga per gid in one batch.
func (f *fixture) createAll(gids []string, edits ...func(*store.Create)) {
	f.t.Helper()
	f.must(each(gids, func(_ int, gid string) store.Change { return create(gid, edits...) })...)
}

// Edits of a create.

func dueAtOnce(c *store.Create) { c.Due = 0 }

func withBody(text string) func(*store.Create) {
	return func(c *store.Create) { c.Body = []byte(text) }
}

func withSteps(n int) func(*store.Create) { return func(c *store.Create) { c.Steps = n } }

// move changes a saga with the epoch and status of r to status to.
func move(r store.Record, to store.Status, edits ...func(*store.Transition)) *store.Transition {
	t := &store.Transition{GID: r.GID, Epoch: r.Epoch, From: r.Status, To: to}
	for _, edit := range edits {
		edit(t)
	}
	return t
}

// stay changes a saga without changing its status.
func stay(r store.Record, edits ...func(*store.Transition)) *store.Transition {
	return move(r, r.Status, edits...)
}

// Edits of a transition.

func mark(b store.Branch, m store.Mark) func(*store.Transition) {
	return func(t *store.Transition) { t.Marks = append(t.Marks, store.SetMark{Branch: b, Mark: m}) }
}

func note(text string) func(*store.Transition) { return func(t *store.Transition) { t.Note = text } }

func owned(by string) func(*store.Transition) { return func(t *store.Transition) { t.Owner = by } }

func due(d time.Duration) func(*store.Transition) { return func(t *store.Transition) { t.Due = d } }

func release(until time.Duration) func(*store.Transition) {
	return func(t *store.Transition) { t.Release, t.Due = true, until }
}

// end returns a final status.
func end(failed bool) store.Status {
	if failed {
		return store.StatusFailed
	}
	return store.StatusSucceeded
}

// submitted returns a saga as create makes it, for transitions without a Get.
func submitted(gid string) store.Record {
	return store.Record{GID: gid, Status: store.StatusSubmitted, Epoch: 1}
}

// gids returns n gids, not sorted.
func gids(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("saga-%05d", i*7919%100_003)
	}
	return names
}

// together runs f(0) to f(n-1) at the same time and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// listAll returns the sagas of all pages of q by gid. A saga may be on several pages.
func listAll(ctx context.Context, t require.TestingT, s store.Store, q store.Query) map[string]store.Record {
	found := map[string]store.Record{}
	for deadline := time.Now().Add(patience); ; {
		page, err := s.List(ctx, q)
		require.NoError(t, err, "list")
		if q.Limit > 0 {
			require.LessOrEqual(t, len(page.Records), q.Limit, "more than the limit")
		}
		for _, r := range page.Records {
			wellFormed(t, r)
			require.True(t, q.Matches(r), "does not match the query: %s, %v, created %v", r.GID, r.Status, r.Created)
			found[r.GID] = r
		}
		if page.Next == "" {
			return found
		}
		require.NotEqual(t, q.Cursor, page.Next, "the next page is this one again")
		require.True(t, time.Now().Before(deadline), "the pages have no end")
		q.Cursor = page.Next
	}
}

var began = time.Now() // before any record was written

// wellFormed fails if no store can have written r.
func wellFormed(t require.TestingT, r store.Record) {
	require.NoError(t, store.CheckGID(r.GID))
	if r.Owner != "" { // else it was released
		require.NoError(t, store.CheckOwner(r.Owner), "of %s", r.GID)
	}
	require.NoError(t, r.Check())
	require.Equal(t, r.Status.Final(), r.Due.IsZero(), "%s is %v and due %v", r.GID, r.Status, r.Due)
	require.WithinRange(t, r.Created, began.Add(-tolerance), time.Now().Add(tolerance), "creation of %s", r.GID)
	require.False(t, r.Updated.Before(r.Created), "%s, created %v, was updated before, %v", r.GID, r.Created, r.Updated)
	for _, at := range []time.Time{r.Created, r.Updated, r.Due} {
		require.True(t, at.Equal(at.Truncate(time.Millisecond)), "times are to the millisecond: %v", at)
	}
}

// same fails unless the records are equal.
func same(t require.TestingT, want, got store.Record) {
	require.True(t, bytes.Equal(want.Body, got.Body), "the body of %s is not what it was: %d bytes, now %d",
		want.GID, len(want.Body), len(got.Body))
	require.Equal(t, bare(want), bare(got))
}

// bare returns r with its times in UTC and without its body, which is too long to
// print.
func bare(r store.Record) store.Record {
	r.Body = nil
	r.Created, r.Updated, r.Due = r.Created.UTC(), r.Updated.UTC(), r.Due.UTC()
	return r
}

// verify fails if the store finds faults in its own bookkeeping. Nothing else may use
// the store meanwhile.
func verify(t require.TestingT, s store.Store) {
	v, ok := s.(store.Verifier)
	if !ok {
		return
	}
	findings, err := v.Verify(context.Background())
	require.NoError(t, err, "verify")
	require.Empty(t, findings)
}

// kind returns the text of the sentinel that err wraps, or else of err.
func kind(err error) string {
	if err == nil {
		return "nil"
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return err.Error()
}

var sentinels = []error{store.ErrConflict, store.ErrNotFound, store.ErrExists, store.ErrDuplicate, store.ErrInvalid, store.ErrClosed}
