package redisstore

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
)

// One master of a cluster has a trouble after the other.
func TestStore_AMasterIsInTrouble(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3})
	s := open(t, testConfig(cluster.Nodes()[0]))
	defer s.Close()
	ctx, troubled := t.Context(), s.nodes.owner(s.slots[0])
	created := 0
	// createDue creates due sagas on the troubled master, and then some on the others.
	createDue := func(t *testing.T, n int) (of, others int) {
		t.Helper()
		var first, then []store.Change
		for ; len(first) < n || len(then) < n; created++ {
			c := create(created).(*store.Create)
			c.Due = 0
			if s.nodes.owner(s.slots[s.shard(c.GID)]) == troubled {
				first = append(first, c)
			} else {
				then = append(then, c)
			}
		}
		requireApplied(t, s, first)
		requireApplied(t, s, then)
		return len(first), len(then)
	}
	t.Run("it always answers late", func(t *testing.T) {
		of, others := createDue(t, 10)
		for claimed, tries := 0, 0; claimed < of+others; tries++ {
			require.Less(t, tries, 10, "%d claimed", claimed)
			require.NoError(t, troubled.Do(ctx, "CLIENT", "PAUSE", (3*s.patience()).Milliseconds()).Err())
			records, err := s.ClaimDue(ctx, "other", time.Minute, 100)
			require.NoError(t, err)
			claimed += len(records)
			require.NoError(t, troubled.Ping(ctx).Err()) // until it answers
			s.nodes.background.Wait()
		}
	})
	t.Run("it is out of memory", func(t *testing.T) {
		of, others := createDue(t, 20)
		require.NoError(t, troubled.ConfigSet(ctx, "maxmemory", "1mb").Err())
		var failed error
		for claimed, tries := 0, 0; claimed < others; tries++ {
			require.Less(t, tries, others, "%d claimed", claimed)
			records, err := s.ClaimDue(ctx, "other", time.Minute, 10)
			if err != nil {
				failed = err
			}
			claimed += len(records)
		}
		require.ErrorContains(t, failed, troubled.address+": OOM")
		require.NoError(t, troubled.ConfigSet(ctx, "maxmemory", "0").Err())
		records, err := s.ClaimDue(ctx, "other", time.Minute, 100)
		require.NoError(t, err)
		require.Len(t, records, of)
	})
	createDue(t, 10) // enough for every shard
	for shard, moved := range []string{"the due index", "the saga"} {
		t.Run("it has moved only "+moved, func(t *testing.T) {
			page, err := s.List(ctx, store.Query{Status: store.StatusSubmitted})
			require.NoError(t, err)
			i := slices.IndexFunc(page.Records, func(r store.Record) bool { return s.shard(r.GID) == shard })
			record, slot, key := page.Records[i], s.slots[shard], s.sagaKey(page.Records[i].GID)
			if moved == "the due index" {
				key = s.indexKey(shard)
			}
			from, to := s.nodes.owner(slot), s.nodes.owner(s.slots[len(s.slots)-1])
			host, port, err := net.SplitHostPort(to.address)
			require.NoError(t, err)
			id := func(n *node) any { return n.Do(ctx, "CLUSTER", "MYID").Val() }
			require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from)).Err())
			require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to)).Err())
			require.NoError(t, from.Do(ctx, "MIGRATE", host, port, "", 0, 5000, "AUTH", cluster.Nodes()[0].Password(), "KEYS", key).Err())
			found, err := s.Get(ctx, record.GID)
			require.NoError(t, err)
			require.Equal(t, record, found)
			requireSound(t, s)
			require.ErrorContains(t, s.Apply(ctx, []store.Change{&store.Transition{
				GID: record.GID, Epoch: record.Epoch, From: record.Status, To: store.StatusFailed,
			}})[0], "TRYAGAIN")
		})
	}
}

// A coordinator starts while a master that was restarted reads its data.
func TestOpen_AMasterIsLoading_ServesTheOthers(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Settings: map[string]string{
		"key-load-delay": "10000", "loading-process-events-interval-bytes": "1024", // it takes 1 s, and answers meanwhile
	}}})
	s := open(t, testConfig(cluster.Nodes()[0]))
	defer s.Close()
	requireApplied(t, s, creates(300))
	at := slices.IndexFunc(cluster.Nodes(), func(n *lab.Server) bool { return n.Addr() != s.nodes.owner(slotOf(s.layoutKey())).address })
	loading := cluster.Nodes()[at]
	client := redis.NewClient(&redis.Options{Addr: loading.Addr(), Password: loading.Password(), MaxRetries: -1, Protocol: 2})
	defer client.Close()
	require.NoError(t, client.Save(t.Context()).Err())
	require.NoError(t, loading.Kill())
	restarted := make(chan error)
	go func() { restarted <- loading.Restart(t.Context()) }()
	require.Eventually(t, func() bool { return redis.IsLoadingError(client.DBSize(t.Context()).Err()) }, 20*time.Second, time.Millisecond)
	cfg := s.cfg
	cfg.URL = cluster.Nodes()[(at+1)%3].URL()
	o, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	defer o.Close()
	require.NoError(t, <-restarted)
	require.NoError(t, cluster.WaitReady(t.Context()))
	requireApplied(t, o, creates(330)[300:])
}
