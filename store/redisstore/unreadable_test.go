package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
)

// What is no saga, or was spoilt by hand, holds up neither those that are claimed
// with it nor those that are listed, counted or created with it.
func TestUnreadable_HoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			unreadableHoldsUpNoOther(t, testConfig(labtest.Start(t, lab.Redis, lab.Config{Binary: binary})))
		})
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		unreadableHoldsUpNoOther(t, clusterConfig(shared.Cluster(t)))
	})
}

func unreadableHoldsUpNoOther(t *testing.T, cfg Config) {
	s := open(t, cfg)
	defer s.Close()
	const bad, good = 6, 20
	var want []string
	for i := range good {
		gid := fmt.Sprint("good-", i)
		requireApplied(t, s, []store.Change{&store.Create{GID: gid, Body: []byte("body"), Steps: 1, Owner: "test"}})
		want = append(want, gid)
		if i < bad {
			requireApplied(t, s, []store.Change{&store.Create{GID: fmt.Sprint("bad-", i), Body: []byte("body"), Steps: 1, Owner: "test"}})
		}
	}
	value := func(i int) string {
		key := s.sagaKey(fmt.Sprint("bad-", i))
		v, err := holder(s, key).Get(t.Context(), key).Result()
		require.NoError(t, err)
		return v
	}
	set := func(i int, v string) {
		key := s.sagaKey(fmt.Sprint("bad-", i))
		require.NoError(t, holder(s, key).Set(t.Context(), key, v, 0).Err())
	}
	list := s.sagaKey("bad-0")
	require.NoError(t, holder(s, list).Del(t.Context(), list).Err())
	require.NoError(t, holder(s, list).LPush(t.Context(), list, "a list").Err())
	set(1, "short")
	set(2, value(2)[:34]+"no epoch"+value(2)[42:])
	set(3, "not-a-time---"+value(3)[13:])
	set(4, value(4)[:42]+"x"+value(4)[43:])  // no status
	set(5, value(5)[:43]+"--"+value(5)[46:]) // no end of the marks

	claimed, err := s.ClaimDue(t.Context(), "other", time.Hour, 100)
	require.ErrorIs(t, err, store.ErrUnreadable)
	for i := range bad {
		require.ErrorContains(t, err, fmt.Sprint("bad-", i))
		_, err := s.Get(t.Context(), fmt.Sprint("bad-", i))
		require.ErrorIs(t, err, store.ErrUnreadable)
	}
	var got []string
	for _, r := range claimed {
		require.EqualValues(t, 2, r.Epoch)
		got = append(got, r.GID)
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
	claimed, err = s.ClaimDue(t.Context(), "other", time.Hour, 100)
	require.NoError(t, err, "they are left alone for a while")
	require.Empty(t, claimed)

	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{good + bad, 0}, []int64{stats.Unfinished, stats.Due})
	for _, q := range []store.Query{{}, {Status: store.StatusSubmitted}} {
		listed := 0
		require.NoError(t, store.Walk(t.Context(), s, q, func(store.Record) { listed++ }))
		require.Equal(t, good, listed)
	}

	errs := s.Apply(t.Context(), []store.Change{
		&store.Create{GID: "new-1", Body: []byte("body"), Steps: 1, Owner: "test"},
		&store.Create{GID: "bad-0", Body: []byte("body"), Steps: 1, Owner: "test"},
		&store.Create{GID: "bad-1", Body: []byte("body"), Steps: 1, Owner: "test"},
		&store.Create{GID: "new-2", Body: []byte("body"), Steps: 1, Owner: "test"},
	})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrExists)
	require.ErrorIs(t, errs[2], store.ErrExists)
	require.NoError(t, errs[3])
	claimed, err = s.ClaimDue(t.Context(), "other", time.Hour, 100)
	require.NoError(t, err)
	require.Len(t, claimed, 2, "both are in the due index")

	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, bad)
	for i := range bad {
		require.Contains(t, strings.Join(findings, "\n"), fmt.Sprint("bad-", i))
	}
}

// A member of a due index that is no saga of the prefix is reported, and holds up no saga.
func TestClaimDue_ForeignMembersOfTheIndex_HoldUpNoSaga(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		s := open(t, config())
		defer s.Close()
		foreign := []string{"foreign", s.cfg.Prefix + ":{foreign}:gid"} // in other slots
		for _, index := range s.indexes {
			for _, member := range foreign {
				require.NoError(t, holder(s, index).ZAdd(t.Context(), index, redis.Z{Member: member}).Err())
			}
		}
		due := creates(30)
		for _, c := range due {
			c.(*store.Create).Due = 0
		}
		requireApplied(t, s, due)
		claimed, err := s.ClaimDue(t.Context(), "other", time.Minute, 100)
		require.NoError(t, err)
		require.Len(t, claimed, len(due))
		findings, err := s.Verify(t.Context())
		require.NoError(t, err)
		require.Len(t, findings, len(foreign)*len(s.indexes))
	})
}
