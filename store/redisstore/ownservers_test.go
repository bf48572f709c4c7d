package redisstore

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
)

// The parts change the servers, so they have them for themselves, one after the other.
func TestStore_ItsServersChange(t *testing.T) {
	t.Parallel()
	parts := []struct {
		name string
		test func(*testing.T, Config)
	}{
		{"the layout is lost", layoutIsLost},
		{"everything is lost", everythingIsLost},
		{"the scripts are lost", scriptsAreLost},
		{"a server is out of memory", outOfMemory},
		{"a server may evict", mayEvict},
		{"they have another durability class", durabilityClasses},
		{"they refuse CONFIG", configIsRefused},
	}
	run := func(t *testing.T, server *lab.Server) {
		for _, part := range parts {
			t.Run(part.name, func(t *testing.T) {
				cfg := testConfig(server)
				cfg.Timeout = 2 * time.Minute // as in clusterConfig
				part.test(t, cfg)
			})
		}
	}
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		run(t, labtest.Start(t, lab.Redis, lab.Config{}))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		run(t, labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3}).Nodes()[1])
	})
}

// onAll runs a command on all servers.
func onAll(t *testing.T, s *Store, command ...any) {
	t.Helper()
	for _, server := range s.nodes.all() {
		require.NoError(t, server.Do(t.Context(), command...).Err())
	}
}

// Nobody can open the prefix with another number of shards after the next claim.
func layoutIsLost(t *testing.T, cfg Config) {
	cfg.Shards = 2 // so that its server in the cluster may have none
	s := open(t, cfg)
	defer s.Close()
	layout := holder(s, s.layoutKey())
	for _, lose := range []func() error{
		func() error { return layout.FlushAll(t.Context()).Err() },
		func() error { return layout.Del(t.Context(), s.layoutKey()).Err() },
	} {
		require.NoError(t, lose())
		_, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
		require.NoError(t, err)
		other := cfg
		other.Shards = 4
		_, err = Open(t.Context(), other)
		require.ErrorIs(t, err, store.ErrUnsafe)
		require.ErrorContains(t, err, "has 2, not 4")
	}
	require.NoError(t, layout.Set(t.Context(), s.layoutKey(), formatLayout(4), 0).Err())
	_, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
	require.ErrorIs(t, err, store.ErrUnsafe)
	require.ErrorContains(t, err, "has 4, not 2")
}

// A due index is never kept as a list, whatever was done to the server, and nobody
// takes what sees to that for a saga. Who opens the prefix next finds the number of shards.
func everythingIsLost(t *testing.T, cfg Config) {
	cfg.Shards = 5
	s := open(t, cfg)
	defer s.Close()
	check := func() {
		t.Helper()
		for _, index := range s.indexes {
			encoding, err := holder(s, index).ObjectEncoding(t.Context(), index).Result()
			require.NoError(t, err)
			require.Equal(t, "skiplist", encoding)
		}
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.Stats{}, stats)
		claimed, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
		require.NoError(t, err)
		require.Empty(t, claimed)
		requireSound(t, s)
	}
	ends := make([]store.Change, 20)
	for i := range ends {
		ends[i] = finish(i)
	}
	check()
	requireApplied(t, s, creates(len(ends)))
	requireApplied(t, s, ends)
	check()
	onAll(t, s, "FLUSHALL")
	onAll(t, s, "SCRIPT", "FLUSH")
	requireApplied(t, s, creates(len(ends)))
	requireApplied(t, s, ends)
	check()
	cfg.Shards = 0
	o := open(t, cfg)
	defer o.Close()
	require.Equal(t, 5, o.cfg.Shards)
}

func scriptsAreLost(t *testing.T, cfg Config) {
	s := open(t, cfg)
	defer s.Close()
	for i := range 3 {
		// The batch needs three scripts, so the pipeline meets NOSCRIPT thrice.
		prepared := []store.Change{create(2 * i), create(2*i + 1)}
		requireApplied(t, s, prepared)
		onAll(t, s, "SCRIPT", "FLUSH")
		requireApplied(t, s, []store.Change{create(100 + i), finish(2 * i), mark(2*i + 1)})
	}
	_, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
	require.NoError(t, err)
	due := create(200).(*store.Create)
	due.Due = 0
	requireApplied(t, s, []store.Change{due})
	onAll(t, s, "SCRIPT", "FLUSH")
	claimed, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
}

func outOfMemory(t *testing.T, cfg Config) {
	s := open(t, cfg)
	defer s.Close()
	full := s.nodes.owner(s.slots[0])
	require.NoError(t, full.ConfigSet(t.Context(), "maxmemory", "6mb").Err())
	var refused error
	n := 0
	for ; refused == nil; n++ {
		require.Less(t, n, 300, "the server never ran out of memory")
		c := create(n).(*store.Create)
		c.Body = []byte(strings.Repeat("x", 256<<10))
		refused = s.Apply(t.Context(), []store.Change{c})[0]
	}
	require.ErrorContains(t, refused, "out of memory")
	_, err := s.Get(t.Context(), gid(n-1))
	require.ErrorIs(t, err, store.ErrNotFound)
	requireSound(t, s)
	// What was there before can be read, and goes on when there is memory again.
	require.NoError(t, full.ConfigSet(t.Context(), "maxmemory", "0").Err())
	var ends []store.Change
	for i := range n - 1 {
		ends = append(ends, finish(i))
	}
	requireApplied(t, s, ends)
	require.NoError(t, s.Drop(t.Context()))
}

func mayEvict(t *testing.T, cfg Config) {
	s := open(t, cfg)
	defer s.Close()
	for _, server := range s.nodes.all() {
		for _, policy := range []string{"allkeys-lru", "volatile-ttl", "allkeys-random"} {
			require.NoError(t, server.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
			_, err := Open(t.Context(), cfg)
			require.ErrorIs(t, err, store.ErrUnsafe)
			require.ErrorContains(t, err, policy)
			require.ErrorContains(t, err, "noeviction")
			require.ErrorContains(t, err, server.address)
		}
		require.NoError(t, server.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	}
}

func durabilityClasses(t *testing.T, cfg Config) {
	s := open(t, cfg)
	defer s.Close()
	for _, tt := range []struct {
		save, appendonly, appendfsync, noFsync string
		want                                   store.Durability
	}{
		{"", "no", "everysec", "no", store.D0},
		{"900 1", "no", "everysec", "no", store.D1},
		{"", "yes", "no", "no", store.D1},
		{"", "yes", "everysec", "no", store.D2},
		{"", "yes", "always", "no", store.D3},
		{"", "yes", "everysec", "yes", store.D1},
		{"", "yes", "always", "yes", store.D1},
	} {
		onAll(t, s, "CONFIG", "SET", "save", tt.save)
		onAll(t, s, "CONFIG", "SET", "appendonly", tt.appendonly)
		onAll(t, s, "CONFIG", "SET", "appendfsync", tt.appendfsync)
		onAll(t, s, "CONFIG", "SET", "no-appendfsync-on-rewrite", tt.noFsync)
		got, err := s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, tt.want, got.Durability, got.Values)
	}
}

// The class is the lower one when it is not known.
func configIsRefused(t *testing.T, cfg Config) {
	before := open(t, cfg)
	defer before.Close()
	onAll(t, before, "CONFIG", "SET", "appendonly", "yes")
	defer onAll(t, before, "CONFIG", "SET", "appendonly", "no") // a server that writes its first log does not end
	onAll(t, before, "CONFIG", "SET", "appendfsync", "always")
	onAll(t, before, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-config")
	at, err := url.Parse(cfg.URL)
	require.NoError(t, err)
	cfg.URL = fmt.Sprintf("redis://limited:secret@%s", at.Host)
	s := open(t, cfg)
	defer s.Close()
	got, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, unreadable, got.Values["appendfsync"])
	require.Equal(t, store.D1, got.Durability)
}
