package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/store"
)

func TestOpen_RefusesWhatItCannotUse(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		base := config()
		at, err := url.Parse(base.URL)
		require.NoError(t, err)
		password, _ := at.User.Password()
		for name, tt := range map[string]struct {
			change func(*Config)
			is     error
			says   string
		}{
			"no server":         {func(c *Config) { c.URL = "redis://127.0.0.1:1" }, nil, "127.0.0.1:1"},
			"no password":       {func(c *Config) { c.URL = "redis://" + at.Host }, nil, "NOAUTH"},
			"wrong password":    {func(c *Config) { c.URL = "redis://:wrong@" + at.Host }, nil, "WRONGPASS"},
			"no URL":            {func(c *Config) { c.URL = "://" + password }, store.ErrInvalid, "url"},
			"prefix with brace": {func(c *Config) { c.Prefix = "a{b}" }, store.ErrInvalid, "prefix"},
			"negative shards":   {func(c *Config) { c.Shards = -1 }, store.ErrInvalid, "shards"},
			"too many shards":   {func(c *Config) { c.Shards = MaxShards + 1 }, store.ErrInvalid, "shards"},
			"retention":         {func(c *Config) { c.Retention = -1 }, store.ErrInvalid, "retention"},
			"timeout":           {func(c *Config) { c.Timeout = 0 }, store.ErrInvalid, "timeout"},
			"conns":             {func(c *Config) { c.Conns = 0 }, store.ErrInvalid, "conns"},
			"replicas":          {func(c *Config) { c.Replicas, c.Timeout = 2, time.Second }, errReplicas, "replicas: 2: "},
		} {
			t.Run(name, func(t *testing.T) {
				cfg := base
				tt.change(&cfg)
				_, err := Open(t.Context(), cfg)
				require.ErrorContains(t, err, tt.says)
				require.NotContains(t, err.Error(), "\n")
				require.NotContains(t, err.Error(), password)
				if tt.is != nil {
					require.ErrorIs(t, err, tt.is)
				}
			})
		}
		s := open(t, base)
		defer s.Close()
		require.ElementsMatch(t, append(s.indexes, s.layoutKey()), keysOf(t, s), "of the store just opened")
	})
}

func TestOpen_RefusesAnotherNumberOfShards(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		cfg := config()
		cfg.Shards = 3
		open(t, cfg).Close()
		cfg.Shards = 4
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, store.ErrUnsafe)
		require.ErrorContains(t, err, "has 3, not 4")

		cfg.Shards = 0
		s := open(t, cfg)
		defer s.Close()
		require.Equal(t, 3, s.cfg.Shards, "as they are")
		for _, layout := range []string{"2 shards=1", "1 shards=0", "1 shards=9999", ""} {
			require.NoError(t, holder(s, s.layoutKey()).Set(t.Context(), s.layoutKey(), layout, 0).Err())
			_, err := Open(t.Context(), cfg)
			require.ErrorIs(t, err, store.ErrUnsafe, layout)
		}
	})
}

// On a cluster, TestStore_OnASlowDisk restarts the servers.
func TestApply_AcrossARestartLosesNothing(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	s := open(t, testConfig(server))
	defer s.Close()
	requireApplied(t, s, []store.Change{create(1), create(2)})
	require.NoError(t, server.Kill())
	for _, err := range s.Apply(t.Context(), []store.Change{finish(1), mark(2)}) {
		require.Error(t, err)
		require.ErrorContains(t, err, server.Addr())
	}
	_, err := s.Get(t.Context(), gid(1))
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrNotFound)

	require.NoError(t, server.Restart(t.Context()))
	// Connections from before are dead; each may cost one error.
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), gid(1))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	requireApplied(t, s, []store.Change{finish(1), mark(2)})
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.D3, settings.Durability)
}

func TestDrop_LeavesOtherKeysAlone(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		s, other := open(t, config()), open(t, config())
		defer s.Close()
		defer other.Close()
		requireApplied(t, s, creates(10))
		requireApplied(t, other, creates(10))
		key := s.cfg.Prefix + ":of-somebody-else"
		require.NoError(t, holder(s, key).Set(t.Context(), key, "x", 0).Err())

		require.NoError(t, s.Drop(t.Context()))
		for i := range 10 {
			_, err := other.Get(t.Context(), gid(i))
			require.NoError(t, err)
		}
		require.Equal(t, []string{key}, keysOf(t, s))
	})
}

func TestVerify_FindsWhatIsWrong(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		ctx := t.Context()
		for name, harm := range map[string]func(s *Store, unfinished, ended string) error{
			"unfinished, and not in the due index": func(s *Store, unfinished, _ string) error {
				return holder(s, unfinished).ZRem(ctx, s.indexKey(s.shard(sagaGID(unfinished))), unfinished).Err()
			},
			"unfinished, and expires": func(s *Store, unfinished, _ string) error {
				return holder(s, unfinished).Expire(ctx, unfinished, time.Hour).Err()
			},
			"ended, and would be kept for ever": func(s *Store, _, ended string) error {
				return holder(s, ended).Persist(ctx, ended).Err()
			},
			"in the due index, and not": func(s *Store, unfinished, _ string) error {
				return holder(s, unfinished).Del(ctx, unfinished).Err()
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := open(t, config())
				defer s.Close()
				requireApplied(t, s, []store.Change{create(1), create(2)})
				requireApplied(t, s, []store.Change{finish(2)})
				requireSound(t, s)
				require.NoError(t, harm(s, s.sagaKey(gid(1)), s.sagaKey(gid(2))))
				findings, err := s.Verify(ctx)
				require.NoError(t, err)
				require.Len(t, findings, 1)
				require.Contains(t, findings[0], name)
			})
		}
	})
}

func TestClaimDue_CleansTheIndexOfWhatIsGone(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		s := open(t, config())
		defer s.Close()
		c := create(1).(*store.Create)
		c.Due = 0
		requireApplied(t, s, []store.Change{c})
		key := s.sagaKey(gid(1))
		require.NoError(t, holder(s, key).Del(t.Context(), key).Err())
		claimed, err := s.ClaimDue(t.Context(), "me", time.Minute, 10)
		require.NoError(t, err)
		require.Empty(t, claimed)
		requireSound(t, s)
	})
}

// The changes of these tests are about sagas of two steps, known by a number.

func gid(n int) string { return fmt.Sprintf("saga-%d", n) }

func create(n int) store.Change {
	return &store.Create{GID: gid(n), Body: []byte(`{"steps":[{},{}]}`), Steps: 2, Owner: "test", Due: time.Minute}
}

func mark(n int) store.Change {
	return &store.Transition{
		GID: gid(n), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSubmitted,
		Marks: []store.SetMark{{Branch: 0, Mark: store.MarkSucceeded}},
	}
}

func finish(n int) store.Change {
	return &store.Transition{GID: gid(n), Epoch: 1, From: store.StatusSubmitted, To: store.StatusSucceeded}
}

func requireApplied(t *testing.T, s store.Applier, changes []store.Change) {
	t.Helper()
	for i, err := range s.Apply(context.WithoutCancel(t.Context()), changes) {
		require.NoError(t, err, "change %d", i)
	}
}

// Whoever looks for the sagas that are stuck does not wait for the finished ones to
// be walked.
func TestList_OfUnfinishedSagasReadsNoOthers(t *testing.T) {
	onServers(t, func(t *testing.T, config func() Config) {
		cfg := config()
		cfg.Shards = 3
		s := open(t, cfg)
		defer s.Close()
		var creates, ends []store.Change
		for i := range 1000 {
			creates = append(creates, create(i))
			if i%100 != 0 {
				ends = append(ends, finish(i))
			}
		}
		requireApplied(t, s, creates)
		requireApplied(t, s, ends)
		query := store.Query{Status: store.StatusSubmitted, Limit: 3}
		found, pages := map[string]bool{}, 0
		for {
			page, err := s.List(t.Context(), query)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Records), query.Limit)
			for _, r := range page.Records {
				found[r.GID] = true
			}
			pages++
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		require.Len(t, found, 10)
		require.LessOrEqual(t, pages, 10, "as many as there are unfinished sagas, at worst")

		for _, cursor := range []string{"0", "0-", "-1-0", "3-0", "4-0.g", "0-0.bad gid", "x-0"} {
			_, err := s.List(t.Context(), store.Query{Status: store.StatusSubmitted, Cursor: cursor})
			require.ErrorIs(t, err, store.ErrInvalid, cursor)
		}
	})
}

// A server that keeps nothing is started anew while a store is open. Who opens the
// prefix next finds what that has written since. TestStore_ItsServersChange has it on a
// cluster, without the restart.
func TestOpen_AfterTheServerLostEverything_FindsTheShards(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := DefaultConfig()
	cfg.URL = server.URL()
	open := func(shards int) *Store {
		cfg.Shards = shards
		s, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	first := open(4)
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	require.Eventually(t, func() bool { // its connections were broken
		_, err := first.Get(t.Context(), "a")
		return errors.Is(err, store.ErrNotFound)
	}, time.Minute, 10*time.Millisecond)
	var creates []store.Change
	for _, gid := range []string{"a", "b", "c", "d", "e", "f"} {
		creates = append(creates, &store.Create{GID: gid, Body: []byte(`{}`), Steps: 1, Owner: "me"})
	}
	for _, err := range first.Apply(t.Context(), creates) {
		require.NoError(t, err)
	}
	claimed, err := open(0).ClaimDue(t.Context(), "other", time.Minute, 10)
	require.NoError(t, err)
	require.Len(t, claimed, len(creates))
}
