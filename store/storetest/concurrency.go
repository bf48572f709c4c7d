package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// racers is the number of goroutines that use a store at once.
const racers = 64

var concurrencyTests = []test{
	{"Concurrent_Sagas_AllReachTheirEnd", long, func(f *fixture) {
		const each = 4
		s, ctx := f.store, f.ctx()
		errs := make([]error, racers)
		together(racers, func(w int) {
			for i := range each {
				gid := fmt.Sprintf("w%d-%d", w, i)
				for _, c := range []store.Change{
					create(gid),
					stay(submitted(gid), mark(store.Action(0), store.MarkSucceeded), due(long)),
					move(submitted(gid), store.StatusSucceeded, mark(store.Action(1), store.MarkSucceeded)),
				} {
					if errs[w] = s.Apply(ctx, []store.Change{c})[0]; errs[w] != nil {
						return
					}
				}
			}
		})
		for w, err := range errs {
			require.NoError(f.t, err, "goroutine %d", w)
		}
		require.Equal(f.t, store.Stats{}, f.stats())
		found := f.list(store.Query{Status: store.StatusSucceeded})
		require.Len(f.t, found, racers*each)
		for gid, r := range found {
			require.Equal(f.t, store.Marks("y-y-"), r.Marks, gid)
			require.Equal(f.t, "body of "+gid, string(r.Body))
		}
	}},

	{"Concurrent_Creates_OneWins", long, func(f *fixture) {
		bodies := []string{"one body", "another body"}
		for round := range 5 {
			gid := fmt.Sprintf("g%d", round)
			errs := f.race(func(w int) store.Change {
				return create(gid, withBody(bodies[w%2]))
			})
			r := f.get(gid)
			won := 0
			for w, err := range errs {
				switch {
				case err == nil:
					won++
					require.Equal(f.t, bodies[w%2], string(r.Body), "goroutine %d was told that it won", w)
				case bodies[w%2] == string(r.Body):
					require.ErrorIs(f.t, err, store.ErrDuplicate)
				default:
					require.ErrorIs(f.t, err, store.ErrExists)
				}
			}
			require.Equal(f.t, 1, won, "how many created the saga")
		}
		require.EqualValues(f.t, 5, f.stats().Unfinished)
	}},

	{"Concurrent_Ends_OneWins", long, func(f *fixture) {
		ends := []store.Status{store.StatusSucceeded, store.StatusFailed}
		for round := range 5 {
			gid := fmt.Sprintf("g%d", round)
			f.must(create(gid))
			errs := f.race(func(w int) store.Change {
				return move(submitted(gid), ends[w%2], note(fmt.Sprint(w)))
			})
			r := f.get(gid)
			won := 0
			for w, err := range errs {
				if err != nil {
					require.ErrorIs(f.t, err, store.ErrConflict)
					continue
				}
				won++
				require.Equal(f.t, ends[w%2], r.Status, "goroutine %d was told that it won", w)
				require.Equal(f.t, fmt.Sprint(w), r.Note)
			}
			require.Equal(f.t, 1, won, "how many ended the saga")
		}
		require.Zero(f.t, f.stats().Unfinished)
	}},

	{"Concurrent_Marks_OneKindWins", long, func(f *fixture) {
		marks := []store.Mark{store.MarkSucceeded, store.MarkFailed}
		f.must(create("g", withSteps(racers)))
		errs := f.race(func(w int) store.Change {
			// All mark branch 0, and each another branch.
			return stay(submitted("g"), mark(0, marks[w%2]), mark(store.Branch(1+w), store.MarkSucceeded))
		})
		r := f.get("g")
		for w, err := range errs {
			won := marks[w%2] == r.Marks.At(0)
			if won {
				require.NoError(f.t, err, "goroutine %d set the mark that is there", w)
			} else {
				require.ErrorIs(f.t, err, store.ErrConflict)
			}
			require.Equal(f.t, won, r.Marks.At(store.Branch(1+w)) == store.MarkSucceeded, "goroutine %d", w)
		}
	}},

	// Batches of the same sagas in opposite orders must not deadlock.
	{"Concurrent_Batches_DoNotBlockEachOther", long, func(f *fixture) {
		names := gids(30)
		s, ctx := f.store, f.ctx()
		const batches = 8
		created := make([][]error, batches)
		marked := make([][]error, batches)
		together(batches, func(w int) {
			names := slices.Clone(names)
			if w%2 == 1 {
				slices.Reverse(names)
			}
			created[w] = s.Apply(ctx, each(names, func(_ int, gid string) store.Change { return create(gid) }))
			marked[w] = s.Apply(ctx, each(names, func(_ int, gid string) store.Change {
				return stay(submitted(gid), mark(store.Branch(w%4), store.MarkSucceeded))
			}))
		})
		won := 0
		for w := range batches {
			for i := range names {
				if created[w][i] == nil {
					won++
				} else {
					require.ErrorIs(f.t, created[w][i], store.ErrDuplicate)
				}
				require.NoError(f.t, marked[w][i], "mark of batch %d", w)
			}
		}
		require.Equal(f.t, len(names), won, "each saga is created by one")
		for _, gid := range names {
			require.Equal(f.t, store.Marks("yyyy"), f.get(gid).Marks)
		}
	}},

	{"Concurrent_Claims_AreDisjoint", long, func(f *fixture) {
		const claimers = 4
		f.createAll(gids(600), dueAtOnce)
		s, ctx := f.store, f.ctx()
		claimed := make([][]store.Record, claimers)
		errs := make([]error, claimers)
		together(claimers, func(w int) {
			// A claim may be empty because others claimed the sagas that it read, so
			// one empty reply does not mean that all are claimed.
			empty := 0
			for deadline := time.Now().Add(patience); empty < 20 && time.Now().Before(deadline); {
				records, err := s.ClaimDue(ctx, fmt.Sprint("w", w), long, 10)
				claimed[w] = append(claimed[w], records...)
				if err != nil {
					errs[w] = err
					return
				}
				if len(records) == 0 {
					empty++
				}
			}
		})
		owners := map[string]string{}
		for w, records := range claimed {
			require.NoError(f.t, errs[w], "claimer %d", w)
			for _, r := range records {
				require.Empty(f.t, owners[r.GID], "%s was claimed twice", r.GID)
				require.Equal(f.t, fmt.Sprint("w", w), r.Owner)
				require.EqualValues(f.t, 2, r.Epoch)
				owners[r.GID] = r.Owner
			}
		}
		for _, r := range f.claim("rest", long, 600) {
			require.Empty(f.t, owners[r.GID], "%s was claimed twice", r.GID)
			owners[r.GID] = r.Owner
		}
		require.Len(f.t, owners, 600)
		for gid, owner := range owners {
			require.Equal(f.t, owner, f.get(gid).Owner)
		}
	}},

	// The owner of a saga ends it while another claims it. If the claim is first, the
	// end is refused. If the end is first, the saga is not claimed.
	{"Concurrent_ClaimAndEnd_OneWins", long, func(f *fixture) {
		names := gids(400)
		f.createAll(names, dueAtOnce)
		s, ctx := f.store, f.ctx()
		ended := make([]error, len(names))
		claimed := map[string]bool{}
		var failed error
		together(2, func(w int) {
			for i := 0; i < len(names); i += 8 {
				if w == 0 {
					copy(ended[i:], s.Apply(ctx, each(names[i:i+8], func(_ int, gid string) store.Change {
						return move(submitted(gid), store.StatusSucceeded)
					})))
					continue
				}
				records, err := s.ClaimDue(ctx, "second", long, 8)
				if err != nil {
					failed = err
					return
				}
				for _, r := range records {
					claimed[r.GID] = true
				}
			}
		})
		require.NoError(f.t, failed)
		for i, gid := range names {
			if claimed[gid] {
				require.ErrorIs(f.t, ended[i], store.ErrConflict, "%s was claimed", gid)
			} else {
				require.NoError(f.t, ended[i], "%s was not claimed", gid)
			}
			require.Equal(f.t, !claimed[gid], f.get(gid).Status.Final(), gid)
		}
	}},
}

// race applies one change per racer at the same time.
func (f *fixture) race(change func(w int) store.Change) []error {
	s, ctx := f.store, f.ctx()
	errs := make([]error, racers)
	deadline := time.Now().Add(patience)
	together(racers, func(w int) {
		for again := true; again; again = f.h.Busy != nil && f.h.Busy(s, errs[w]) && time.Now().Before(deadline) {
			errs[w] = s.Apply(ctx, []store.Change{change(w)})[0]
		}
	})
	return errs
}
