package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var releaseTests = []test{
	{"Release_ClearsTheOwner", long, func(f *fixture) {
		for gid, edits := range map[string][]func(*store.Transition){
			"alone":  {},
			"marked": {mark(1, store.MarkSucceeded), mark(2, store.MarkFailed)},
			"noted":  {note("deferred")},
			"both":   {mark(0, store.MarkSucceeded), note("deferred")},
		} {
			for _, to := range []store.Status{store.StatusSubmitted, store.StatusAborting} {
				gid := gid + "-" + to.String()
				f.must(create(gid, func(c *store.Create) { c.Owner = "Longest8" }))
				f.releases(move(submitted(gid), to, append(edits, release(2*time.Hour))...))
				f.must(stay(f.get(gid), due(-1)))
				claimed := f.claim("second", long, 1)
				require.Len(f.t, claimed, 1)
				f.releases(stay(claimed[0], append(edits, release(2*time.Hour))...))
			}
		}
	}},

	{"Release_IsOverWithTheNextClaim", long, func(f *fixture) {
		f.must(create("deferred"), create("released"))
		f.must(stay(submitted("deferred"), release(long)), stay(submitted("released"), release(-1)))
		require.Zero(f.t, f.get("deferred").Owner)
		was := f.get("released")
		require.WithinDuration(f.t, time.Now(), was.Due, tolerance)
		require.EqualValues(f.t, 1, f.stats().Due)

		claimed := f.claim("second", 2*time.Hour, 10)
		require.Len(f.t, claimed, 1, "the other saga is due later")
		want := was
		want.Epoch, want.Owner, want.Due = 2, "second", claimed[0].Due
		same(f.t, want, claimed[0])
		f.unchanged(want)
		f.refused(store.ErrConflict, stay(was, release(-1)))
		f.refused(store.ErrConflict, move(was, store.StatusSucceeded))
		f.unchanged(want)

		// The new owner may release the saga too.
		f.must(stay(claimed[0], release(-1)))
		third := f.claim("third", long, 10)
		require.Len(f.t, third, 1)
		require.Equal(f.t, "third", third[0].Owner)
		require.EqualValues(f.t, 3, third[0].Epoch)
	}},

	// A change that names no owner is fenced by the epoch only.
	{"Release_LeavesTheEpochItsChanges", long, func(f *fixture) {
		f.must(create("g"))
		f.must(stay(submitted("g"), release(long)))
		r := f.get("g")
		for _, change := range []*store.Transition{
			stay(r, mark(0, store.MarkSucceeded)),
			stay(r, note("late")),
			stay(r, due(2*time.Hour)),
			stay(r, mark(2, store.MarkFailed), release(2*time.Hour)),
			move(r, store.StatusAborting, mark(1, store.MarkSucceeded)),
		} {
			f.must(change)
			got := f.get("g")
			require.Empty(f.t, got.Owner)
			require.EqualValues(f.t, 1, got.Epoch)
		}
		r = f.get("g")
		require.Equal(f.t, store.Marks("yyn-"), r.Marks)
		require.Equal(f.t, "late", r.Note)
		require.WithinDuration(f.t, time.Now().Add(2*time.Hour), r.Due, tolerance)
		f.must(move(r, store.StatusFailed))
		got := f.get("g")
		require.Empty(f.t, got.Owner)
		require.Equal(f.t, store.StatusFailed, got.Status)
	}},

	// Changes that differ only in their release must not be grouped.
	{"Release_OfSomeOfABatch_LeavesTheOthers", long, func(f *fixture) {
		names := gids(40)
		f.createAll(names)
		f.must(each(names, func(i int, gid string) store.Change {
			change := stay(submitted(gid), due(2*time.Hour))
			change.Release = i%3 == 0
			if i%2 == 0 {
				change.To = store.StatusAborting
			}
			return change
		})...)
		for i, gid := range names {
			r := f.get(gid)
			require.Equal(f.t, i%3 == 0, r.Owner == "", "%s is owned by %q", gid, r.Owner)
			require.Equal(f.t, i%2 == 0, r.Status == store.StatusAborting, gid)
			require.WithinDuration(f.t, time.Now().Add(2*time.Hour), r.Due, tolerance)
		}
	}},
}

// releases applies t, which must release the saga for two hours and change nothing that
// it does not name.
func (f *fixture) releases(t *store.Transition) {
	f.t.Helper()
	want := f.get(t.GID)
	require.NotEmpty(f.t, want.Owner)
	f.must(t)
	got := f.get(t.GID)
	require.WithinDuration(f.t, time.Now().Add(2*time.Hour), got.Due, tolerance)
	want.Owner, want.Status, want.Due, want.Updated = "", t.To, got.Due, got.Updated
	for _, m := range t.Marks {
		want.Marks = want.Marks.With(m.Branch, m.Mark)
	}
	if t.Note != "" {
		want.Note = t.Note
	}
	same(f.t, want, got)
	same(f.t, want, f.list(store.Query{})[t.GID])
}
