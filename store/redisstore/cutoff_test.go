package redisstore

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
)

// A network splits: one side has a master of a cluster and a replica of another one. Some app
// hosts reach both sides, others only that master. It takes writes until its
// cluster-node-timeout is over. These are lost when it is back, but not those of stores that
// wait for a replica.
func TestStore_AMasterIsCutOff_ItsReplicaTakesOver(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, CanCutOff: true, Node: lab.Config{Settings: map[string]string{
		"cluster-require-full-coverage": "no", "cluster-node-timeout": "2000",
	}}})
	cutOff, beside := cluster.Nodes()[0], cluster.Nodes()[4]
	var apps []*app
	for replicas := range 2 {
		for _, alone := range []bool{false, true} {
			cfg := testConfig(cluster.Nodes()[1])
			cfg.Replicas = replicas
			s := open(t, cfg)
			defer s.Close()
			a := &app{alone: alone, only: cutOff.Addr()}
			a.watch(s)
			a.load = startLoad(t, s)
			apps = append(apps, a)
		}
	}
	slot := apps[0].s.slots[0]
	nodes, old := apps[0].s.nodes, apps[0].s.nodes.owner(slot)
	before := make([]map[string]bool, len(apps))
	for i, a := range apps {
		require.Equal(t, a.only, a.s.nodes.owner(slot).address)
		a.await(t, 100)
		a.note(func() { before[i] = maps.Clone(a.ended) })
	}
	requireReplicated(t, apps[0].s, slot)

	began := time.Now()
	require.NoError(t, cluster.CutOff(t.Context(), cutOff, beside))
	for _, a := range apps {
		a.split.Store(a.alone)
	}
	took := make([]bool, len(apps))
	for i, a := range apps {
		took[i] = a.s.cfg.Replicas == 0 && a.endsMoreThere(t, slot)
	}
	apps[1].awaitThat(t, apps[1].refused)
	t.Logf("the master took writes for %v", time.Since(began).Round(time.Millisecond))
	apps[0].awaitThat(t, func() bool { return nodes.owner(slot).address != old.address })
	apps[0].awaitOn(t, slot)
	t.Logf("its replica took writes after %v", time.Since(began).Round(time.Millisecond))
	other := &node{nodes.client(beside.Addr()), beside.Addr()}
	defer other.Close()
	for range 20 {
		require.NoError(t, nodes.ask(t.Context(), []*node{other, nodes.owner(slot)}, old))
		require.NotEqual(t, old.address, nodes.owner(slot).address, "although a replica on its side says so")
	}

	cfg := apps[0].s.cfg
	cfg.URL = cutOff.URL()
	restarted := open(t, cfg)
	defer restarted.Close()
	require.Equal(t, nodes.owner(slot).address, restarted.nodes.owner(slot).address)

	require.NoError(t, cluster.Reconnect(t.Context()))
	require.NoError(t, cluster.WaitReady(t.Context()))
	for _, a := range apps {
		a.split.Store(false)
	}
	for _, a := range apps {
		for _, each := range a.s.slots {
			a.awaitOn(t, each)
		}
		a.stop()
	}
	for i, a := range apps {
		kept := make(map[string]bool)
		require.NoError(t, store.Walk(t.Context(), a.s, store.Query{Status: store.StatusSucceeded, Limit: 1000}, func(r store.Record) { kept[r.GID] = true }))
		for gid := range a.ended {
			if !kept[gid] {
				a.lost[gid] = true
			}
		}
		t.Logf("replicas=%d, it reaches only the master that is cut off: %v: %d sagas ended, %d lost", a.s.cfg.Replicas, a.alone, len(a.ended), len(a.lost))
		if a.s.cfg.Replicas > 0 {
			require.Empty(t, a.lost)
		}
		if took[i] {
			require.NotEmpty(t, a.lost)
		}
		for gid := range a.lost {
			require.NotContains(t, before[i], gid)
			require.Equal(t, slot, a.s.slots[a.s.shard(gid)])
		}
		requireSound(t, a.s)
	}
}

// app is an app host with load. While the network is split, it may reach one master only.
type app struct {
	*load
	alone bool
	only  string
	split atomic.Bool
}

// watch has all commands of a store ask the app whether they reach their server.
func (a *app) watch(s *Store) {
	client := s.nodes.client
	s.nodes.client = func(address string) *redis.Client {
		c := client(address)
		c.AddHook(way{a, address})
		return c
	}
	for _, n := range s.nodes.seeds {
		n.AddHook(way{a, n.address})
	}
	for _, n := range s.nodes.known {
		n.AddHook(way{a, n.address})
	}
}

// way is that from an app host to a server.
type way struct {
	*app
	to string
}

var errUnreachable = errors.New("no route to host")

func (w way) err() error {
	if w.split.Load() && w.to != w.only {
		return errUnreachable
	}
	return nil
}

func (way) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w way) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := w.err(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (w way) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := w.err(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

// refused reports whether a server has refused a call because it is in no majority.
func (a *app) refused() bool {
	for err := range a.failures {
		if strings.Contains(err, "CLUSTERDOWN") {
			return true
		}
	}
	return false
}

// endsMoreThere waits until sagas with this slot, one at least of them begun by now, have
// ended on the one server, and reports whether it took them.
func (a *app) endsMoreThere(t *testing.T, slot int) bool {
	var before map[string]bool
	more := 0
	a.awaitThat(t, func() bool {
		if before == nil {
			before = maps.Clone(a.ended)
		}
		more = 0
		for gid := range a.ended {
			if !before[gid] && a.s.slots[a.s.shard(gid)] == slot {
				more++
			}
		}
		return more > 1 || a.refused()
	})
	return more > 1 && a.s.nodes.owner(slot).address == a.only
}

// requireReplicated waits until a replica has all that the master of a slot has now.
func requireReplicated(t *testing.T, s *Store, slot int) {
	pipe := s.nodes.owner(slot).Pipeline()
	pipe.Set(t.Context(), "{"+shardTags(s.cfg.Shards)[0]+"}", "", 0)
	pipe.Do(t.Context(), "WAIT", 1, 0)
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
}

// With min-replicas-to-write a master that is cut off takes writes for less time. Redis 5.0
// does not apply it to scripts.
func TestApply_TooFewReplicas_IsRefusedUnlessRedisIs5(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			s := open(t, testConfig(labtest.Start(t, lab.Redis, lab.Config{Binary: binary})))
			defer s.Close()
			server := s.nodes.only
			require.NoError(t, server.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
			err := s.Apply(t.Context(), []store.Change{create(0)})[0]
			if info := server.Info(t.Context(), "server").Val(); strings.Contains(info, "redis_version:5.") {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "NOREPLICAS")
			require.NoError(t, server.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
			requireApplied(t, s, creates(1)) // nothing was done
		})
	}
}
