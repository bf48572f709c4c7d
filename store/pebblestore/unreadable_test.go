package pebblestore

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// claimable creates sagas that are due at once, one after the other. Their bodies
// have a key of their own.
func claimable(t *testing.T, s *Store, now *clock, gids ...string) {
	t.Helper()
	for _, gid := range gids {
		must(t, s, &store.Create{GID: gid, Body: []byte(strings.Repeat(gid, maxInlineBody+1)), Steps: 1, Owner: "test"})
		now.add(time.Second)
	}
}

func claimedGIDs(t *testing.T, records []store.Record) (gids []string) {
	t.Helper()
	for _, r := range records {
		require.EqualValues(t, 2, r.Epoch)
		gids = append(gids, r.GID)
	}
	return gids
}

// A saga without its body holds up neither those that were claimed before it nor
// those that come after it, and it is not met again at once.
func TestClaimDue_UnreadableBody_IsSetAside(t *testing.T) {
	t.Parallel()
	now := newClock()
	cfg := inTemp(t)
	cfg.Now = now.Now
	s := open(t, cfg)
	claimable(t, s, now, "a", "bad", "c")
	require.NoError(t, s.db.Delete(appendID(nil, bodyKey, s.sagas["bad"].id), pebble.Sync))

	claimed, err := s.ClaimDue(t.Context(), "other", time.Hour, 10)
	require.ErrorIs(t, err, store.ErrUnreadable)
	require.ErrorContains(t, err, "bad")
	require.Equal(t, []string{"a", "c"}, claimedGIDs(t, claimed))

	claimed, err = s.ClaimDue(t.Context(), "other", time.Hour, 10)
	require.NoError(t, err)
	require.Empty(t, claimed)
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{3, 0}, []int64{stats.Unfinished, stats.Due})
	now.add(store.Quarantine)
	_, err = s.ClaimDue(t.Context(), "other", time.Hour, 10)
	require.ErrorIs(t, err, store.ErrUnreadable, "it is told again")

	page, err := s.List(t.Context(), store.Query{})
	require.NoError(t, err, "nor does it hide the others")
	require.Len(t, page.Records, 2)
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], "bad")
}

// A saga whose record cannot be read does not keep the store from being opened, and
// nobody else can have its gid.
func TestOpen_UnreadableRecord_HoldsUpNoOther(t *testing.T) {
	t.Parallel()
	now := newClock()
	cfg, log := inTemp(t), new(strings.Builder)
	cfg.Now, cfg.Log = now.Now, slog.New(slog.NewTextHandler(log, nil))
	s := open(t, cfg)
	claimable(t, s, now, "a", "bad", "c")
	key := appendID(nil, unfinishedKey, s.sagas["bad"].id)
	require.NoError(t, s.db.Set(key, []byte("\x03bad, and then nonsense"), pebble.Sync))
	require.NoError(t, s.db.Set([]byte{unfinishedKey, 1}, nil, pebble.Sync), "not even a key of ours")
	require.NoError(t, s.Close())

	s = open(t, cfg)
	claimed, err := s.ClaimDue(t.Context(), "other", time.Hour, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, claimedGIDs(t, claimed))

	_, err = s.Get(t.Context(), "bad")
	require.ErrorIs(t, err, store.ErrUnreadable)
	for _, c := range []store.Change{
		&store.Create{GID: "bad", Body: []byte("another"), Steps: 1, Owner: "test"},
		&store.Transition{GID: "bad", Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded},
	} {
		require.ErrorIs(t, s.Apply(t.Context(), []store.Change{c})[0], store.ErrUnreadable)
	}
	page, err := s.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Len(t, page.Records, 2)
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(findings, "\n"), "bad: a record of")
	require.NoError(t, s.Close())
	require.Contains(t, log.String(), "gid=bad")
}
