package storetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var batchTests = []test{
	{"Apply_OfNothing_AnswersNothing", long, func(f *fixture) {
		require.Empty(f.t, f.store.Apply(f.ctx(), nil))
		require.Empty(f.t, f.store.Apply(f.ctx(), []store.Change{}))
		require.Equal(f.t, store.Stats{}, f.stats())
	}},

	{"Apply_PutsEveryErrorInItsOwnSlot", long, func(f *fixture) {
		f.must(create("there"), create("marked"), create("ended"), create("stale"), create("short"))
		f.must(
			stay(submitted("marked"), mark(0, store.MarkSucceeded)),
			move(submitted("ended"), store.StatusSucceeded),
		)
		stale := submitted("stale")
		stale.Epoch = 2
		batch := []struct {
			change store.Change
			want   error
		}{
			{create("new1"), nil},
			{create("there"), store.ErrDuplicate},
			{stay(submitted("marked"), mark(1, store.MarkSucceeded), mark(0, store.MarkFailed)), store.ErrConflict},
			{create("ended", func(c *store.Create) { c.Body = nil }), store.ErrExists},
			{stay(submitted("unknown"), mark(0, store.MarkSucceeded)), store.ErrNotFound},
			{create("{bad}"), store.ErrInvalid},
			{move(stale, store.StatusSucceeded), store.ErrConflict},
			{move(submitted("short"), store.StatusSucceeded, mark(4, store.MarkSucceeded)), store.ErrInvalid},
			{create("new2"), nil},
		}
		f.must(create("last"))
		before := []store.Record{f.get("there"), f.get("marked"), f.get("ended"), f.get("stale"), f.get("short")}
		changes := []store.Change{move(submitted("last"), store.StatusAborting, mark(2, store.MarkFailed), note("no"))}
		for _, member := range batch {
			changes = append(changes, member.change)
		}
		errs := f.apply(changes...)
		require.NoError(f.t, errs[0])
		for i, member := range batch {
			require.ErrorIs(f.t, errs[i+1], member.want, "change %d, of %q", i+1, member.change.Gid())
		}
		for _, r := range before {
			f.unchanged(r)
		}
		require.Equal(f.t, "body of new1", string(f.get("new1").Body))
		require.Equal(f.t, "body of new2", string(f.get("new2").Body))
		require.Equal(f.t, store.StatusAborting, f.get("last").Status)
		require.Equal(f.t, store.Marks("--n-"), f.get("last").Marks)
		f.absent("unknown")
		require.EqualValues(f.t, 7, f.stats().Unfinished)
	}},

	{"Apply_RefusesOnlyTheInvalid", long, func(f *fixture) {
		with := func(edit func(*store.Create)) store.Change { return create("invalid", edit) }
		invalid := []store.Change{
			with(withSteps(0)),
			with(func(c *store.Create) { c.Steps = store.MaxSteps + 1 }),
			with(withBody("zero\x00byte")),
			with(withBody(strings.Repeat("x", store.MaxBodyBytes+1))),
			with(func(c *store.Create) { c.Owner = "" }),
			&store.Transition{GID: "invalid", From: store.StatusSubmitted, To: store.StatusSucceeded},
			move(submitted("invalid"), 'x'),
			move(store.Record{GID: "invalid", Epoch: 1, Status: store.StatusAborting}, store.StatusSucceeded),
			move(store.Record{GID: "invalid", Epoch: 1, Status: store.StatusFailed}, store.StatusFailed),
			move(submitted("invalid"), store.StatusSucceeded, due(long)),
			stay(submitted("invalid"), note(strings.Repeat("x", store.MaxNoteBytes+1))),
			stay(submitted("invalid"), note("zero\x00byte")),
			stay(submitted("invalid"), release(0)),
			move(submitted("invalid"), store.StatusFailed, release(-1)),
			stay(submitted("invalid"), mark(-1, store.MarkSucceeded)),
			stay(submitted("invalid"), mark(2*store.MaxSteps, store.MarkSucceeded)),
			stay(submitted("invalid"), mark(0, store.MarkPending)),
			stay(submitted("invalid"), mark(0, 'x')),
		}
		for _, gid := range invalidGids() {
			invalid = append(invalid, create("", func(c *store.Create) { c.GID = gid }))
		}
		names := gids(len(invalid))
		for i, bad := range invalid {
			errs := f.apply(create(names[i]+"a"), bad, create(names[i]+"b"))
			require.NoError(f.t, errs[0], "before invalid change %d", i)
			require.ErrorIs(f.t, errs[1], store.ErrInvalid, "invalid change %d, %+.100v", i, bad)
			require.NoError(f.t, errs[2], "after invalid change %d", i)
			f.refused(store.ErrInvalid, bad)
		}
		f.absent("invalid")
		require.Len(f.t, f.list(store.Query{Limit: 1000}), 2*len(invalid))
		require.EqualValues(f.t, 2*len(invalid), f.stats().Unfinished)
	}},

	{"Apply_OfAGidTwice_TakesTheFirst", long, func(f *fixture) {
		errs := f.apply(
			create("g"),
			create("h"),
			create("g", withBody("another")),
			stay(submitted("g"), mark(0, store.MarkSucceeded)),
		)
		require.NoError(f.t, errs[0])
		require.NoError(f.t, errs[1])
		require.ErrorIs(f.t, errs[2], store.ErrInvalid)
		require.ErrorIs(f.t, errs[3], store.ErrInvalid)
		require.Equal(f.t, "body of g", string(f.get("g").Body))
		require.Equal(f.t, store.Marks("----"), f.get("g").Marks)
		f.get("h")
	}},

	{"Apply_TakesAThousandAtOnce", long, func(f *fixture) {
		names := gids(1000)
		creates := each(names, func(_ int, gid string) store.Change { return create(gid) })
		finishes := each(names, func(i int, gid string) store.Change {
			return move(submitted(gid), end(i%3 == 0), mark(store.Branch(i%4), store.MarkSucceeded))
		})
		f.must(creates...)
		require.EqualValues(f.t, len(names), f.stats().Unfinished)
		for i, err := range f.apply(creates...) {
			require.ErrorIs(f.t, err, store.ErrDuplicate, "change %d", i)
		}
		f.must(finishes...)
		require.Equal(f.t, store.Stats{}, f.stats())
		for i, err := range f.apply(finishes...) {
			require.ErrorIs(f.t, err, store.ErrConflict, "change %d", i)
		}
		found := f.list(store.Query{Limit: 300})
		require.Len(f.t, found, len(names))
		for i, gid := range names {
			r := found[gid]
			require.Equal(f.t, i%3 == 0, r.Status == store.StatusFailed, gid)
			require.Equal(f.t, store.NewMarks(2).With(store.Branch(i%4), store.MarkSucceeded), r.Marks, gid)
			require.Equal(f.t, "body of "+gid, string(r.Body))
		}
	}},

	// Sagas of different sizes in one batch must not mix their parts.
	{"Apply_MixesSizes", long, func(f *fixture) {
		names := gids(60)
		body := func(i int) string { return strings.Repeat("b", i*i*37%5000) }
		steps := func(i int) int { return 1 + i*i%store.MaxSteps }
		last := func(i int) store.Branch { return store.Compensation(steps(i) - 1) }
		f.must(each(names, func(i int, gid string) store.Change {
			return create(gid, func(c *store.Create) { c.Body, c.Steps = []byte(body(i)), steps(i) })
		})...)
		f.must(each(names, func(i int, gid string) store.Change {
			t := stay(submitted(gid), mark(last(i), store.MarkFailed), note(strings.Repeat("n", i*277)))
			for step := range min(i%5, steps(i)) {
				mark(store.Action(step), store.MarkSucceeded)(t)
			}
			return t
		})...)
		for i, gid := range names {
			r := f.get(gid)
			want := store.NewMarks(steps(i)).With(last(i), store.MarkFailed)
			for step := range min(i%5, steps(i)) {
				want = want.With(store.Action(step), store.MarkSucceeded)
			}
			require.Equal(f.t, want, r.Marks, gid)
			require.Equal(f.t, body(i), string(r.Body), gid)
			require.Equal(f.t, strings.Repeat("n", i*277), r.Note, gid)
		}
	}},
}
