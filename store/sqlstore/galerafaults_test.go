package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/galera"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store"
)

// One cluster for all faults, one after the other: it takes seconds to start. Its nodes
// sync, and go on soon without one that is lost.
func TestGalera_WhoseNodesAreLost(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	cluster := labtest.StartGalera(t, galera.Config{Nodes: 3, SuspectTimeout: 2 * time.Second})
	_ = t.Run("ANodeWithoutTheOthers_FailsAndLosesNothing", func(t *testing.T) { testNoQuorum(t, cluster) }) &&
		t.Run("UnderLoad_LosesNothing", func(t *testing.T) { testLostNodes(t, cluster) }) &&
		t.Run("UnderCoordinators_EndsEverySaga", func(t *testing.T) { testKilledNode(t, cluster) })
}

// Coordinators on three nodes share the sagas. A node is killed, and comes back. Whoever
// has the acknowledgement finds the saga ended, on each node.
func testKilledNode(t *testing.T, cluster *galera.Cluster) {
	spread := openSpread(t, cluster, configOf(cluster.Nodes()[0]))
	defer spread.Close()
	all := &participants{journal: map[string][]store.Branch{}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var coordinators []*saga.Coordinator
	var url string
	for _, s := range spread.stores {
		settings, err := s.Settings(ctx)
		require.NoError(t, err)
		require.Equal(t, store.D3, settings.Durability)
		funcs := branch.NewFuncs(nil)
		url = funcs.Handle("branch", all.call)
		cfg := saga.DefaultConfig()
		cfg.Lease, cfg.RequestTimeout, cfg.PollInterval = 2*time.Second, time.Second, 100*time.Millisecond
		cfg.Logger = slog.New(slog.DiscardHandler)
		c, err := saga.New(s, funcs, cfg)
		require.NoError(t, err)
		defer c.Close(context.WithoutCancel(ctx))
		coordinators = append(coordinators, c)
	}

	var mu sync.Mutex
	acknowledged := map[string]bool{}
	acks := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	running.Go(func() {
		defer close(done)
		more := func(n int) {
			for from := acks(); acks() < from+n && ctx.Err() == nil; {
				<-pause.C
			}
		}
		more(50)
		node := cluster.Nodes()[2]
		err := node.Kill()
		more(50) // by the others
		if err := errors.Join(err, node.Restart(ctx), cluster.WaitReady(ctx)); err != nil {
			t.Errorf("kill a node and start it again: %v", err)
			cancel()
		}
		more(50)
	})
	for range 12 {
		running.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-done:
					return
				default:
				}
				s := someSaga(url)
				for ctx.Err() == nil { // as a client that asks the next coordinator
					c := coordinators[rand.N(len(coordinators))]
					err := c.Submit(ctx, s)
					if err == nil {
						mu.Lock()
						acknowledged[s.GID] = true
						mu.Unlock()
						break
					}
					if !errors.Is(err, saga.ErrUnknown) && ctx.Err() == nil {
						t.Errorf("submit: %v", err)
						break
					}
				}
			}
		})
	}
	running.Wait()
	require.NoError(t, ctx.Err())
	require.Eventually(t, func() bool {
		stats, err := spread.Stats(ctx)
		return err == nil && stats.Unfinished == 0
	}, patience, 10*time.Millisecond)
	ended := requireSameOnAllNodes(t, spread)
	for gid := range acknowledged {
		require.Contains(t, ended, gid, "acknowledged, and not there")
	}
	require.Len(t, all.journal, len(ended), "sagas that ended, and those of which a branch was called")
	for _, r := range ended {
		all.requireOneOutcome(t, r)
	}
}

// requireSameOnAllNodes returns the sagas of all nodes.
func requireSameOnAllNodes(t *testing.T, s *spread) (all map[string]store.Record) {
	t.Helper()
	for _, each := range s.stores {
		found := map[string]store.Record{}
		require.NoError(t, store.Walk(t.Context(), each, store.Query{Limit: 1000}, func(r store.Record) { found[r.GID] = r }))
		if all == nil {
			all = found
		}
		require.Equal(t, all, found)
		requireVerified(t, each)
	}
	return all
}

// A node is stopped, and another one killed, under load. What was said to be done is
// there, on each node, and what was not said is never refused.
func testLostNodes(t *testing.T, cluster *galera.Cluster) {
	s := openSpread(t, cluster, hasty(configOf(cluster.Nodes()[0])))
	defer s.Close()
	l := newLoad(t, s)
	l.runBeside(func(stop <-chan struct{}) {
		for i, node := range cluster.Nodes()[:2] {
			calls := l.calls.Load()
			for l.calls.Load() < calls+100 {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
			var err error
			if i == 0 { // until the others go on without it
				err = errors.Join(node.Signal(syscall.SIGSTOP), waitSize(t.Context(), cluster, 1, "2"), node.Signal(syscall.SIGCONT))
			} else {
				err = errors.Join(node.Kill(), node.Restart(t.Context()))
			}
			if err := errors.Join(err, cluster.WaitReady(t.Context())); err != nil {
				l.fault("node %d: %v", i, err)
				return
			}
		}
	})
	l.requireSound()
	requireSameOnAllNodes(t, s)
}

// waitSize waits until node i finds the cluster to have so many nodes.
func waitSize(ctx context.Context, cluster *galera.Cluster, i int, nodes string) error {
	return lab.Poll(ctx, func(ctx context.Context) error {
		status, err := cluster.Status(ctx, i)
		if size := status["wsrep_cluster_size"]; err == nil && size != nodes {
			err = fmt.Errorf("the cluster has %s nodes", size)
		}
		return err
	})
}

// A node that has lost the others does not answer, and writes nothing. When they are back
// it goes on.
func testNoQuorum(t *testing.T, cluster *galera.Cluster) {
	nodes := cluster.Nodes()
	s := open(t, hasty(configOf(nodes[0])))
	requireApplied(t, s, create(1), create(2))
	for _, node := range nodes[1:] {
		require.NoError(t, node.Signal(syscall.SIGSTOP))
	}
	const notPrepared = "WSREP has not yet prepared node for application use"
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), gid(1))
		return err != nil && strings.Contains(err.Error(), notPrepared)
	}, patience, 10*time.Millisecond)
	for name, err := range map[string]error{
		"apply": s.Apply(t.Context(), []store.Change{finish(1)})[0],
		"batch": s.Apply(t.Context(), []store.Change{mark(1), create(3)})[0],
	} {
		require.ErrorContains(t, err, notPrepared, name)
		require.False(t, isRefusal(err), name)
	}
	_, err := s.ClaimDue(t.Context(), "other", time.Minute, 10)
	require.ErrorContains(t, err, notPrepared)
	_, err = Open(t.Context(), s.cfg)
	require.ErrorContains(t, err, "the Galera node is not ready")
	for _, node := range nodes[1:] {
		require.NoError(t, node.Signal(syscall.SIGCONT))
	}
	require.NoError(t, cluster.WaitReady(t.Context()))
	require.Equal(t, []int{1, 1, 0}, []int{stageOf(t, s, 1), stageOf(t, s, 2), stageOf(t, s, 3)})
	requireApplied(t, s, finish(1), mark(2), create(3))
	requireVerified(t, s)
}
