package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var statsTests = []test{
	{"Stats_CountUnfinishedAndDue", long, func(f *fixture) {
		expect := func(unfinished, due int64) {
			f.t.Helper()
			s := f.stats()
			require.Equal(f.t, unfinished, s.Unfinished, "unfinished")
			require.Equal(f.t, due, s.Due, "due")
		}
		expect(0, 0)
		f.must(create("a"), create("b"), create("c", dueAtOnce), create("d", dueAtOnce), create("e"))
		expect(5, 2)
		f.must(
			move(submitted("a"), store.StatusAborting),
			stay(submitted("b"), due(-1)),
			stay(submitted("c"), due(long)),
			move(submitted("d"), store.StatusSucceeded),
		)
		expect(4, 1)
		f.must(move(submitted("e"), store.StatusAborting, due(-1)))
		expect(4, 2)
		require.Len(f.t, f.claim("second", long, 1), 1)
		expect(4, 1)
		require.Len(f.t, f.claim("second", time.Millisecond, 1), 1)
		f.until("a lease runs out", func() bool { return f.stats().Due == 1 })
		for _, gid := range []string{"a", "b", "c", "e"} {
			f.must(move(f.get(gid), store.StatusFailed))
		}
		require.Equal(f.t, store.Stats{}, f.stats())
	}},

	{"Stats_OldestAge_IsOfTheOldestUnfinished", long, func(f *fixture) {
		start := time.Now()
		f.must(create("old"), create("clock"))
		old := f.get("old").Created
		f.tick("clock", old.Add(30*time.Millisecond))

		young := time.Now()
		f.must(create("young", dueAtOnce))
		age := f.get("young").Created.Sub(old)
		got := f.stats().OldestAge
		require.GreaterOrEqual(f.t, got, age, "the age of the oldest")
		require.LessOrEqual(f.t, got, since(start))

		f.must(move(submitted("old"), store.StatusSucceeded), move(f.get("clock"), store.StatusFailed))
		got = f.stats().OldestAge
		require.GreaterOrEqual(f.t, got, time.Duration(0))
		require.LessOrEqual(f.t, got, since(young), "finished sagas have no age")
	}},

	{"Settings_SayWhatTheEngineIs", long, func(f *fixture) {
		s, err := f.store.Settings(f.ctx())
		require.NoError(f.t, err)
		require.NotEmpty(f.t, s.Driver)
		require.NotEmpty(f.t, s.Version)
		require.NotEqual(f.t, "unknown", s.Durability.Meaning(), "%v is no class", s.Durability)
	}},
}

// since returns the largest age that a store may report, whose times are rounded to
// milliseconds.
func since(t time.Time) time.Duration { return time.Since(t) + 2*time.Millisecond }
