package backend

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/sample"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store/open"
)

// The parts share one cluster, one after the other: the later ones change it.
func TestUsage_OfARedisCluster(t *testing.T) {
	t.Parallel()
	const masters = 3
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: masters, Replicas: 1, Node: lab.Config{Settings: map[string]string{
		"appendonly": "yes", "cluster-node-timeout": "15000", // a busy machine fails nobody over
	}}})
	server := Server{Driver: open.Redis, URL: cluster.URLs()[masters]} // any node: a replica
	for _, node := range cluster.Nodes() {
		server.PIDs = append(server.PIDs, node.PID())
	}
	first, err := url.Parse(cluster.URLs()[0])
	require.NoError(t, err)
	password, _ := first.User.Password()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{first.Host}, Password: password, DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	const sets = 3000
	load := func(t *testing.T) {
		for i := range sets {
			require.NoError(t, client.HSet(t.Context(), fmt.Sprintf("key:%06d", i), "f", strings.Repeat("x", 100)).Err())
		}
	}
	load(t) // opens the connections
	// Each replica tells its master once a second what it has, and that counts as received.
	acks := func(u sample.Usage) float64 { return masters * 60 * (u.Elapsed.Seconds() + 2) }

	t.Run("costs are sums over the nodes", func(t *testing.T) {
		s := begin(t, config(server))
		load(t)
		u := end(t, s)
		require.EqualValues(t, sets, *u.Total.StoreCalls, "a replica repeats what clients sent to its master")
		require.InDelta(t, sets*len("*4\r\n$4\r\nhset\r\n$10\r\nkey:000000\r\n$1\r\nf\r\n$100\r\n\r\n")+sets*100, *u.Total.StoreBytesIn, acks(u))
		require.EqualValues(t, sets*len(":0\r\n"), *u.Total.StoreBytesOut)
		require.NotNil(t, u.Total.StoreMemoryBytes)
		require.NotNil(t, u.Total.StoreBytesWritten)
		require.True(t, u.Resources.StoreOneCore)
		require.ElementsMatch(t, server.PIDs, mustOpen(t, server).PIDs())

		all, busiest, imbalance := *u.Total.StoreCPUUS, *u.Total.StoreBusiestCPUUS, *u.Resources.StoreCPUImbalance
		require.Positive(t, busiest)
		require.Less(t, busiest, all)
		require.GreaterOrEqual(t, imbalance, 1.0)
		require.LessOrEqual(t, imbalance, float64(masters))
		require.Greater(t, all-masters*busiest/imbalance, 0.0, "the replicas' CPU is a cost, too")
		require.LessOrEqual(t, *u.Resources.StoreMainCore*u.Elapsed.Seconds()*1e6, busiest*1.5, "of the busiest master")
		require.Greater(t, *u.Resources.StoreRSSBytes, 2*masters*1e6)
	})
	t.Run("the sampler alone costs nothing", func(t *testing.T) {
		u := end(t, begin(t, config(server)))
		require.Zero(t, *u.Total.StoreCalls)
		require.InDelta(t, 0, *u.Total.StoreBytesIn, acks(u))
		require.Zero(t, *u.Total.StoreBytesOut)
	})
	t.Run("its nodes are known", func(t *testing.T) {
		found, err := ClusterOf(t.Context(), server)
		require.NoError(t, err)
		require.Equal(t, "a Redis Cluster of 3 masters and 3 replicas", found.String())
		require.True(t, found.Local())
		require.Contains(t, found.Replicas, cluster.Nodes()[masters].Addr())

		asked := redis.NewClient(&redis.Options{Addr: cluster.Nodes()[masters].Addr(), Password: password})
		defer asked.Close()
		require.NoError(t, asked.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "unknown-endpoint").Err())
		same, err := ClusterOf(t.Context(), server)
		require.NoError(t, err, "a node that does not tell the hosts")
		require.Equal(t, found, same)
		require.NoError(t, asked.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "ip").Err())
	})
	t.Run("a replica that becomes master changes it", func(t *testing.T) {
		s := begin(t, config(server))
		promoted := cluster.Nodes()[masters]
		node := redis.NewClient(&redis.Options{Addr: promoted.Addr(), Password: promoted.Password()})
		require.NoError(t, node.ClusterFailover(t.Context()).Err())
		require.NoError(t, node.Close())
		require.Eventually(t, func() bool {
			slots, err := cluster.Slots(t.Context(), promoted)
			return err == nil && len(slots) > 0
		}, time.Minute, 10*time.Millisecond)
		requireUnknown(t, finish(t, s), "the store: the cluster changed during the run")
		require.NoError(t, cluster.WaitReady(t.Context()))
	})
	t.Run("a lost node makes all unknown", func(t *testing.T) {
		s := begin(t, config(server))
		lost := cluster.Nodes()[2*masters-1] // a replica
		require.NoError(t, lost.Kill())
		requireUnknown(t, finish(t, s), "the store: "+lost.Addr()+": ")
		require.NoError(t, lost.Restart(t.Context()))
		require.NoError(t, cluster.WaitReady(t.Context()))
	})
	t.Run("a restarted node makes all unknown", func(t *testing.T) {
		s := begin(t, config(server))
		require.NoError(t, cluster.Nodes()[2*masters-1].Restart(t.Context()))
		require.NoError(t, cluster.WaitReady(t.Context()))
		requireUnknown(t, finish(t, s), "the store: ")
	})
}

func TestUsage_OfTheMasterThatSentinelsName(t *testing.T) {
	t.Parallel()
	started := labtest.StartSentinel(t, lab.Config{})
	master, sentinel := started.Nodes()[0], started.Sentinels()[1]
	query := url.Values{"master_name": {redisnodes.MasterName}, "password": {master.Password()}, "addr": {sentinel.Addr()}}
	at := url.URL{Scheme: "redis", User: url.UserPassword("", sentinel.Password()), Host: "127.0.0.1:1", RawQuery: query.Encode()}
	store := mustOpen(t, Server{Driver: open.Redis, URL: at.String()})
	require.Equal(t, []int{master.PID()}, store.PIDs())
	found, err := ClusterOf(t.Context(), Server{Driver: open.Redis, URL: at.String()})
	require.NoError(t, err)
	require.Empty(t, found.Masters)

	query.Set("master_name", "another")
	at.RawQuery = query.Encode()
	_, err = Sampler(Server{Driver: open.Redis, URL: at.String()})(t.Context())
	require.ErrorContains(t, err, "sentinel "+sentinel.Addr()+": ")
	require.NotContains(t, err.Error(), sentinel.Password())
}

func mustOpen(t *testing.T, server Server) sample.Store {
	t.Helper()
	store, err := Sampler(server)(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// requireUnknown wants no figure of the store, and the reason.
func requireUnknown(t *testing.T, u sample.Usage, why string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(u.Failures, func(f string) bool { return strings.HasPrefix(f, why) }), "%q", u.Failures)
	require.Nil(t, u.Total.StoreCPUUS)
	require.Nil(t, u.Total.StoreBusiestCPUUS)
	require.Nil(t, u.Total.StoreBytesIn)
	require.Nil(t, u.Total.StoreMemoryBytes)
	require.Nil(t, u.Resources.StoreCPUImbalance)
	require.Nil(t, u.Resources.StoreMainCore)
}

func TestStart_RefusesNodesThatItCannotStart(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		name string
		of   Start
	}{
		"--nodes: 0, must be 1 to 16":    {"redis", Start{Start: true, Nodes: 0}},
		"--nodes: 17, must be 1 to 16":   {"redis", Start{Start: true, Nodes: 17}},
		"--replicas: -1, must be 0 to 5": {"redis", Start{Start: true, Nodes: 3, Replicas: -1}},
		"--replicas: 6, must be 0 to 5":  {"redis", Start{Start: true, Nodes: 3, Replicas: 6}},
		"--nodes: 2, with --replicas must be 1, or 3 to 16: a replica takes over only in a cluster of at least 3": {"redis", Start{Start: true, Nodes: 2, Replicas: 1}},
		"--nodes: 2, with --durability D4 must be 1, or 3 to 16: a replica takes over":                            {"redis", Start{Start: true, Nodes: 2, Replicas: ReplicasOfClass, Durability: "D4"}},
		"--replicas: 0, must be at least 1 with --durability D4":                                                  {"redis", Start{Start: true, Nodes: 3, Durability: "D4"}},
		"--replicas: 2, must be 0 or 1 without a Redis Cluster":                                                   {"postgres", Start{Start: true, Nodes: 1, Replicas: 2}},
		"--nodes is for a Redis Cluster: --start starts one mysql, and with --replicas 1 also":                    {"mysql", Start{Start: true, Nodes: 3}},
		"--nodes and --replicas are for servers that --start starts; for a Redis Cluster of yours, give the URL":  {"redis", Start{Nodes: 3}},
		"--nodes and --replicas are for servers that --start starts; ":                                            {"pebble", Start{Nodes: 1, Replicas: 1}},
	} {
		target, err := open.Parse(c.name, open.DefaultConfig())
		require.NoError(t, err)
		_, err = c.of.Check(c.name, &target)
		require.ErrorContains(t, err, says)
	}
}

func TestURL_HasAllNodes(t *testing.T) {
	t.Parallel()
	one := Started{URLs: []string{"redis://:a%2Fb@127.0.0.1:1"}}
	require.Equal(t, "redis://:a%2Fb@127.0.0.1:1", one.URL())
	three := Started{URLs: []string{"redis://:a%2Fb@127.0.0.1:1", "redis://:a%2Fb@127.0.0.1:2", "redis://:a%2Fb@127.0.0.1:3"}}
	at, err := parseRedisURL(t.Context(), three.URL())
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, at.addresses)
	require.Equal(t, "a/b", at.options.Password)
}
