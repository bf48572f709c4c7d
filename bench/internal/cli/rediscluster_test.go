package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
)

// requireCluster wants the result of a run on a Redis Cluster with its costs.
func requireCluster(t *testing.T, got outcome) (s result.Summary) {
	t.Helper()
	got.requireRan(t)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	require.Equal(t, 3, s.Run.Store.Masters())
	require.True(t, s.Run.SharedHost)
	require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated)
	if s.Load.Requests > 1000 { // else a master may have none of them
		c := s.CostPerSaga
		require.Positive(t, *c.StoreBusiestCPUUS)
		require.Less(t, *c.StoreBusiestCPUUS, *c.StoreCPUUS)
		require.GreaterOrEqual(t, *s.Resources.StoreCPUImbalance, 1.0)
		require.Positive(t, *c.StoreCalls)
		require.Positive(t, *c.StoreBytesIn)
	}
	return s
}

func TestRun_StartsARedisCluster(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := requireCluster(t, p.run("run", "redis", "--start", "--nodes", "3", "--durability", "D2",
		"--duration", "1s", "--warmup", "200ms", "--out", "there", "--json"))
	require.Equal(t, "load, app and store on one machine, in processes of their own; the store is a Redis Cluster of 3 masters", s.Run.Topology)
	require.Equal(t, "D2", s.Run.Store.Durability)
	require.NotNil(t, s.Resources.StoreCoresUsable, "of its processes")
	require.NotNil(t, s.Environment.StoreDisk)
	page, err := os.ReadFile(filepath.Join(p.dir, "there", "report.md"))
	require.NoError(t, err)
	if s.Load.Requests > 1000 {
		require.Contains(t, string(page), "× the mean")
	}
}

// Any node of a cluster names all of it.
func TestBench_OnARedisCluster(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: lab.Config{Settings: map[string]string{
		"cluster-node-timeout": "15000", // a busy machine fails nobody over
	}}})
	replica := cluster.URLs()[5]
	p := newProgram(t)
	s := requireCluster(t, p.run("run", replica, "--duration", "500ms", "--warmup", "100ms", "--json"))
	require.Contains(t, s.Run.Topology, "a Redis Cluster of 3 masters and 3 replicas")
	require.Equal(t, ", replicas included", s.Run.Store.CostNote())

	server := p.serve(cluster.URLs()[1], "--listen", "127.0.0.1:0")
	s = requireCluster(t, p.run("load", cluster.URLs()[2], "--target", server.url, "--duration", "500ms", "--warmup", "0s", "--json"))
	server.stop()

	got := p.run("check", replica, "--json")
	require.Equal(t, exitOK, got.code, got.stderr+got.stdout)
	var checked result.Envelope
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &checked))
	require.Equal(t, s.Check.Acknowledged, *checked.Check.Terminal)
	require.Equal(t, 3, checked.Run.Store.Masters())

	got = p.run("lua", "--redis", replica, "--duration", "100ms")
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "is a node of a Redis Cluster")
}

// How a search goes on that holds rates is in package capacity.
func TestCapacity_StartsARedisCluster(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run(append([]string{"capacity", "redis", "--start", "--nodes", "3", "--json", "--out", "found"}, shortSearch...)...)
	require.Equal(t, exitInvalid, got.code, got.stderr)
	s := capacityOf(t, got.stdout)
	require.Equal(t, 3, s.Run.Store.Masters())
	require.Contains(t, s.Run.Topology, "the store is a Redis Cluster of 3 masters")
	require.Zero(t, *s.Check.Lost+*s.Check.BothOutcomes+*s.Check.Uncompensated+*s.Check.Unfinished)
	for _, m := range s.Capacity.Scaling {
		if m.Load.Requests > 1000 { // else a master may have none of them
			require.Less(t, *m.CostPerSaga.StoreBusiestCPUUS, *m.CostPerSaga.StoreCPUUS)
			require.GreaterOrEqual(t, *m.Resources.StoreCPUImbalance, 1.0)
		}
	}
	believe(t, filepath.Join(p.dir, "found"))
	shown := p.run("report", "found", "--verbose").stdout
	require.Contains(t, shown, "sagas/s on redis with 3 masters (D0: nothing on disk) held at")
	require.Contains(t, shown, "the store is a Redis Cluster of 3 masters")
	planned := p.run("plan", "--rate", "1/s", "--slo", "p50=200ms", "--from", "found")
	require.Contains(t, firstLine(planned.stdout), "1 app host and 3 store nodes (redis) for 1.00 sagas/s")
}

// One server is beside the busiest master of a cluster.
func TestCompare_OneServerAndARedisCluster(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	got := p.run("compare", "redis --start", "redis --start --nodes 3 --replicas 1", "--pairs", "1", "--duration", "500ms", "--warmup", "100ms", "--json", "--out", "compared")
	require.Contains(t, []int{exitOK, exitInvalid}, got.code, got.stderr)
	c := comparisonOf(t, got.stdout).Compare
	require.Equal(t, []int{0, 3}, []int{c.A.Store.Masters(), c.B.Store.Masters()})
	require.Contains(t, c.Differences, compare.Difference{Of: "store", Name: "nodes", A: "–", B: "a Redis Cluster of 3 masters and 3 replicas"})
	require.NotContains(t, got.stdout, "mismatched machine")

	shown := p.run("report", "compared/runs/01-a", "compared/runs/01-b").stdout
	require.Regexp(t, `store +redis [0-9.]+ +redis [0-9.]+ with 3 masters`, shown)
	if got.code == exitOK {
		require.Contains(t, shown, "CPU of the busiest, µs")
		require.Contains(t, shown, "times the mean")
	}
}
