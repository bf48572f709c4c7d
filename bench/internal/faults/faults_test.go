package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	takeover
}

// fault breaks something and repairs it.
type fault struct {
	name     string
	hosts    int // how many it needs
	replicas int // that are waited for: class D4
	do       func(*testing.T, *world)
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
	w := k.newWorld(t, server, cluster, fmt.Sprintf("r%d", n), seed, f.replicas)

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

	s, err := w.target.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	updated := make(map[string]time.Time) // by saga of the store: when its status last changed
	require.NoError(t, store.Walk(t.Context(), s, store.Query{}, func(r store.Record) { updated[r.GID] = r.Updated }))
	require.NotEmpty(t, w.acknowledged)
	ends, lost, touched := map[store.Status]int{}, 0, 0
	for _, gid := range w.acknowledged {
		ended, kept := updated[gid]
		if !kept {
			require.True(t, w.mayLose(gid, w.submits[gid]), "lost: saga %s, submitted %+v; a takeover may lose %+v", gid, w.submits[gid], w.losing)
			lost++
			continue
		}
		undone := w.mayUndo(gid, period{w.submits[gid].from, ended})
		if undone {
			touched++
		} else {
			require.Empty(t, w.backwards[gid], gid)
		}
		p := planOf(seed, gid)
		status, _ := p.end()
		ends[status]++
		require.Equal(t, status.String(), w.seen[gid], gid)
		require.Empty(t, p.violations(w.parts.of(gid), f.name == "coordinator stopped" || undone), "%s: %+v", gid, p)
	}
	t.Logf("%d sagas acknowledged, %v; all ended within %v", len(w.acknowledged), ends, took)
	if cluster != nil {
		t.Logf("%d sagas lost; %d others were under way when a master was lost", lost, touched)
	}
	w.takeover.check(t, w.clients)
	found, err := audit.Store(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	require.EqualValues(t, len(w.acknowledged)-lost, found.Sagas)
	require.Zero(t, *found.Unfinished)
}

func (k storeKind) newWorld(t *testing.T, server *lab.Server, cluster *redisnodes.Cluster, round string, seed uint64, replicas int) *world {
	w := &world{server: server, cluster: cluster, parts: newParticipants(t, seed)}
	w.clients = &clients{
		t: t, round: round, seed: seed, participants: w.parts.url,
		submits: make(map[string]period), seen: make(map[string]string), backwards: make(map[string][]string),
	}
	t.Cleanup(w.clients.http.CloseIdleConnections)
	dir := t.TempDir()
	var err error
	switch {
	case cluster != nil:
		urls := cluster.URLs()
		w.target, err = open.Parse(urls[1], openConfig(t.Name()+"_"+round))
		w.target.Config.Redis.Replicas = replicas
		place := []string{"SAGABENCH_REDIS_PREFIX=" + w.target.Config.Redis.Prefix, fmt.Sprintf("SAGABENCH_REDIS_REPLICAS=%d", replicas)}
		w.a = &host{t: t, store: k.name, dir: dir, env: append(place, k.variable+"="+urls[1])}
		w.b = &host{t: t, store: k.name, dir: dir, env: append(place[:2:2], k.variable+"="+urls[2])}
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
