package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestSweep_DropsTheExpiredAndNothingElse(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Now = c.Now
	s := open(t, cfg)
	for i := range 12 { // one every 10 minutes, kept for an hour
		gid := fmt.Sprintf("s%d", i)
		must(t, s, advance(gid, created))
		must(t, s, advance(gid, ended))
		c.add(10 * time.Minute)
		require.NoError(t, s.sweep(t.Context()))
		for j := range i + 1 {
			want := ended
			if age := time.Duration(i-j+1) * 10 * time.Minute; age >= time.Hour {
				want = none
			}
			require.Equal(t, want, stageOf(t, s, fmt.Sprintf("s%d", j)), "saga %d after saga %d", j, i)
		}
		require.LessOrEqual(t, keys(t, s, finishedKey), 9, "an hour's and one bucket's")
		verify(t, s)
	}
	must(t, s, advance("open", created))
	c.add(100 * time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	c.add(100 * time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	require.Zero(t, keys(t, s, finishedKey))
	require.Zero(t, keys(t, s, gidKey))
	require.Equal(t, created, stageOf(t, s, "open"))
	verify(t, s)
}

func TestRetention_HidesWhatIsNotSweptYet(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Now = c.Now
	s := open(t, cfg)
	must(t, s, advance("a", created))
	must(t, s, advance("a", ended))
	c.add(time.Hour - time.Millisecond)
	require.Equal(t, ended, stageOf(t, s, "a"))
	c.add(time.Millisecond)
	require.Equal(t, none, stageOf(t, s, "a"))
	page, err := s.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Empty(t, page.Records)
	require.NotZero(t, keys(t, s, finishedKey), "it is still there")

	// The gid is free again, and the new saga is the one that counts.
	must(t, s, advance("a", created))
	require.Equal(t, created, stageOf(t, s, "a"))
	must(t, s, advance("a", ended))
	require.Equal(t, ended, stageOf(t, s, "a"))
	verify(t, s)
}

func TestRetention_None_LeavesNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Retention, cfg.Now = 0, c.Now
	s := open(t, cfg)
	for _, gid := range []string{"a", "long3"} {
		must(t, s, advance(gid, created))
		must(t, s, advance(gid, ended))
		require.Equal(t, none, stageOf(t, s, gid))
	}
	for _, prefix := range []byte{unfinishedKey, finishedKey, gidKey, bodyKey} {
		require.Zero(t, keys(t, s, prefix), "keys of kind %c", prefix)
	}
	before := s.db.Metrics().WAL.BytesIn
	c.add(time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	require.Equal(t, before, s.db.Metrics().WAL.BytesIn, "there is nothing to drop")
}

// A store that is opened without a retention drops what it kept before.
func TestRetention_NoneAnyMore(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Now = c.Now
	s := open(t, cfg)
	must(t, s, advance("a", created))
	must(t, s, advance("a", ended))
	require.NoError(t, s.Close())
	cfg.Retention = 0
	s = open(t, cfg)
	require.Equal(t, none, stageOf(t, s, "a"))
	c.add(time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	require.Zero(t, keys(t, s, finishedKey)+keys(t, s, gidKey))
	verify(t, s)
}

// A clock that is set back makes ids no smaller and loses nothing.
func TestRetention_ClockSetBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Now = c.Now
	s := open(t, cfg)
	must(t, s, advance("a", created), advance("b", created))
	must(t, s, advance("a", ended))
	c.add(-24 * time.Hour)
	require.NoError(t, s.Close())
	s = open(t, cfg)
	must(t, s, advance("c", created))
	must(t, s, advance("b", ended), advance("c", ended))
	require.NoError(t, s.sweep(t.Context()))
	for _, gid := range []string{"a", "b", "c"} {
		require.Equal(t, ended, stageOf(t, s, gid))
	}
	verify(t, s)
	c.add(72 * time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	c.add(2 * time.Hour)
	require.NoError(t, s.sweep(t.Context()))
	require.Zero(t, keys(t, s, finishedKey))
}

// A gid is known again after Open, in the bucket that goes on and in those that
// are only kept.
func TestCreate_OfAnEndedGid_AfterOpen(t *testing.T) {
	t.Parallel()
	c := newClock()
	cfg := inTemp(t)
	cfg.Now = c.Now
	s := open(t, cfg)
	for _, gid := range []string{"old", "new"} {
		must(t, s, advance(gid, created))
		must(t, s, advance(gid, ended))
		c.add(40 * time.Minute)
	}
	c.add(-30 * time.Minute)
	require.NoError(t, s.Close())

	s = open(t, cfg)
	require.Len(t, s.buckets, 2)
	for _, gid := range []string{"old", "new"} {
		require.ErrorIs(t, s.Apply(t.Context(), []store.Change{advance(gid, created)})[0], store.ErrDuplicate)
		require.ErrorIs(t, s.Apply(t.Context(), []store.Change{advance(gid, ended)})[0], store.ErrConflict)
	}
	require.ErrorIs(t, s.Apply(t.Context(), []store.Change{advance("none", ended)})[0], store.ErrNotFound)
}

// Gids that Open did not read are looked for on disk.
func TestCreate_OfAnEndedGid_AfterOpenReadFew(t *testing.T) {
	t.Parallel()
	cfg := inTemp(t)
	s := open(t, cfg)
	var gids []string
	for i := range 10 {
		gids = append(gids, fmt.Sprintf("s%d", i))
		must(t, s, advance(gids[i], created))
		must(t, s, advance(gids[i], ended))
	}
	require.NoError(t, s.Close())

	cfg.maxLoadedGIDs = 4
	s = open(t, cfg)
	require.Len(t, s.buckets, 2)
	require.Nil(t, s.buckets[0].gids)
	for _, gid := range gids {
		require.ErrorIs(t, s.Apply(t.Context(), []store.Change{advance(gid, created)})[0], store.ErrDuplicate)
	}
	must(t, s, advance("another", created))
	must(t, s, advance("another", ended))
	verify(t, s)
}
