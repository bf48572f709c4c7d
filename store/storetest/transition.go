package storetest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var transitionTests = []test{
	{"Transition_SetsMarks_AlsoAgain", long, func(f *fixture) {
		f.must(create("g", withSteps(3)), create("other"))
		other := f.get("other")
		want := f.get("g")
		for _, step := range []struct {
			change *store.Transition
			marks  store.Marks
		}{
			{stay(want, mark(store.Action(0), store.MarkSucceeded)), "y-----"},
			{stay(want, mark(store.Compensation(2), store.MarkFailed)), "y----n"},
			{stay(want), "y----n"},
			{stay(want, mark(store.Action(0), store.MarkSucceeded), mark(store.Compensation(2), store.MarkFailed)), "y----n"},
			{stay(want, mark(store.Action(2), store.MarkFailed), mark(store.Compensation(0), store.MarkSucceeded)), "yy--nn"},
			{stay(want, mark(store.Action(0), store.MarkSucceeded), mark(store.Action(1), store.MarkSucceeded)), "yyy-nn"},
		} {
			f.must(step.change)
			want.Marks = step.marks
			f.unchanged(want)
		}
		f.unchanged(other)
	}},

	{"Transition_FollowsEveryPathToAnEnd", long, func(f *fixture) {
		paths := map[string][]store.Status{
			"succeeded":     {store.StatusSucceeded},
			"failed":        {store.StatusFailed},
			"aborting":      {store.StatusAborting},
			"compensated":   {store.StatusAborting, store.StatusFailed},
			"longsucceeded": {store.StatusSubmitted, store.StatusSubmitted, store.StatusSucceeded},
			"longfailed":    {store.StatusSubmitted, store.StatusAborting, store.StatusAborting, store.StatusFailed},
		}
		for gid, path := range paths {
			f.must(create(gid))
			want := f.get(gid)
			for i, to := range path {
				f.must(move(want, to, mark(store.Branch(i), store.MarkSucceeded)))
				want.Status, want.Marks = to, want.Marks.With(store.Branch(i), store.MarkSucceeded)
				if to.Final() {
					want.Due = time.Time{}
				}
				got := f.get(gid)
				want.Updated = got.Updated
				same(f.t, want, got)
			}
		}
	}},

	// A transition needs exactly the epoch and the status of the saga.
	{"Transition_FromAnotherState_IsAConflict", long, func(f *fixture) {
		states := map[string]store.Status{
			"submitted": store.StatusSubmitted, "aborting": store.StatusAborting,
			"succeeded": store.StatusSucceeded, "failed": store.StatusFailed,
		}
		f.createAll(slices.Collect(maps.Keys(states)), dueAtOnce)
		for _, r := range f.claim("second", long, len(states)) {
			f.must(move(r, states[r.GID]))
		}
		for gid := range states {
			was := f.get(gid)
			for _, epoch := range []uint32{1, 2, 3, 12, 20, 22, 1<<8 + 2, 1<<16 + 2, store.MaxEpoch} {
				for _, from := range []store.Status{store.StatusSubmitted, store.StatusAborting} {
					if epoch == was.Epoch && from == was.Status {
						continue
					}
					wrong := store.Record{GID: gid, Epoch: epoch, Status: from}
					f.refused(store.ErrConflict, stay(wrong, mark(0, store.MarkSucceeded), note("late"), due(-1)))
					f.refused(store.ErrConflict, move(wrong, store.StatusFailed, note("late")))
					if from == store.StatusSubmitted {
						f.refused(store.ErrConflict, move(wrong, store.StatusSucceeded))
						f.refused(store.ErrConflict, move(wrong, store.StatusAborting, mark(2, store.MarkSucceeded)))
					}
				}
			}
			f.unchanged(was)
		}
		f.refused(store.ErrInvalid, stay(f.get("failed")))
		require.Empty(f.t, f.claim("third", long, 10))
		require.EqualValues(f.t, 2, f.stats().Unfinished)
	}},

	// A store that has lost a claim gives the epoch to another owner.
	{"Transition_OfAnotherOwner_IsAConflict", long, func(f *fixture) {
		f.createAll([]string{"claimed", "released"}, dueAtOnce)
		for _, r := range f.claim("second", long, 2) {
			if r.GID == "released" {
				f.must(stay(r, release(long)))
			}
			was := f.get(r.GID)
			for _, other := range []string{"first", "secon", "second2", "SECOND"} {
				f.refused(store.ErrConflict, stay(was, owned(other), mark(0, store.MarkSucceeded)))
				f.refused(store.ErrConflict, stay(was, owned(other), note("late"), due(-1)))
				f.refused(store.ErrConflict, move(was, store.StatusAborting, owned(other)))
				f.refused(store.ErrConflict, move(was, store.StatusSucceeded, owned(other), mark(0, store.MarkSucceeded)))
			}
			f.unchanged(was)
		}
		f.refused(store.ErrConflict, stay(f.get("released"), owned("second"), note("late")))
		f.refused(store.ErrInvalid, stay(f.get("claimed"), owned("not-one")))
		f.must(stay(f.get("claimed"), owned("second"), mark(0, store.MarkSucceeded)))
		f.must(stay(f.get("claimed"), owned("second"), note("in time"), due(long)))
		f.must(move(f.get("claimed"), store.StatusSucceeded, owned("second"), mark(2, store.MarkSucceeded)))
		got := f.get("claimed")
		require.Equal(f.t, store.Marks("y-y-"), got.Marks)
		require.Equal(f.t, "in time", got.Note)
	}},

	// Changes that differ only in the owner that they expect must not be grouped.
	{"Transition_OfTwoOwners_InOneBatch", long, func(f *fixture) {
		names := gids(40)
		f.must(each(names, func(i int, gid string) store.Change {
			return create(gid, func(c *store.Create) { c.Owner = []string{"first", "second"}[i%2] })
		})...)
		f.must(each(names, func(i int, gid string) store.Change {
			return stay(submitted(gid), owned([]string{"first", "second"}[i%2]), mark(0, store.MarkSucceeded))
		})...)
		for _, gid := range names {
			require.Equal(f.t, store.Marks("y---"), f.get(gid).Marks)
		}
	}},

	{"Transition_ChangingAMark_IsAConflict", long, func(f *fixture) {
		f.must(create("g"))
		f.must(stay(submitted("g"), mark(0, store.MarkSucceeded), mark(3, store.MarkFailed), note("first")))
		was := f.get("g")
		for _, marks := range [][]func(*store.Transition){
			{mark(0, store.MarkFailed)},
			{mark(3, store.MarkSucceeded)},
			{mark(1, store.MarkSucceeded), mark(3, store.MarkSucceeded)},
			{mark(0, store.MarkFailed), mark(1, store.MarkSucceeded)},
			{mark(0, store.MarkSucceeded), mark(1, store.MarkFailed), mark(3, store.MarkSucceeded), mark(2, store.MarkFailed)},
		} {
			f.refused(store.ErrConflict, stay(was, append(marks, note("second"), due(-1))...))
			f.refused(store.ErrConflict, move(was, store.StatusAborting, append(marks, note("second"), due(-1))...))
			f.refused(store.ErrConflict, move(was, store.StatusSucceeded, append(marks, note("second"))...))
			f.unchanged(was)
		}
		require.Empty(f.t, f.claim("second", long, 1))
	}},

	// The mark of a branch that the saga does not have would overwrite what the store
	// keeps after the marks.
	{"Transition_BeyondTheSteps_IsInvalid", long, func(f *fixture) {
		f.must(create("g"))
		was := f.get("g")
		for _, b := range []store.Branch{4, 5, 6, 100, 2*store.MaxSteps - 1} {
			f.refused(store.ErrInvalid, stay(was, mark(b, store.MarkSucceeded)))
			f.refused(store.ErrInvalid, stay(was, mark(0, store.MarkSucceeded), mark(b, store.MarkSucceeded), note("no"), due(-1)))
			f.refused(store.ErrInvalid, move(was, store.StatusSucceeded, mark(b, store.MarkFailed), mark(0, store.MarkSucceeded)))
			f.unchanged(was)
		}
		require.Empty(f.t, f.claim("second", long, 1))
	}},

	{"Transition_KeepsTheNote", long, func(f *fixture) {
		f.must(create("g", withSteps(4)))
		require.Empty(f.t, f.get("g").Note)
		for i, text := range []string{
			"short",
			"a longer one, with spaces and  two  of them",
			"less",
			" two\nlines\r\n\twith a tab ",
			`'quotes' "and" \backslashes\ %s $1 {} --`,
			"größer – 大きい",
			"-y-n",
			"0",
		} {
			f.must(stay(submitted("g"), note(text)))
			require.Equal(f.t, text, f.get("g").Note)

			b := store.Branch(i)
			f.must(stay(submitted("g"), mark(b, store.MarkSucceeded), due(long)))
			r := f.get("g")
			require.Equal(f.t, text, r.Note, "a mark keeps the note")
			require.Equal(f.t, store.MarkSucceeded, r.Marks.At(b))
			require.Equal(f.t, "body of g", string(r.Body))
		}
		f.must(move(submitted("g"), store.StatusFailed))
		require.Equal(f.t, "0", f.get("g").Note, "the end keeps the note")
		f.must(create("h"))
		f.must(move(submitted("h"), store.StatusFailed, note("at the end")))
		require.Equal(f.t, "at the end", f.get("h").Note)
	}},

	// A note of any bytes and the largest length, with bodies of several sizes, is kept
	// until another note replaces it.
	{"Transition_KeepsTheLargestNote", long, func(f *fixture) {
		text := string(everyByte())
		text += strings.Repeat("w", store.MaxNoteBytes-len(text)-1) + " "
		names := []string{"short", "long", "empty"}
		for i, body := range []string{"body", strings.Repeat("body ", 20_000), ""} {
			f.must(create(names[i], withBody(body)))
		}
		check := func(want string, marks store.Marks) {
			f.t.Helper()
			for _, gid := range names {
				r := f.get(gid)
				require.True(f.t, r.Note == want, "the note of %s came back changed, %d bytes", gid, len(r.Note))
				require.Equal(f.t, marks, r.Marks, gid)
				f.refused(store.ErrDuplicate, create(gid, func(c *store.Create) { c.Body = r.Body }))
			}
		}
		all := func(change func(r store.Record) store.Change) {
			f.t.Helper()
			f.must(each(names, func(_ int, gid string) store.Change { return change(f.get(gid)) })...)
		}
		all(func(r store.Record) store.Change { return stay(r, note(text), release(-1)) })
		check(text, "----")
		require.Len(f.t, f.claim("second", long, 10), len(names))
		all(func(r store.Record) store.Change { return stay(r, mark(0, store.MarkSucceeded)) })
		f.reopen()
		check(text, "y---")
		all(func(r store.Record) store.Change { return stay(r, note("less")) })
		check("less", "y---")
		all(func(r store.Record) store.Change {
			return move(r, store.StatusAborting, mark(2, store.MarkFailed), note(text))
		})
		check(text, "y-n-")
		all(func(r store.Record) store.Change { return stay(r, note("more"), due(long)) })
		all(func(r store.Record) store.Change { return move(r, store.StatusFailed, note(text)) })
		check(text, "y-n-")
		f.reopen()
		check(text, "y-n-")
	}},

	{"Transition_Reschedules", long, func(f *fixture) {
		f.must(create("g"))
		was := f.get("g")

		f.must(stay(was, mark(0, store.MarkSucceeded)))
		require.Equal(f.t, was.Due.UTC(), f.get("g").Due.UTC(), "a due time of 0 leaves it")
		f.must(stay(was, due(24*time.Hour)))
		require.WithinDuration(f.t, time.Now().Add(24*time.Hour), f.get("g").Due, tolerance)
		f.must(stay(was, due(2*time.Hour)))
		require.WithinDuration(f.t, time.Now().Add(2*time.Hour), f.get("g").Due, tolerance, "sooner is allowed")
		f.must(move(was, store.StatusAborting, due(3*time.Hour)))
		require.WithinDuration(f.t, time.Now().Add(3*time.Hour), f.get("g").Due, tolerance)
		require.Zero(f.t, f.stats().Due)
		require.Empty(f.t, f.claim("second", long, 1))

		f.must(stay(f.get("g"), due(-24*time.Hour)))
		require.WithinDuration(f.t, time.Now(), f.get("g").Due, tolerance, "at once is now, not in the past")
		require.EqualValues(f.t, 1, f.stats().Due)
		f.must(stay(f.get("g"), due(long)))
		require.Zero(f.t, f.stats().Due)
		require.Empty(f.t, f.claim("second", long, 1), "deferred again")
		f.must(stay(f.get("g"), due(-1)))
		require.Len(f.t, f.claim("second", long, 1), 1)
	}},

	{"Transition_UpdatedFollowsTheStatus", long, func(f *fixture) {
		f.must(create("g"), create("clock"))
		created := f.get("g")
		f.tick("clock", created.Created)
		f.must(stay(created, mark(0, store.MarkSucceeded), note("deferred"), due(-1)))
		require.Len(f.t, f.claim("second", long, 1), 1)
		claimed := f.get("g")
		require.Equal(f.t, created.Updated.UTC(), claimed.Updated.UTC(), "the status did not change")

		was := f.tick("clock", created.Updated)
		f.must(move(claimed, store.StatusAborting))
		aborting := f.get("g")
		require.False(f.t, aborting.Updated.Before(was), "the status changed at %v, after %v", aborting.Updated, was)

		was = f.tick("clock", aborting.Updated)
		f.must(move(aborting, store.StatusFailed))
		require.False(f.t, f.get("g").Updated.Before(was))
		require.Equal(f.t, created.Created.UTC(), f.get("g").Created.UTC())
	}},
}
