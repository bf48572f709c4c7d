//go:build unix

package redisnodes_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // whatever the cores: mostly it waits for failovers
	goleak.VerifyTestMain(m)
}

// patient bounds waits for what a cluster does by itself in a few seconds.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, s *lab.Server) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	options.DisableIdentity = true
	client := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func connectCluster(t *testing.T, c *redisnodes.Cluster) *redis.ClusterClient {
	t.Helper()
	first, err := url.Parse(c.URLs()[0])
	require.NoError(t, err)
	password, _ := first.User.Password()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{first.Host}, Password: password, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func onEveryBinary(t *testing.T, test func(t *testing.T, cfg lab.Config)) {
	for _, binary := range lab.Redis.Binaries() {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			test(t, lab.Config{Binary: binary})
		})
	}
}

func TestStartCluster_ServesAllSlotsFromThreeNodes_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		const password = `p@ss "quoted" \`
		cfg.Settings = map[string]string{"requirepass": password, "appendonly": "yes"}
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: cfg})
		client := connectCluster(t, cluster)
		for i := range 100 {
			require.NoError(t, client.Set(t.Context(), strconv.Itoa(i), i, 0).Err())
		}
		for _, server := range cluster.Nodes() { // each serves a part, and knows the address of all
			node := connect(t, server)
			require.InDelta(t, 33, node.DBSize(t.Context()).Val(), 20)
			nodes := node.ClusterNodes(t.Context()).Val()
			for i, of := range cluster.Nodes() {
				require.Regexp(t, fmt.Sprintf(`%s@.* connected %d-%d\n`, of.Addr(), i*16384/3, (i+1)*16384/3-1), nodes)
			}
			require.Equal(t, map[string]string{"masterauth": password}, node.ConfigGet(t.Context(), "masterauth").Val())
			require.Equal(t, map[string]string{"appendonly": "yes"}, node.ConfigGet(t.Context(), "appendonly").Val())
		}
		require.NoError(t, cluster.Stop())
		for _, server := range cluster.Nodes() {
			require.NoDirExists(t, server.Dir())
		}
	})
}

func TestStartCluster_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for text, cfg := range map[string]redisnodes.ClusterConfig{
		"start a Redis Cluster: 0 masters, must be 1 to 100":                       {},
		"start a Redis Cluster: 101 masters, must be 1 to 100":                     {Masters: 101},
		"start a Redis Cluster: 2 replicas of each of 40 masters, must be 0 to 1":  {Masters: 40, Replicas: 2},
		"start a Redis Cluster: -1 replicas of each of 3 masters, must be 0 to 32": {Masters: 3, Replicas: -1},
		"start a Redis Cluster: settings: port: its nodes cannot share one":        {Masters: 3, Node: lab.Config{Settings: map[string]string{"port": "7000"}}},
	} {
		_, err := redisnodes.StartCluster(t.Context(), cfg)
		require.EqualError(t, err, text)
	}
	_, err := redisnodes.StartCluster(t.Context(), redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Settings: map[string]string{"no-such-setting": "1"}}})
	require.ErrorContains(t, err, "no-such-setting")
}

func TestWaitTakeover_ReturnsWhenAReplicaReplacedAKilledMaster_OnEveryBinary(t *testing.T) {
	t.Parallel()
	onEveryBinary(t, func(t *testing.T, cfg lab.Config) {
		ctx := patient(t)
		cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: cfg})
		client := connectCluster(t, cluster)
		slot := int(client.ClusterKeySlot(ctx, "key").Val())
		master, err := cluster.Master(ctx, slot)
		require.NoError(t, err)
		replicas, err := cluster.Replicas(ctx, master)
		require.NoError(t, err)
		require.Len(t, replicas, 1)
		require.Contains(t, cluster.Nodes()[3:], replicas[0])

		node := connect(t, master)
		pipe := node.Pipeline() // of one connection, as WAIT asks for its writes
		pipe.Set(ctx, "key", "value", 0)
		reached := pipe.Do(ctx, "WAIT", 1, 0)
		_, err = pipe.Exec(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, reached.Val())

		require.NoError(t, master.Kill())
		require.NoError(t, cluster.WaitTakeover(ctx, master))
		taken, err := cluster.Master(ctx, slot)
		require.NoError(t, err)
		require.Equal(t, replicas[0], taken)
		require.Equal(t, "value", connect(t, taken).Get(ctx, "key").Val())

		require.NoError(t, master.Restart(ctx)) // with its nodes.conf, it finds its place
		require.NoError(t, cluster.WaitReady(ctx))
		replicas, err = cluster.Replicas(ctx, taken)
		require.NoError(t, err)
		require.Equal(t, []*lab.Server{master}, replicas)
		slots, err := cluster.Slots(ctx, master)
		require.NoError(t, err)
		require.Empty(t, slots)
	})
}

func TestWaitTakeover_ReturnsWhenAReplicaReplacedAPausedMaster(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1})
	paused := cluster.Nodes()[0]
	require.NoError(t, paused.Signal(syscall.SIGSTOP))
	require.NoError(t, cluster.WaitTakeover(ctx, paused))
	master, err := cluster.Master(ctx, 0)
	require.ErrorContains(t, err, "CLUSTER INFO of "+paused.Addr(), "a node that does not answer agrees with nobody")
	require.Nil(t, master)

	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err = cluster.WaitReady(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, paused.Signal(syscall.SIGCONT))
	require.NoError(t, cluster.WaitReady(ctx))
	master, err = cluster.Master(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, cluster.Nodes()[3], master)

	require.NoError(t, paused.Signal(syscall.SIGSTOP))
	require.NoError(t, cluster.Stop(), "a paused node ends by itself, too")
}

func TestWaitTakeover_FailsWithTheContext_WithoutReplicas(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3})
	lost := cluster.Nodes()[1]
	require.NoError(t, lost.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := cluster.WaitTakeover(ctx, lost)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "nobody took over from "+lost.Addr())
}

func TestStartCluster_LeavesNothingBehind_WhenItFails(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, cfg *lab.Config) context.Context{
		"half-way": func(t *testing.T, cfg *lab.Config) context.Context {
			require.NoError(t, os.WriteFile(filepath.Join(cfg.Dir, "node-2"), nil, 0o600))
			return t.Context()
		},
		"as the context ends": func(t *testing.T, cfg *lab.Config) context.Context {
			cfg.Settings = map[string]string{"cluster-announce-bus-port": "1"} // they never meet
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(cfg.Dir, "node-5")); err == nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
			cfg := redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: lab.Config{Dir: dir}}
			_, err := redisnodes.StartCluster(prepare(t, &cfg.Node), cfg)
			require.ErrorContains(t, err, "start a Redis Cluster: ")
			require.DirExists(t, filepath.Join(dir, "node-1"), "it was started")
			running, err := filepath.Glob("/proc/[0-9]*/cwd") // none outside Linux
			require.NoError(t, err)
			for _, process := range running {
				cwd, _ := os.Readlink(process) // it may have ended
				require.NotContains(t, cwd, dir)
			}
		})
	}
}
