package storetest

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var claimTests = []test{
	{"ClaimDue_TakesOverWholeRecords", long, func(f *fixture) {
		require.Empty(f.t, f.claim("second", long, 10), "of an empty store")
		f.must(
			create("past", func(c *store.Create) { c.Due = -24 * time.Hour }),
			create("big", withBody(strings.Repeat("body\n", 50_000))),
			create("long", withSteps(store.MaxSteps)),
			create("bare", func(c *store.Create) { c.Body, c.Steps = nil, 1 }),
		)
		f.must(
			move(submitted("big"), store.StatusAborting, mark(0, store.MarkFailed), note("it was\nrefused"), due(-1)),
			stay(submitted("long"), mark(1999, store.MarkSucceeded), due(-1)),
			stay(submitted("bare"), due(-1)),
		)
		want := f.list(store.Query{})
		require.Len(f.t, want, 4)
		require.WithinDuration(f.t, time.Now(), want["past"].Due, tolerance, "at once is now, not in the past")
		got := f.claim("Other7", 2*time.Hour, 10)
		require.Len(f.t, got, len(want))
		for _, r := range got {
			w := want[r.GID]
			require.WithinDuration(f.t, time.Now().Add(2*time.Hour), r.Due, tolerance)
			w.Epoch, w.Owner, w.Due = 2, "Other7", r.Due
			same(f.t, w, r)
			f.unchanged(r)
		}
		require.Empty(f.t, f.claim("third", long, 10), "claimed already")
		require.Empty(f.t, f.claim("Other7", long, 10), "claimed by itself")
	}},

	{"ClaimDue_LeavesWhatIsNotDue", long, func(f *fixture) {
		f.must(create("later"), create("much-later", func(c *store.Create) { c.Due = 24 * 365 * time.Hour }), create("deferred", dueAtOnce))
		f.must(stay(submitted("deferred"), due(long)))
		require.Empty(f.t, f.claim("second", long, 10))
		require.EqualValues(f.t, 1, f.get("later").Epoch)
		require.Equal(f.t, "first", f.get("deferred").Owner)
	}},

	{"ClaimDue_TakesOverWhenALeaseRanOut", long, func(f *fixture) {
		f.must(create("g", func(c *store.Create) { c.Due = 10 * time.Millisecond }))
		for epoch := uint32(2); epoch < 12; epoch++ {
			var claimed []store.Record
			f.until("the saga can be claimed again", func() bool {
				claimed = f.claim("second", 10*time.Millisecond, 10)
				return len(claimed) > 0
			})
			require.Equal(f.t, epoch, claimed[0].Epoch)
		}
	}},

	{"ClaimDue_FencesTheOwnerBefore", long, func(f *fixture) {
		f.must(create("g", dueAtOnce))
		second := f.claim("second", long, 1)[0]
		f.refused(store.ErrConflict, move(submitted("g"), store.StatusSucceeded))
		f.must(stay(second, mark(0, store.MarkSucceeded), due(-1)))

		third := f.claim("third", long, 1)[0]
		require.EqualValues(f.t, 3, third.Epoch)
		require.Equal(f.t, store.Marks("y---"), third.Marks)
		f.refused(store.ErrConflict, stay(second, mark(1, store.MarkSucceeded)))
		f.refused(store.ErrConflict, stay(submitted("g"), due(-1)))
		f.unchanged(third)
		f.must(move(third, store.StatusSucceeded))
		require.Equal(f.t, "third", f.get("g").Owner)
		require.EqualValues(f.t, 3, f.get("g").Epoch)
	}},

	{"ClaimDue_TakesTheLongestOverdueFirst", long, func(f *fixture) {
		names := gids(12)
		f.createAll(names)
		// They become due in an order that differs from those of creation and name.
		var want []string
		var last time.Time
		for i := range names {
			gid := names[i*5%len(names)]
			want = append(want, gid)
			last = f.tick(gid, last)
		}
		var got []string
		for _, limit := range []int{1, 4, 3, 100} {
			for _, r := range f.claim("second", long, limit) {
				got = append(got, r.GID)
			}
		}
		require.Equal(f.t, want, got)
	}},

	{"ClaimDue_TakesAbortingButNoFinishedSagas", long, func(f *fixture) {
		f.createAll([]string{"aborting", "compensated", "failed", "succeeded", "submitted"}, dueAtOnce)
		f.must(
			move(submitted("aborting"), store.StatusAborting),
			move(submitted("compensated"), store.StatusAborting, due(-1)),
			move(submitted("failed"), store.StatusFailed),
			move(submitted("succeeded"), store.StatusSucceeded),
		)
		f.must(move(f.get("compensated"), store.StatusFailed))
		var got []string
		for _, r := range f.claim("second", long, 10) {
			got = append(got, r.GID)
		}
		require.ElementsMatch(f.t, []string{"aborting", "submitted"}, got)
		require.EqualValues(f.t, 1, f.get("failed").Epoch)
		require.Equal(f.t, store.StatusAborting, f.get("aborting").Status)
	}},

	{"ClaimDue_OfMany_TakesEachOnce", long, func(f *fixture) {
		names := gids(700)
		f.createAll(names, dueAtOnce)
		var got []string
		for _, limit := range []int{1, 99, 500, 500} {
			for _, r := range f.claim("second", long, limit) {
				require.EqualValues(f.t, 2, r.Epoch, r.GID)
				require.Equal(f.t, "body of "+r.GID, string(r.Body))
				got = append(got, r.GID)
			}
		}
		slices.Sort(got)
		slices.Sort(names)
		require.Equal(f.t, names, got)
	}},

	{"ClaimDue_BoundsTheBytes", long, func(f *fixture) {
		createLarge(f, 7)
		var got []string
		for len(got) < 7 {
			records := f.claim("second", long, 100)
			require.Len(f.t, records, min(7-len(got), (store.MaxPageBytes+largeBody-1)/largeBody))
			for _, r := range records {
				require.Len(f.t, r.Body, largeBody)
				got = append(got, r.GID)
			}
		}
		require.Len(f.t, slices.Compact(slices.Sorted(slices.Values(got))), 7, "each once: %v", got)
		require.Empty(f.t, f.claim("second", long, 100))
	}},

	{"ClaimDue_RefusesWhatIsInvalid", long, func(f *fixture) {
		f.must(create("g", dueAtOnce))
		was := f.get("g")
		for _, c := range []struct {
			owner string
			lease time.Duration
			limit int
		}{
			{"", long, 1},
			{"a b", long, 1},
			{"{a}", long, 1},
			{"a\x00", long, 1},
			{"ninebytes", long, 1},
			{"second", 0, 1},
			{"second", -long, 1},
			{"second", time.Millisecond - 1, 1},
			{"second", long, 0},
			{"second", long, -1},
		} {
			records, err := f.store.ClaimDue(f.ctx(), c.owner, c.lease, c.limit)
			require.ErrorIs(f.t, err, store.ErrInvalid, "%+v", c)
			require.Empty(f.t, records)
		}
		f.unchanged(was)
	}},
}

// largeBody is the size of the bodies of createLarge: three of them fill a page.
const largeBody = 3 << 20

// createLarge creates n sagas that are due at once.
func createLarge(f *fixture, n int) {
	for _, gid := range gids(n) {
		f.must(create(gid, dueAtOnce, func(c *store.Create) { c.Body = bytes.Repeat([]byte{'x'}, largeBody) }))
	}
}
