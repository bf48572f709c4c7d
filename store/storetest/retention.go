package storetest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var retentionTests = []test{
	{"Retention_EndsWithTheRecordGone", brief, func(f *fixture) {
		require.Equal(f.t, brief, f.store.Retention())
		names := gids(20)
		f.createAll(names)
		f.must(each(names, func(i int, gid string) store.Change { return move(submitted(gid), end(i%2 == 0)) })...)
		for _, gid := range names {
			f.goes(gid)
			f.refused(store.ErrNotFound, move(submitted(gid), store.StatusSucceeded))
		}
		require.Empty(f.t, f.list(store.Query{}))
		require.Equal(f.t, store.Stats{}, f.stats())
	}},

	{"Retention_OfZero_DropsAtOnce", 0, func(f *fixture) {
		require.Zero(f.t, f.store.Retention())
		f.must(create("a"), create("b"), create("c"), create("d"))
		f.must(move(submitted("b"), store.StatusAborting))
		f.must(
			move(submitted("a"), store.StatusSucceeded),
			move(f.get("b"), store.StatusFailed),
			move(submitted("c"), store.StatusFailed, mark(0, store.MarkFailed), note("it was refused")),
		)
		for _, gid := range []string{"a", "b", "c"} {
			f.absent(gid)
			f.refused(store.ErrNotFound, move(submitted(gid), store.StatusSucceeded))
		}
		require.Len(f.t, f.list(store.Query{}), 1)
		require.EqualValues(f.t, 1, f.stats().Unfinished)
		f.get("d")
	}},

	{"Retention_NeverDropsTheUnfinished", brief, func(f *fixture) {
		f.must(create("a"), create("b"), create("c", dueAtOnce), create("ended"))
		f.must(
			stay(submitted("a"), mark(0, store.MarkSucceeded), due(-1)),
			move(submitted("b"), store.StatusAborting, note("it was refused")),
			move(submitted("ended"), store.StatusSucceeded),
		)
		was := []store.Record{f.get("a"), f.get("b"), f.get("c")}
		f.goes("ended")
		for _, r := range was {
			f.unchanged(r)
		}
		require.Len(f.t, f.list(store.Query{}), 3)
		require.Len(f.t, f.claim("second", long, 10), 2)
	}},

	{"Retention_FreesTheGid", 0, func(f *fixture) {
		f.must(create("g", dueAtOnce, withSteps(3)))
		first := f.claim("second", long, 1)[0]
		f.must(stay(first, mark(0, store.MarkSucceeded), note("the first")))
		f.must(move(first, store.StatusSucceeded))

		f.must(create("g", withBody("the second")))
		r := f.get("g")
		same(f.t, store.Record{
			GID:     "g",
			Status:  store.StatusSubmitted,
			Marks:   store.NewMarks(2),
			Epoch:   1,
			Owner:   "first",
			Created: r.Created,
			Updated: r.Created,
			Due:     r.Due,
			Body:    []byte("the second"),
		}, r)
		require.Empty(f.t, f.claim("third", long, 1))
		require.EqualValues(f.t, 1, f.stats().Unfinished)
		f.must(move(r, store.StatusFailed))
		f.absent("g")
	}},

	// The expiry of a gid's first saga must not end its second saga.
	{"Retention_OutlastsAReopening", brief, func(f *fixture) {
		f.must(create("g"), create("h"))
		f.must(move(submitted("g"), store.StatusSucceeded))
		f.reopen()
		f.goes("g")
		f.must(create("g"), move(submitted("h"), store.StatusFailed))
		f.goes("h")
		require.Equal(f.t, store.StatusSubmitted, f.get("g").Status)
		f.reopen()
		require.Equal(f.t, store.StatusSubmitted, f.get("g").Status)
		f.absent("h")
		require.Len(f.t, f.list(store.Query{}), 1)
	}},
}

// goes waits until the saga is absent.
func (f *fixture) goes(gid string) {
	f.t.Helper()
	f.until("the retention of "+gid+" ends", func() bool {
		_, err := f.store.Get(f.ctx(), gid)
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(f.t, err)
			return false
		}
		return true
	})
}
