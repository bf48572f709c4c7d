package faults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/audit"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/deploy/lab/redisnodes"
	"sagabench/internal/testkit"
	"sagabench/store"
	"sagabench/store/open"
)

var (
	rounds = flag.Int("rounds", 1, "rounds of each fault on each store")
	slack  = flag.Duration("slack", time.Minute, "added to the time in which sagas must end, for a busy machine")
	seed   = flag.Uint64("seed", 0, "seed of the participants' behaviour; 0: random")
)

// storeKind is a store that sagas survive a crash on: all are at D3.
type storeKind struct {
	name     string
	start    func(*testing.T) *lab.Server // nil: embedded in the one host, or a cluster
	variable string                       // in which a host finds the store's URL
}

// ofCluster is the store on a Redis Cluster.
var ofCluster = storeKind{name: "redis", variable: "SAGABENCH_REDIS_URL"}

var synced = map[string]string{"appendonly": "yes", "appendfsync": "always"}

const slowSync = runtime.GOOS == "linux" // where the lab can slow a disk

var kinds = []storeKind{
	{name: "pebble"},
	{"redis", func(t *testing.T) *lab.Server {
		return labtest.Start(t, lab.Redis, lab.Config{SlowSync: slowSync, Settings: synced})
	}, "SAGABENCH_REDIS_URL"},
	{"mysql", func(t *testing.T) *lab.Server { return labtest.Start(t, lab.MySQL, lab.Config{SlowSync: slowSync}) }, "SAGABENCH_MYSQL_URL"},
	{"postgres", func(t *testing.T) *lab.Server { return labtest.Start(t, lab.Postgres, lab.Config{SlowSync: slowSync}) }, "SAGABENCH_POSTGRES_URL"},
}

// world is a store with its server, hosts, participants and clients.
type world struct {
	*clients
	server  *lab.Server         // nil: embedded, or a cluster
	cluster *redisnodes.Cluster // nil: it is none
	a, b    *host               // one and the same where the store is embedded
	cable   *testkit.Proxy      // between a and the server
	parts   *participants
	target  open.Target
}

// fault breaks something and repairs it.
type fault struct {
	name  string
	hosts int // how many it needs
	do    func(*testing.T, *world)
	// loses says that the store may forget acknowledged sagas, and what was written for
	// others.
	loses bool
}

// all are the faults of hosts and of one server. To add one, add an entry.
var all = []fault{
	{name: "coordinator killed", hosts: 1, do: func(_ *testing.T, w *world) {
		w.a.Kill()
		w.a.start()
	}},
	coordinatorLost,
	{name: "coordinator stopped", hosts: 2, do: func(_ *testing.T, w *world) {
		w.a.signal(syscall.SIGSTOP)
		time.Sleep(lease + time.Second)
		w.a.signal(syscall.SIGCONT)
	}},
	{name: "host silent", hosts: 2, do: func(t *testing.T, w *world) {
		// The answers first. A host that needs one before it commits then leaves the
		// store in the middle of a transaction.
		answers := w.cable.StallAnswers()
		time.Sleep(100 * time.Millisecond)
		requests := w.cable.StallRequests()
		// The other host takes over its sagas while it is silent.
		t.Logf("taken over within %v", w.ended(t, w.b, w.known()))
		requests()
		answers()
	}},
	{name: "store killed", hosts: 2, do: func(t *testing.T, w *world) {
		require.NoError(t, w.server.Kill())
		require.NoError(t, w.server.Restart(t.Context()))
	}},
	{name: "store killed on a slow disk", hosts: 2, do: func(t *testing.T, w *world) {
		if !slowSync {
			t.Skip("the lab slows disks on Linux")
		}
		require.NoError(t, w.server.SlowSync(60*time.Millisecond+rand.N(40*time.Millisecond)))
		time.Sleep(time.Second + rand.N(500*time.Millisecond))
		require.NoError(t, w.server.Kill())
		require.NoError(t, w.server.SlowSync(0))
		require.NoError(t, w.server.Restart(t.Context()))
	}},
}

var coordinatorLost = fault{name: "coordinator killed for good", hosts: 2, do: func(_ *testing.T, w *world) {
	w.a.Kill()
	w.use(w.b)
}}

// ofNodes are the faults of a Redis Cluster.
var ofNodes = []fault{
	coordinatorLost,
	{name: "slots moved", do: func(t *testing.T, w *world) {
		nodes := w.cluster.Nodes()
		slots, err := w.cluster.Slots(t.Context(), nodes[0])
		require.NoError(t, err)
		used := usedSlots(t, nodes[0], slots)
		require.NotEmpty(t, used)
		if *rounds > 1 {
			used = append(used, slots[len(slots)-2000:]...)
			slices.Sort(used)
			used = slices.Compact(used)
		}
		require.NoError(t, w.cluster.MoveSlots(t.Context(), nodes[0], nodes[1], used...))
		require.NoError(t, w.cluster.MoveSlots(t.Context(), nodes[1], nodes[0], used...))
	}},
	{name: "master killed", loses: true, do: func(t *testing.T, w *world) {
		master, err := w.cluster.Master(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, master.Kill())
		require.NoError(t, w.cluster.WaitTakeover(t.Context(), master))
		require.NoError(t, master.Restart(t.Context()))
		require.NoError(t, w.cluster.WaitReady(t.Context()))
	}},
	{name: "master stopped", loses: true, do: func(t *testing.T, w *world) {
		master, err := w.cluster.Master(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, master.Signal(syscall.SIGSTOP))
		require.NoError(t, w.cluster.WaitTakeover(t.Context(), master))
		require.NoError(t, master.Signal(syscall.SIGCONT))
		require.NoError(t, w.cluster.WaitReady(t.Context()))
	}},
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

// TestFaults_OfARedisCluster also shows how many sagas a failover takes back: a replica
// has what its master acknowledged a moment later.
func TestFaults_OfARedisCluster(t *testing.T) {
	t.Parallel()
	settings := maps.Clone(synced)
	settings["cluster-node-timeout"] = "5000" // a busy machine fails nobody over
	cluster := labtest.StartCluster(t, redisnodes.ClusterConfig{Masters: 3, Replicas: 1, Node: lab.Config{Settings: settings}})
	for _, f := range ofNodes {
		t.Run(f.name, func(t *testing.T) {
			for n := range *rounds {
				ofCluster.round(t, n, nil, cluster, f)
			}
		})
	}
}

func TestFaults_EveryAcknowledgedSagaEndsOnce_AsItShould(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var server *lab.Server
			if k.start != nil {
				server = k.start(t)
			}
			for _, f := range all {
				if server == nil && f.hosts > 1 {
					continue // its directory belongs to one process
				}
				t.Run(f.name, func(t *testing.T) {
					for n := range *rounds {
						k.round(t, n, server, nil, f)
					}
				})
			}
		})
	}
}

// round lets clients submit sagas during a fault and checks how they ended.
func (k storeKind) round(t *testing.T, n int, server *lab.Server, cluster *redisnodes.Cluster, f fault) {
	seed := *seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	w := k.newWorld(t, server, cluster, fmt.Sprintf("r%d", n), seed)
	w.forgets = f.loses

	sending, stopSending := context.WithCancel(t.Context())
	readingToo, stopReading := context.WithCancel(t.Context())
	var senders, readers sync.WaitGroup
	for client := range 8 {
		senders.Go(func() { w.submitting(sending, client) })
	}
	readers.Go(func() { w.reading(readingToo) })
	require.Eventually(t, w.accepts, time.Minute, 10*time.Millisecond, "with nothing broken, sagas are accepted")
	time.Sleep(time.Second + rand.N(500*time.Millisecond)) // what is under way when it breaks differs
	f.do(t, w)
	time.Sleep(500 * time.Millisecond)
	stopSending()
	senders.Wait()
	took := w.ended(t, w.b, w.known())
	stopReading()
	readers.Wait()
	for _, h := range w.hosts {
		require.NoError(t, h.Stop(30*time.Second))
	}

	require.NotEmpty(t, w.acknowledged)
	require.Empty(t, w.backwards)
	ends := map[store.Status]int{}
	for _, gid := range w.acknowledged {
		if w.lost[gid] {
			continue
		}
		p := planOf(seed, gid)
		status, _ := p.end()
		ends[status]++
		require.Equal(t, status.String(), w.seen[gid], gid)
		require.Empty(t, p.violations(w.parts.of(gid), f.name == "coordinator stopped" || f.loses), "%s: %+v", gid, p)
	}
	t.Logf("%d sagas acknowledged, %d of them lost, %v; all others ended within %v", len(w.acknowledged), len(w.lost), ends, took)
	s, err := w.target.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	found, err := audit.Store(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	require.EqualValues(t, len(w.acknowledged)-len(w.lost), found.Sagas)
	require.Zero(t, *found.Unfinished)
}

func (k storeKind) newWorld(t *testing.T, server *lab.Server, cluster *redisnodes.Cluster, round string, seed uint64) *world {
	w := &world{server: server, cluster: cluster, parts: newParticipants(t, seed)}
	w.clients = &clients{t: t, round: round, seed: seed, participants: w.parts.url, seen: make(map[string]string), lost: make(map[string]bool)}
	t.Cleanup(w.clients.http.CloseIdleConnections)
	dir := t.TempDir()
	var err error
	switch {
	case cluster != nil:
		urls := cluster.URLs()
		w.target, err = open.Parse(urls[1], openConfig(t.Name()+"_"+round))
		prefix := "SAGABENCH_REDIS_PREFIX=" + w.target.Config.Redis.Prefix
		w.a = &host{t: t, store: k.name, dir: dir, env: []string{prefix, k.variable + "=" + urls[1]}}
		w.b = &host{t: t, store: k.name, dir: dir, env: []string{prefix, k.variable + "=" + urls[2]}}
	case server == nil:
		w.target, err = open.Parse(k.name+":"+filepath.Join(dir, "store"), openConfig(t.Name()+"_"+round))
		w.a = &host{t: t, store: k.name + ":store", dir: dir}
		w.b = w.a
	default:
		w.target, err = open.Parse(server.URL(), openConfig(t.Name()+"_"+round))
		w.cable = testkit.NewProxy(t, server.Addr())
		place := []string{"SAGABENCH_REDIS_PREFIX=" + w.target.Config.Redis.Prefix, "SAGABENCH_SQL_SCHEMA=" + w.target.Config.SQL.Schema}
		w.a = &host{t: t, store: k.name, dir: dir, env: append(place, k.variable+"="+at(t, server.URL(), w.cable.Addr()))}
		w.b = &host{t: t, store: k.name, dir: dir, env: append(place, k.variable+"="+server.URL())}
	}
	require.NoError(t, err)
	w.a.start()
	w.use(w.a)
	if w.b != w.a {
		w.b.start()
		w.use(w.a, w.b)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", w.a.url, w.a.Log())
			t.Logf("%s said:\n%s", w.b.url, w.b.Log())
		}
	})
	return w
}

// openConfig is a place in the store for one test.
func openConfig(test string) open.Config {
	place := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, test[strings.LastIndex(test, "/")+1:]))
	cfg := open.DefaultConfig()
	cfg.Redis.Prefix, cfg.SQL.Schema = place, place
	return cfg
}
