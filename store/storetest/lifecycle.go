package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var lifecycleTests = []test{
	{"Reopen_FindsEverything", long, func(f *fixture) {
		f.must(
			create("submitted", func(c *store.Create) { c.Steps, c.Body = 3, []byte("the\nbody") }),
			create("aborting"), create("succeeded"), create("failed"), create("due", dueAtOnce),
			create("claimed", func(c *store.Create) { c.Due = long }), create("released"),
		)
		f.must(
			stay(submitted("submitted"), mark(0, store.MarkSucceeded), note("deferred"), due(2*time.Hour)),
			move(submitted("aborting"), store.StatusAborting, mark(2, store.MarkFailed), note("it was refused")),
			move(submitted("succeeded"), store.StatusSucceeded, mark(2, store.MarkSucceeded)),
			move(submitted("failed"), store.StatusFailed, note("it was refused")),
			stay(submitted("due"), due(long)),
			stay(submitted("claimed"), due(-1)),
			stay(submitted("released"), mark(0, store.MarkSucceeded), release(2*time.Hour)),
		)
		require.Len(f.t, f.claim("second", 3*time.Hour, 10), 1)
		f.must(stay(submitted("due"), due(-1)))
		was := f.list(store.Query{})
		require.Len(f.t, was, 7)

		for range 2 {
			f.reopen()
			require.Len(f.t, f.list(store.Query{}), len(was))
			for _, r := range was {
				f.unchanged(r)
			}
			require.EqualValues(f.t, 5, f.stats().Unfinished)
			require.EqualValues(f.t, 1, f.stats().Due)
		}
		f.refused(store.ErrDuplicate, create("succeeded"))
		f.refused(store.ErrConflict, stay(submitted("claimed")))
		f.must(move(was["claimed"], store.StatusSucceeded), move(was["aborting"], store.StatusFailed))
		claimed := f.claim("third", long, 10)
		require.Len(f.t, claimed, 1)
		require.Equal(f.t, "due", claimed[0].GID)
	}},

	{"Close_MakesEveryCallAnswerErrClosed", long, func(f *fixture) {
		f.must(create("g"))
		s, ctx := f.store, f.ctx()
		require.NoError(f.t, s.Close())
		for _, err := range f.apply(create("h"), move(submitted("g"), store.StatusSucceeded)) {
			require.ErrorIs(f.t, err, store.ErrClosed)
		}
		for call, err := range readsAndClaim(ctx, s, "g") {
			require.ErrorIs(f.t, err, store.ErrClosed, call)
		}
		require.NoError(f.t, s.Close(), "closing twice")

		f.reopen()
		f.get("g")
		f.absent("h")
	}},

	{"Close_UnderLoad_LosesNothingAcknowledged", long, func(f *fixture) {
		const writers = 8
		s, ctx := f.store, f.ctx()
		acknowledged := make([][]string, writers)
		failed := make([]error, writers)
		together(writers, func(w int) {
			for i, deadline := 0, time.Now().Add(patience); time.Now().Before(deadline); i++ {
				if w == 0 && i == 20 {
					failed[w] = s.Close()
					return
				}
				gid := fmt.Sprintf("w%d-%d", w, i)
				if err := s.Apply(ctx, []store.Change{create(gid)})[0]; err != nil {
					failed[w] = err
					return
				}
				acknowledged[w] = append(acknowledged[w], gid)
			}
		})
		require.NoError(f.t, failed[0])
		for _, err := range failed[1:] {
			require.Error(f.t, err)
		}
		f.refused(store.ErrClosed, create("late"))
		f.reopen()
		for _, names := range acknowledged {
			for _, gid := range names {
				f.get(gid)
			}
		}
	}},

	{"Context_ThatHasEnded_KeepsCallsFromStarting", long, func(f *fixture) {
		f.must(create("a", dueAtOnce), create("b"))
		before := []store.Record{f.get("a"), f.get("b")}
		cancelled, cancel := context.WithCancel(f.ctx())
		cancel()
		s := f.store
		errs := s.Apply(cancelled, []store.Change{
			create("new"),
			move(submitted("a"), store.StatusAborting, mark(0, store.MarkFailed), note("it was refused")),
			move(submitted("b"), store.StatusSucceeded, mark(0, store.MarkSucceeded), mark(2, store.MarkSucceeded)),
		})
		require.Len(f.t, errs, 3)
		for i, err := range errs {
			require.ErrorIs(f.t, err, context.Canceled, "slot %d", i)
		}
		for call, err := range readsAndClaim(cancelled, s, "a") {
			require.ErrorIs(f.t, err, context.Canceled, call)
		}

		late, cancel := context.WithTimeout(f.ctx(), -1)
		defer cancel()
		_, err := s.Get(late, "a")
		require.ErrorIs(f.t, err, context.DeadlineExceeded, "Get")
		require.ErrorIs(f.t, s.Apply(late, []store.Change{create("new")})[0], context.DeadlineExceeded, "Apply")

		for _, r := range before {
			f.unchanged(r)
		}
		f.absent("new")
		f.must(create("new"))
	}},

	// A change whose context ended may still be applied, but only as a whole.
	{"Context_EndingDuringACall_HalvesNothing", long, func(f *fixture) {
		for round := range 30 {
			names := gids(300)[10*round : 10*round+10]
			creates := each(names, func(_ int, gid string) store.Change { return create(gid) })
			moves := each(names, func(_ int, gid string) store.Change {
				return move(submitted(gid), store.StatusAborting, mark(0, store.MarkFailed), mark(3, store.MarkSucceeded), note("it was refused"))
			})
			created := f.applyBriefly(round, creates)
			// Now all sagas exist, so a create that is still under way changes nothing.
			for i, err := range f.apply(creates...) {
				if created[i] == nil {
					require.ErrorIs(f.t, err, store.ErrDuplicate, "%s was acknowledged", creates[i].Gid())
				}
			}
			moved := f.applyBriefly(round, moves)
			for i, c := range moves {
				r := f.get(c.Gid())
				was := r.Status == store.StatusAborting
				if moved[i] == nil {
					require.True(f.t, was, "%s was acknowledged", c.Gid())
				}
				require.Equal(f.t, was, r.Marks == "n--y", "%s is %v with marks %s", r.GID, r.Status, r.Marks)
				require.Equal(f.t, was, r.Note != "", "%s is %v with the note %q", r.GID, r.Status, r.Note)
			}
			f.apply(moves...)
		}
		require.EqualValues(f.t, 300, f.stats().Unfinished)
	}},
}

// readsAndClaim makes every call but Apply and returns their errors.
func readsAndClaim(ctx context.Context, s store.Store, gid string) map[string]error {
	_, get := s.Get(ctx, gid)
	_, list := s.List(ctx, store.Query{})
	_, claim := s.ClaimDue(ctx, "second", long, 1)
	_, stats := s.Stats(ctx)
	_, settings := s.Settings(ctx)
	return map[string]error{"Get": get, "List": list, "ClaimDue": claim, "Stats": stats, "Settings": settings}
}

// applyBriefly applies changes with a context that ends meanwhile. The contract's own
// errors must not be returned: they say that nothing was written.
func (f *fixture) applyBriefly(round int, changes []store.Change) []error {
	ctx, cancel := context.WithTimeout(f.ctx(), time.Duration(round)*25*time.Microsecond)
	defer cancel()
	errs := f.store.Apply(ctx, changes)
	require.Len(f.t, errs, len(changes))
	for _, err := range errs {
		for _, sentinel := range sentinels {
			require.NotErrorIs(f.t, err, sentinel)
		}
	}
	return errs
}
