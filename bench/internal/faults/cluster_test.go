package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/store"
)

// ofCluster is the store on a Redis Cluster.
var ofCluster = storeKind{name: "redis", variable: "SAGABENCH_REDIS_URL"}

// nodeTimeout is cluster-node-timeout: a busy machine fails nobody over.
const nodeTimeout = 5 * time.Second

const (
	// takeoverTime bounds the time until a replica has taken over. Masters ask each other
	// every half nodeTimeout, wait nodeTimeout for the answer, and tell each other when they
	// ask next. Then a replica waits up to 1 s before it is elected.
	takeoverTime = nodeTimeout/2 + nodeTimeout + nodeTimeout/2 + time.Second
	// lastError bounds the time from then on until the last submit fails: one that waits for
	// the batch before, for its own, and for what became of it.
	lastError = 3 * storeTimeout
	// replicationDelay bounds how much later than a client a replica gets what its master
	// has sent to both, with no network between them. The kernel delivers what was sent.
	replicationDelay = 500 * time.Millisecond
)

// ofNodes are the faults of a Redis Cluster. To add one, add an entry.
var ofNodes = []fault{
	coordinatorLost,
	{name: "slots moved", do: func(t *testing.T, w *world) {
		nodes := w.cluster.Nodes()
		slots, err := w.cluster.Slots(t.Context(), nodes[0])
		require.NoError(t, err)
		used := usedSlots(t, nodes[0], slots)
		require.NotEmpty(t, used)
		moved := append(used, slots[len(slots)-2000:]...)
		slices.Sort(moved)
		moved = slices.Compact(moved)
		began := time.Now()
		require.NoError(t, w.cluster.MoveSlots(t.Context(), nodes[0], nodes[1], moved...))
		require.NoError(t, w.cluster.MoveSlots(t.Context(), nodes[1], nodes[0], moved...))
		t.Logf("%d slots moved, and back, in %v", len(moved), time.Since(began))
	}},
	{name: "master killed", do: masterKilled},
	{name: "master stopped", do: masterStopped},
	{name: "master cut off", do: masterCutOff},
}

// atD4 are faults of a Redis Cluster whose replicas are waited for: nothing is lost.
var atD4 = []fault{
	{name: "master killed at D4", replicas: 1, do: masterKilled},
	{name: "master cut off at D4", replicas: 1, do: masterCutOff},
}

func masterKilled(t *testing.T, w *world) {
	w.loseMaster(t, (*lab.Server).Kill, func(master *lab.Server) error { return master.Restart(t.Context()) })
}

func masterStopped(t *testing.T, w *world) {
	w.loseMaster(t,
		func(master *lab.Server) error { return master.Signal(syscall.SIGSTOP) },
		func(master *lab.Server) error { return master.Signal(syscall.SIGCONT) })
}

// masterCutOff cuts a master off from the other nodes, and not from the hosts. It serves
// until it finds out.
func masterCutOff(t *testing.T, w *world) {
	w.loseMaster(t,
		func(master *lab.Server) error {
			client := redis.NewClient(&redis.Options{Addr: master.Addr(), Password: master.Password()})
			defer client.Close()
			if err := w.cluster.CutOff(t.Context(), master); err != nil {
				return err
			}
			return lab.Poll(t.Context(), func(ctx context.Context) error {
				if err := client.Get(ctx, "any").Err(); !redis.IsClusterDownError(err) {
					return fmt.Errorf("it serves: %w", err)
				}
				return nil
			})
		},
		func(*lab.Server) error { return w.cluster.Reconnect(t.Context()) })
}

func startCluster(t *testing.T) *redisnodes.Cluster {
	settings := maps.Clone(synced)
	settings["cluster-node-timeout"] = fmt.Sprint(nodeTimeout.Milliseconds())
	return labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, CanCutOff: true, Node: lab.Config{Settings: settings}})
}

// TestFaults_OfARedisCluster also shows how many sagas a failover takes back: a replica
// has what its master acknowledged a moment later.
func TestFaults_OfARedisCluster(t *testing.T) {
	t.Parallel()
	breakCluster(t, startCluster(t), ofNodes)
}

// TestFaults_OfASecondRedisCluster takes its time beside the first: at D4, and of bench run.
func TestFaults_OfASecondRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	breakCluster(t, cluster, atD4)
	t.Run("bench run", func(t *testing.T) { runLosesAMaster(t, cluster) })
}

func breakCluster(t *testing.T, cluster *redisnodes.Cluster, faults []fault) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for n := range *rounds {
				ofCluster.round(t, n, nil, cluster, f)
			}
		})
	}
}

// takeover is what is known of the loss of a master. Without one, nothing may be lost.
type takeover struct {
	isOfLost func(gid string) bool
	began    time.Time // when the master served no more
	losing   []period  // when the lost master may have acknowledged what nobody else has
	bound    time.Time // of the last error
}

// loseMaster breaks the master of the first slots, waits until its replica has taken over,
// and repairs it.
func loseMaster(t *testing.T, cluster *redisnodes.Cluster, breaks, repairs func(*lab.Server) error) (o takeover) {
	master, err := cluster.Master(t.Context(), 0)
	require.NoError(t, err)
	breaking := time.Now()
	require.NoError(t, breaks(master))
	o.began = time.Now()
	require.NoError(t, cluster.WaitTakeover(t.Context(), master))
	t.Logf("it served for %v, and its replica has taken over within %v", o.began.Sub(breaking), time.Since(breaking))
	repaired := time.Now()
	require.NoError(t, repairs(master))
	require.NoError(t, cluster.WaitReady(t.Context()))
	// A master that continues serves until it learns that it was replaced.
	o.losing = []period{{breaking.Add(-replicationDelay), o.began}, {repaired, time.Now()}}
	o.bound = o.began.Add(takeoverTime + lastError)
	return o
}

// loseMaster loses a master under load, and waits until its sagas are accepted again.
func (w *world) loseMaster(t *testing.T, breaks, repairs func(*lab.Server) error) {
	isOfLost := w.ofPartition(t, 0) // of the first slots
	w.takeover = loseMaster(t, w.cluster, breaks, repairs)
	w.isOfLost = isOfLost
	if w.target.Config.Redis.Replicas > 0 {
		w.losing = nil
		w.bound = time.Now().Add(lastError) // the new master has a replica only now
	}
	require.Eventually(t, func() bool { return !w.servedAgain(w.clients).IsZero() }, time.Minute, 10*time.Millisecond)
}

// ofPartition returns which sagas belong to a partition of the store.
func (w *world) ofPartition(t *testing.T, partition int) func(gid string) bool {
	s, err := w.target.Open(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, 3, s.(store.Partitioned).Partitions())
	return func(gid string) bool { return s.(store.Partitioned).PartitionOf(gid) == partition }
}

// servedAgain returns when the first saga of the lost master was acknowledged that was
// submitted after the loss, or zero.
func (o *takeover) servedAgain(c *clients) (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gid, during := range c.submits {
		if during.from.After(o.began) && o.isOfLost(gid) && (at.IsZero() || during.to.Before(at)) {
			at = during.to
		}
	}
	return at
}

// mayLose reports whether a saga that was submitted during a period may be lost.
func (o *takeover) mayLose(gid string, submitted period) bool {
	return slices.ContainsFunc(o.losing, func(p period) bool { return p.overlaps(submitted) }) && o.isOfLost(gid)
}

// mayUndo reports whether writes for a saga that lived during a period may be lost, or
// whether a read may have shown what they had replaced.
func (o *takeover) mayUndo(gid string, lived period) bool {
	return len(o.losing) > 0 && period{o.losing[0].from, o.losing[len(o.losing)-1].to}.overlaps(lived) && o.isOfLost(gid)
}

// check checks that submits succeeded again in time.
func (o *takeover) check(t *testing.T, c *clients) {
	if o.began.IsZero() {
		return
	}
	again, last := o.servedAgain(c), o.began
	for _, failure := range c.failures {
		if failure.to.After(last) {
			last = failure.to
		}
	}
	t.Logf("sagas of the lost master were accepted again after %v; the last error came after %v, and must by %v",
		again.Sub(o.began), last.Sub(o.began), o.bound.Sub(o.began))
	require.Less(t, again, o.bound.Add(*slack))
	require.Less(t, last, o.bound.Add(*slack))
}

// usedSlots returns the slots of a node that hold keys.
func usedSlots(t *testing.T, node *lab.Server, slots []int) (used []int) {
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), Password: node.Password()})
	defer client.Close()
	counts, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for _, slot := range slots {
			pipe.ClusterCountKeysInSlot(t.Context(), slot)
		}
		return nil
	})
	require.NoError(t, err)
	for i, count := range counts {
		if count.(*redis.IntCmd).Val() > 0 {
			used = append(used, slots[i])
		}
	}
	return used
}
