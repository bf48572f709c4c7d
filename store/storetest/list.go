package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var listTests = []test{
	{"List_ReturnsWholeRecords", long, func(f *fixture) {
		require.Empty(f.t, f.list(store.Query{}), "of an empty store")
		f.must(create("a"), create("b", withBody(strings.Repeat("line\n", 9999))), create("c", dueAtOnce))
		f.must(
			move(submitted("a"), store.StatusAborting, mark(0, store.MarkFailed), note("it was refused")),
			move(submitted("b"), store.StatusSucceeded, mark(2, store.MarkSucceeded)),
		)
		require.Len(f.t, f.claim("second", long, 1), 1)
		found := f.list(store.Query{})
		require.Len(f.t, found, 3)
		for gid, r := range found {
			same(f.t, f.get(gid), r)
		}
	}},

	{"List_FiltersByStatus", long, func(f *fixture) {
		names := gids(40)
		statuses := []store.Status{store.StatusSubmitted, store.StatusAborting, store.StatusSucceeded, store.StatusFailed}
		for i, gid := range names {
			f.must(create(gid))
			if to := statuses[i%4]; to != store.StatusSubmitted {
				f.must(move(submitted(gid), to))
			}
		}
		for k, status := range statuses {
			found := f.list(store.Query{Status: status, Limit: 3})
			require.Len(f.t, found, 10, "%v", status)
			for i, gid := range names {
				require.Equal(f.t, i%4 == k, found[gid].GID == gid, "%s among the %v", gid, status)
			}
		}
		require.Len(f.t, f.list(store.Query{}), 40)
	}},

	{"List_BoundsTheCreation", long, func(f *fixture) {
		f.must(create("a"))
		a := f.get("a").Created
		f.tick("a", a)
		f.must(create("b"))
		b := f.get("b").Created
		f.must(move(submitted("b"), store.StatusSucceeded))
		for _, c := range []struct {
			name         string
			from, before time.Time
			want         string
		}{
			{"no bounds", time.Time{}, time.Time{}, "ab"},
			{"from is inclusive", a, time.Time{}, "ab"},
			{"from, a nanosecond later", a.Add(1), time.Time{}, "b"},
			{"from the second", b, time.Time{}, "b"},
			{"from after both", b.Add(1), time.Time{}, ""},
			{"before is exclusive", time.Time{}, a, ""},
			{"before, a nanosecond later", time.Time{}, a.Add(1), "a"},
			{"before the second", time.Time{}, b, "a"},
			{"before, after both", time.Time{}, b.Add(1), "ab"},
			{"between", a, b, "a"},
			{"around", a.Add(-long), b.Add(long), "ab"},
			{"of another zone", a.In(time.FixedZone("", 5*3600)), b.In(time.FixedZone("", -5*3600)), "a"},
			{"an empty range", b, a, ""},
			{"before all times", time.Time{}, time.Unix(0, 0), ""},
			{"from the far future", time.Now().Add(1e6 * time.Hour), time.Time{}, ""},
		} {
			var got string
			found := f.list(store.Query{CreatedFrom: c.from, CreatedBefore: c.before})
			for _, gid := range []string{"a", "b"} {
				if _, ok := found[gid]; ok {
					got += gid
				}
			}
			require.Equal(f.t, c.want, got, c.name)
		}
		require.Empty(f.t, f.list(store.Query{Status: store.StatusSucceeded, CreatedBefore: b}))
		require.Len(f.t, f.list(store.Query{Status: store.StatusSucceeded, CreatedFrom: b}), 1)
	}},

	{"List_Pages", long, func(f *fixture) {
		names := gids(230)
		f.createAll(names)
		for _, status := range []store.Status{0, store.StatusSubmitted} {
			for _, limit := range []int{0, 1, 7, 100, 229, 230, 231, store.MaxListLimit} {
				require.Len(f.t, f.list(store.Query{Status: status, Limit: limit}), len(names), "limit %d of %v", limit, status)
			}
		}
		page, err := f.store.List(f.ctx(), store.Query{})
		require.NoError(f.t, err)
		require.LessOrEqual(f.t, len(page.Records), 100, "the default limit")
		require.NotEmpty(f.t, page.Next)
	}},

	{"List_BoundsTheBytes", long, func(f *fixture) {
		const sagas = 7
		createLarge(f, sagas)
		for _, q := range []store.Query{{Limit: 1000}, {Limit: 1000, Status: store.StatusSubmitted}} {
			found := map[string]bool{}
			for pages := 1; ; pages++ {
				require.LessOrEqual(f.t, pages, 2*sagas+2)
				page, err := f.store.List(f.ctx(), q)
				require.NoError(f.t, err)
				size := 0
				for i, r := range page.Records {
					require.Less(f.t, size, store.MaxPageBytes, "record %d of a full page", i)
					size += len(r.Body)
					found[r.GID] = true
				}
				if q.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			require.Len(f.t, found, sagas, "%v", q.Status)
		}
	}},

	{"List_TellsTheStoresClock", long, func(f *fixture) {
		for _, status := range []store.Status{0, store.StatusSubmitted} {
			page, err := f.store.List(f.ctx(), store.Query{Status: status})
			require.NoError(f.t, err)
			require.WithinDuration(f.t, time.Now(), page.Now, tolerance, "of an empty page")
		}
		f.must(create("g"))
		due := f.clock("g")
		page, err := f.store.List(f.ctx(), store.Query{Status: store.StatusSubmitted})
		require.NoError(f.t, err)
		require.False(f.t, page.Now.Truncate(time.Millisecond).Before(due), "%v, and a saga fell due at %v", page.Now, due)
	}},

	{"List_WhileOthersWrite_MissesNothing", long, func(f *fixture) {
		names := gids(300)
		f.createAll(names)
		s, ctx := f.store, f.ctx()
		reading, stop := context.WithCancel(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() {
			var err error
			for _, gid := range gids(1000)[len(names):] {
				for _, c := range []store.Change{create(gid), move(submitted(gid), store.StatusSucceeded)} {
					if err == nil && reading.Err() == nil {
						err = s.Apply(ctx, []store.Change{c})[0]
					}
				}
			}
			done <- err
		}()
		for range 5 {
			found := f.list(store.Query{Limit: 11})
			for _, gid := range names {
				require.Contains(f.t, found, gid, "it was there all the time")
			}
		}
		stop()
		require.NoError(f.t, <-done)
	}},

	{"List_RefusesWhatIsInvalid", long, func(f *fixture) {
		f.must(create("g"))
		for _, q := range []store.Query{
			{Limit: -1},
			{Limit: store.MaxListLimit + 1},
			{Status: 'x'},
			{Status: '-'},
		} {
			_, err := f.store.List(f.ctx(), q)
			require.ErrorIs(f.t, err, store.ErrInvalid, "%+v", q)
		}
		for _, cursor := range []string{"{no cursor}", "\x00", " ", strings.Repeat("*", 5000)} {
			for _, status := range []store.Status{0, store.StatusSubmitted} {
				_, err := f.store.List(f.ctx(), store.Query{Status: status, Cursor: cursor})
				require.Error(f.t, err, "cursor %q", cursor)
			}
		}
	}},
}
