package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
	"sagabench/store/groupcommit"
)

func TestApply_SpreadsSagasEvenlyOverTheMasters(t *testing.T) {
	t.Parallel()
	s := open(t, clusterConfig(shared.Cluster(t)))
	defer s.Close()
	const sagas = 6000
	requireApplied(t, s, creates(sagas))
	for _, server := range s.nodes.all() {
		held, err := server.Keys(t.Context(), s.cfg.Prefix+":*").Result()
		require.NoError(t, err)
		require.InEpsilon(t, sagas/3, len(held), 0.1, server)
	}
	requireSound(t, s)
}

func TestApply_WhileSlotsMove_LosesNothing(t *testing.T) {
	t.Parallel()
	for _, binary := range lab.Redis.Binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Binary: binary}})
			masters := cluster.Nodes()
			s := open(t, testConfig(masters[0]))
			defer s.Close()
			requireApplied(t, s, creates(3000)) // so that slots take a while to move
			load := startLoad(t, s)
			for n := range masters {
				from, to := masters[n], masters[(n+1)%len(masters)]
				slots, err := cluster.Slots(t.Context(), from)
				require.NoError(t, err)
				slots = slices.DeleteFunc(slots, func(slot int) bool { return !slices.Contains(s.slots, slot) && slot%100 != 0 })
				require.NoError(t, cluster.MoveSlots(t.Context(), from, to, slots...))
				load.await(t, 300)
			}
			for err := range load.stop() {
				require.Regexp(t, "TRYAGAIN|MOVED|ASK", err)
			}
			require.Empty(t, load.lost)
			for gid := range load.ended {
				r, err := s.Get(t.Context(), gid)
				require.NoError(t, err)
				require.Equal(t, store.StatusSucceeded, r.Status)
			}
			requireSound(t, s)
		})
	}
}

// The sagas of the others go on, although the cluster has not yet noticed anything.
func TestStore_AServerIsStopped_HoldsUpItsOwnSagas(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Settings: map[string]string{
		"cluster-require-full-coverage": "no",
	}}})
	cfg := testConfig(cluster.Nodes()[1])
	cfg.Timeout = time.Minute // nobody waits for it
	s := open(t, cfg)
	defer s.Close()
	var due, others []store.Change
	held := 0
	stopped := s.nodes.owner(s.slots[0])
	for i := range 60 {
		c := create(i).(*store.Create)
		c.Due = 0
		due = append(due, c)
		if s.nodes.owner(s.slots[s.shard(c.GID)]) == stopped {
			held++
		} else {
			others = append(others, finish(i))
		}
	}
	requireApplied(t, s, due)
	server := cluster.Nodes()[0]
	require.Equal(t, server.Addr(), stopped.address)
	require.NoError(t, server.Signal(syscall.SIGSTOP))
	defer func() { require.NoError(t, server.Signal(syscall.SIGCONT)) }()

	records, err := s.ClaimDue(t.Context(), "other", time.Minute, len(due))
	require.NoError(t, err)
	require.Len(t, records, len(others))

	commit, err := groupcommit.New(s, groupcommit.DefaultConfig())
	require.NoError(t, err)
	defer func() {
		require.NoError(t, server.Signal(syscall.SIGCONT))
		commit.Close()
	}()
	waiting := make(chan error, held)
	for i := range due {
		if s.nodes.owner(s.slots[s.shard(gid(i))]) == stopped {
			go func() { waiting <- commit.Apply(context.Background(), finish(i)) }()
		}
	}
	for _, change := range others {
		change.(*store.Transition).Epoch = 2 // claimed above
		require.NoError(t, commit.Apply(t.Context(), change))
	}
	require.Empty(t, waiting)
	require.NoError(t, server.Signal(syscall.SIGCONT))
	for range held {
		require.NoError(t, <-waiting)
	}
	requireSound(t, s)
}

// A replica has what its master acknowledged a moment later, so a failover may take that
// back. Not so if the store waits for the replica.
func TestStore_AMasterIsKilled_ItsReplicaTakesOver(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{0, 1} {
		t.Run(fmt.Sprint("replicas=", replicas), func(t *testing.T) {
			t.Parallel()
			failOver(t, replicas)
		})
	}
}

func failOver(t *testing.T, replicas int) {
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: lab.Config{Settings: map[string]string{
		"cluster-require-full-coverage": "no",
	}}})
	cfg := testConfig(cluster.Nodes()[1])
	cfg.Replicas = replicas
	s := open(t, cfg)
	defer s.Close()
	load := startLoad(t, s)
	load.await(t, 300)
	killed := cluster.Nodes()[0]
	require.NoError(t, killed.Kill())
	load.await(t, 300) // of the other servers
	require.NoError(t, cluster.WaitTakeover(t.Context(), killed))
	if replicas == 0 {
		load.awaitOn(t, s.slots[0])
	}
	// The former master comes back as a replica, and what it knows does not come back.
	require.NoError(t, killed.Restart(t.Context()))
	require.NoError(t, cluster.WaitReady(t.Context()))
	load.awaitOn(t, s.slots[0])
	failures := load.stop()
	require.NotEmpty(t, failures)
	for gid := range load.ended {
		if r, err := s.Get(t.Context(), gid); errors.Is(err, store.ErrNotFound) || r.Status != store.StatusSucceeded {
			load.lost[gid] = true
		}
	}
	t.Logf("%d sagas ended, the failover took %d back; errors: %v", len(load.ended), len(load.lost), slices.Collect(maps.Keys(failures)))
	if replicas > 0 {
		require.Empty(t, load.lost)
	}
	for _, server := range s.nodes.all() {
		require.NotEqual(t, killed.Addr(), server.address)
	}
	requireSound(t, s)
}

func TestApply_WithoutTheReplica_IsNotAcknowledged(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1, Replicas: 1, Node: lab.Config{Settings: map[string]string{
		"appendonly": "yes", "appendfsync": "always",
	}}})
	master, replica := cluster.Nodes()[0], cluster.Nodes()[1]
	cfg := testConfig(master)
	cfg.Replicas, cfg.Timeout = 1, time.Minute
	s := open(t, cfg)
	defer s.Close()
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.D4, settings.Durability)
	requireApplied(t, s, creates(1))

	for _, node := range cluster.Nodes() { // nothing waits for a disk while a time is short
		client := redis.NewClient(&redis.Options{Addr: node.Addr(), Password: node.Password()})
		defer client.Close()
		require.NoError(t, client.ConfigSet(t.Context(), "appendonly", "no").Err())
	}
	cfg.Timeout = 2 * time.Second
	impatient := open(t, cfg)
	defer impatient.Close()
	require.NoError(t, replica.Signal(syscall.SIGSTOP))
	require.ErrorContains(t, impatient.Apply(t.Context(), []store.Change{create(1)})[0], "0 of 1 replicas")
	_, err = impatient.Get(t.Context(), gid(1)) // it is there, and may be lost
	require.ErrorContains(t, err, "0 of 1 replicas")
	require.ErrorContains(t, impatient.Apply(t.Context(), []store.Change{create(1)})[0], "0 of 1 replicas")
	require.NoError(t, replica.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), gid(1))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	requireSound(t, s)
}

func TestStore_Sentinel_FollowsTheMaster(t *testing.T) {
	t.Parallel()
	sentinel := labtest.StartSentinel(t, lab.Config{})
	cfg := testConfig(sentinel.Nodes()[0])
	sentinels := sentinel.Sentinels()
	cfg.URL = fmt.Sprintf("redis://:%s@%s?master_name=%s&addr=%s&password=%s",
		sentinels[0].Password(), sentinels[0].Addr(), redisnodes.MasterName, sentinels[1].Addr(), sentinel.Nodes()[0].Password())
	s := open(t, cfg)
	defer s.Close()
	load := startLoad(t, s)
	load.await(t, 100)
	killed, err := sentinel.Master(t.Context())
	require.NoError(t, err)
	require.NoError(t, killed.Kill())
	require.NoError(t, sentinel.WaitTakeover(t.Context(), killed))
	load.await(t, 100)
	require.NotEmpty(t, load.stop())
	require.Eventually(t, func() bool { // the pool answers a while with the error of its last connection
		findings, err := s.Verify(t.Context())
		return err == nil && len(findings) == 0
	}, time.Minute, 10*time.Millisecond)
}

func TestOpen_OfACluster(t *testing.T) {
	t.Parallel()
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Node: lab.Config{Settings: map[string]string{"appendonly": "yes"}}})
	nodes := cluster.Nodes()
	cfg := testConfig(nodes[0])
	cfg.Shards = 5
	s := open(t, cfg)
	defer s.Close()
	requireApplied(t, s, creates(20))

	t.Run("any node will do", func(t *testing.T) {
		for _, node := range nodes {
			other := cfg
			other.URL, other.Shards = node.URL(), 0
			o := open(t, other)
			defer o.Close()
			require.Equal(t, 5, o.cfg.Shards)
			_, err := o.Get(t.Context(), gid(7))
			require.NoError(t, err)
		}
	})
	t.Run("the first address does not answer", func(t *testing.T) {
		other := cfg
		other.URL = "redis://:" + nodes[0].Password() + "@127.0.0.1:1?addr=" + nodes[2].Addr()
		require.NoError(t, open(t, other).Close())
	})
	t.Run("nodes of two clusters", func(t *testing.T) {
		another := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 1, Node: lab.Config{Settings: map[string]string{
			"requirepass": nodes[0].Password(),
		}}})
		other := cfg
		for _, urls := range [][2]*lab.Server{{nodes[0], another.Nodes()[0]}, {another.Nodes()[0], nodes[0]}} {
			other.URL = urls[0].URL() + "?addr=" + urls[1].Addr()
			_, err := Open(t.Context(), other)
			require.ErrorIs(t, err, store.ErrUnsafe)
			require.ErrorContains(t, err, another.Nodes()[0].Addr())
		}
	})
	t.Run("nodes do not know their addresses", func(t *testing.T) {
		for _, node := range s.nodes.all() {
			require.NoError(t, node.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "unknown-endpoint").Err())
			defer func() { node.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "ip") }()
		}
		o := open(t, cfg)
		defer o.Close()
		o.nodes.moved(o.slots[0], o.nodes.owner(o.slots[4])) // so that it is redirected
		for i := range 20 {
			_, err := o.Get(t.Context(), gid(i))
			require.NoError(t, err)
		}
	})
	t.Run("a node that was cut off is not asked who took over", func(t *testing.T) {
		o := open(t, cfg)
		defer o.Close()
		cutOff := o.nodes.all()[0]
		for _, node := range s.nodes.all() {
			require.NoError(t, node.ConfigSet(t.Context(), "cluster-announce-hostname", "localhost").Err())
		}
		// So its answer can be told from those of the others.
		require.NoError(t, cutOff.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "hostname").Err())
		defer func() { cutOff.ConfigSet(t.Context(), "cluster-preferred-endpoint-type", "ip") }()
		for range 20 {
			require.NoError(t, o.nodes.refresh(t.Context(), cutOff))
			require.Equal(t, cutOff, o.nodes.all()[0])
		}
	})
	t.Run("another number of shards", func(t *testing.T) {
		other := cfg
		other.Shards = 6
		_, err := Open(t.Context(), other)
		require.ErrorIs(t, err, store.ErrUnsafe)
		require.ErrorContains(t, err, "has 5, not 6")
	})
	t.Run("settings are the lowest", func(t *testing.T) {
		server := s.nodes.all()[0]
		settings, err := s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.D2, settings.Durability)
		require.NoError(t, server.ConfigSet(t.Context(), "appendfsync", "no").Err())
		settings, err = s.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.D1, settings.Durability)
		require.Equal(t, "no, everysec", settings.Values["appendfsync"])
	})
	t.Run("slots without a server", func(t *testing.T) {
		client := s.nodes.all()[0]
		require.NoError(t, client.ClusterDelSlotsRange(t.Context(), 0, 10).Err())
		_, err := Open(t.Context(), cfg)
		require.ErrorContains(t, err, "CLUSTERDOWN")
		require.ErrorContains(t, err, "--cluster check")
		require.NotContains(t, err.Error(), "\n")
	})
}

// Several coordinators that take over the sagas of a lost one get all of them, each once.
func TestClaimDue_SeveralStores_ShareTheDueSagas(t *testing.T) {
	t.Parallel()
	const stores, due, page = 4, 1200, 100
	cfg := clusterConfig(shared.Cluster(t))
	first := open(t, cfg)
	defer first.Close()
	changes := creates(due)
	for _, c := range changes {
		c.(*store.Create).Due = 0
	}
	requireApplied(t, first, changes)
	var mu sync.Mutex
	claims := make(map[string]int)
	var all sync.WaitGroup
	for i := range stores {
		s := open(t, cfg)
		defer s.Close()
		all.Go(func() {
			enough := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(claims) == due
			}
			for !enough() && t.Context().Err() == nil {
				records, err := s.ClaimDue(t.Context(), fmt.Sprintf("host%d", i), time.Minute, page)
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				for _, r := range records {
					claims[r.GID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, claims, due)
	for gid, n := range claims {
		require.Equal(t, 1, n, gid)
	}
}

// A replica of a cluster may be given: it says who the masters are.
func TestOpen_RefusesAReplica(t *testing.T) {
	t.Parallel()
	master := labtest.Start(t, lab.Redis, lab.Config{})
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	replica := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{
		"replicaof": host + " " + port, "masterauth": master.Password(),
	}})
	_, err = Open(t.Context(), testConfig(replica))
	require.ErrorIs(t, err, store.ErrUnsafe)
	require.ErrorContains(t, err, "replica of "+master.Addr())
}

func creates(n int) []store.Change {
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(i)
	}
	return changes
}

func requireSound(t *testing.T, s *Store) {
	t.Helper()
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}

// load takes sagas through their changes, one of each shard at a time, and repeats a change
// whose outcome is unknown.
type load struct {
	s      *Store
	commit *groupcommit.Committer
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	ended    map[string]bool
	lost     map[string]bool // the server does not know them any more
	failures map[string]int
}

func startLoad(t *testing.T, s *Store) *load {
	commit, err := groupcommit.New(s, groupcommit.DefaultConfig())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{s: s, commit: commit, cancel: cancel, ended: map[string]bool{}, lost: map[string]bool{}, failures: map[string]int{}}
	l.changed = sync.NewCond(&l.mu)
	for shard := range s.cfg.Shards {
		l.all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if gid := fmt.Sprint("load-", n); s.shard(gid) == shard {
					l.saga(ctx, gid)
				}
			}
		})
	}
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *load) saga(ctx context.Context, gid string) {
	marked := mark(0).(*store.Transition)
	ended := finish(0).(*store.Transition)
	marked.GID, ended.GID = gid, gid
	for _, change := range []store.Change{
		&store.Create{GID: gid, Body: []byte(`{"steps":[{},{}]}`), Steps: 2, Owner: "test", Due: time.Minute}, marked, ended,
	} {
		switch err := l.apply(ctx, change); {
		case errors.Is(err, store.ErrNotFound):
			l.note(func() { l.lost[gid] = true })
			return
		case err != nil:
			return // the end
		}
	}
	l.note(func() { l.ended[gid] = true })
}

// apply repeats a change until it was made, or ctx has ended.
func (l *load) apply(ctx context.Context, change store.Change) error {
	for repeated := false; ; repeated = true {
		err := l.commit.Apply(ctx, change)
		switch {
		case err == nil, repeated && (errors.Is(err, store.ErrDuplicate) || errors.Is(err, store.ErrConflict)): // it was made before
			return nil
		case errors.Is(err, store.ErrNotFound), ctx.Err() != nil:
			return err
		}
		l.note(func() { l.failures[err.Error()]++ })
		sleep(ctx, 10*time.Millisecond)
	}
}

func (l *load) note(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	l.changed.Broadcast()
}

// await waits until more sagas have ended.
func (l *load) await(t *testing.T, more int) {
	t.Helper()
	before := -1
	l.awaitThat(t, func() bool {
		if before < 0 {
			before = len(l.ended)
		}
		return len(l.ended) >= before+more
	})
}

// awaitOn waits until another saga with this slot has ended.
func (l *load) awaitOn(t *testing.T, slot int) {
	t.Helper()
	var before map[string]bool
	l.awaitThat(t, func() bool {
		if before == nil {
			before = maps.Clone(l.ended)
		}
		for gid := range l.ended {
			if !before[gid] && l.s.slots[l.s.shard(gid)] == slot {
				return true
			}
		}
		return false
	})
}

func (l *load) awaitThat(t *testing.T, reached func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() { l.note(func() { late = true }) })
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !reached() {
		require.False(t, late, "%d sagas ended; errors: %v", len(l.ended), l.failures)
		l.changed.Wait()
	}
}

// stop returns the errors that there were.
func (l *load) stop() map[string]int {
	l.cancel()
	l.all.Wait()
	l.commit.Close()
	return l.failures
}
