package redisnodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"sagabench/deploy/lab"
)

const (
	slotCount = 16384
	maxNodes  = 100
)

// ClusterConfig says what a Redis Cluster consists of.
type ClusterConfig struct {
	Masters  int // serve the slots in equal shares; a failover needs at least 3
	Replicas int // of each master

	// Node is how each node is started. Its settings may be all but port. The password in
	// requirepass is that of all nodes. In Dir, each node has a directory of its own.
	//
	// With replicas, the default of cluster-node-timeout is 2000 ms: a replica takes over
	// about 3 s after its master was killed. A shorter one would replace nodes of a busy
	// machine that get no CPU for a second. Redis' own default is 15000.
	Node lab.Config

	// CanCutOff prepares the cluster for CutOff: what its nodes send to each other passes
	// through this process. Clients and replication do not.
	CanCutOff bool
}

// Cluster is a running Redis Cluster. Its methods may be called concurrently.
type Cluster struct {
	nodes   []*node // masters by slots, then replicas by master: as started
	masters int
	bus     *bus // nil: the nodes send to each other themselves
}

// StartCluster starts a Redis Cluster. It returns when all nodes agree who serves the
// slots, and every replica has the data of its master.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	c := &Cluster{masters: cfg.Masters}
	if err := c.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start a Redis Cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, cfg ClusterConfig) error {
	nodes := cfg.Masters * (1 + cfg.Replicas)
	switch {
	case cfg.Masters < 1 || cfg.Masters > maxNodes:
		return fmt.Errorf("%d masters, must be 1 to %d", cfg.Masters, maxNodes)
	case cfg.Replicas < 0 || cfg.Replicas >= maxNodes || nodes > maxNodes:
		return fmt.Errorf("%d replicas of each of %d masters, must be 0 to %d", cfg.Replicas, cfg.Masters, maxNodes/cfg.Masters-1)
	}
	settings, err := sharedSettings(cfg.Node.Settings)
	if err != nil {
		return err
	}
	cfg.Node.Settings = map[string]string{
		"cluster-enabled":     "yes",
		"cluster-announce-ip": lab.Redis.Host(settings), // else a node learns it from others
	}
	if cfg.Replicas > 0 {
		cfg.Node.Settings["cluster-node-timeout"] = strconv.FormatInt(downAfter.Milliseconds(), 10)
	}
	maps.Copy(cfg.Node.Settings, settings)
	if cfg.CanCutOff {
		c.bus = newBus()
	}
	for i := range nodes {
		if err := c.startNode(ctx, cfg.Node, "node-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return c.join(ctx)
}

func (c *Cluster) startNode(ctx context.Context, cfg lab.Config, name string) (err error) {
	var port net.Listener
	var busPort string
	if c.bus != nil {
		if port, err = c.bus.listen(lab.Redis.Host(cfg.Settings)); err != nil {
			return err
		}
		_, busPort, _ = net.SplitHostPort(port.Addr().String())
		cfg.Settings = maps.Clone(cfg.Settings)
		cfg.Settings["cluster-announce-bus-port"] = busPort
	}
	n, err := startNode(ctx, lab.Redis, cfg, name)
	if err != nil {
		return err
	}
	n.busPort = busPort
	c.nodes = append(c.nodes, n)
	if n.id, err = n.client.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
		return fmt.Errorf("CLUSTER MYID of %s: %w", n.Addr(), err)
	}
	if c.bus != nil {
		c.bus.serve(port, n)
	}
	return nil
}

// join gives the masters their slots and the replicas their masters, makes all known to
// each other, and waits until they are ready.
func (c *Cluster) join(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for i, n := range c.nodes {
		// Nodes with the same epoch would have to settle it.
		if err = n.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("CLUSTER SET-CONFIG-EPOCH of %s: %w", n.Addr(), err)
		}
		if i < c.masters {
			first, next := i*slotCount/c.masters, (i+1)*slotCount/c.masters
			if err = n.client.ClusterAddSlotsRange(ctx, first, next-1).Err(); err != nil {
				return fmt.Errorf("CLUSTER ADDSLOTS of %s: %w", n.Addr(), err)
			}
		}
		for _, other := range c.nodes[:i] { // gossip alone would take seconds
			host, port, _ := net.SplitHostPort(other.Addr())
			meet := []any{"CLUSTER", "MEET", host, port}
			if other.busPort != "" {
				meet = append(meet, other.busPort)
			}
			if err = n.client.Do(ctx, meet...).Err(); err != nil {
				return fmt.Errorf("CLUSTER MEET of %s: %w", n.Addr(), err)
			}
		}
	}
	for i, n := range c.nodes[c.masters:] {
		master := c.nodes[i*c.masters/(len(c.nodes)-c.masters)]
		err = lab.Poll(ctx, func(ctx context.Context) error { return n.client.ClusterReplicate(ctx, master.id).Err() }) // it must know it
		if err != nil {
			return fmt.Errorf("CLUSTER REPLICATE of %s: %w", n.Addr(), err)
		}
	}
	return c.WaitReady(ctx)
}

// Nodes returns all nodes: those that were started as masters, by slots, then those that
// were started as replicas, by master. To stop the cluster, use Stop.
func (c *Cluster) Nodes() []*lab.Server { return servers(c.nodes) }

// URLs returns the addresses of the nodes with scheme and password, in the order of
// Nodes.
func (c *Cluster) URLs() (urls []string) {
	for _, n := range c.nodes {
		urls = append(urls, n.URL())
	}
	return urls
}

// Stop ends all nodes for good, and also paused ones: see [lab.Server.Stop].
func (c *Cluster) Stop() error {
	err := stop(c.nodes)
	c.bus.close()
	return err
}

// Master returns the node that serves the slot. It fails unless all running nodes agree
// and take all slots for served.
func (c *Cluster) Master(ctx context.Context, slot int) (*lab.Server, error) {
	shards, err := c.agreed(ctx, c.running(nil))
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		if s.first <= slot && slot <= s.last {
			return c.at(s.addrs[0])
		}
	}
	return nil, fmt.Errorf("slot %d, must be 0 to %d", slot, slotCount-1)
}

// Replicas returns the replicas of a master. It fails unless all running nodes agree and
// take all slots for served.
func (c *Cluster) Replicas(ctx context.Context, master *lab.Server) (replicas []*lab.Server, err error) {
	shards, err := c.agreed(ctx, c.running(nil))
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		if s.addrs[0] != master.Addr() {
			continue
		}
		for _, addr := range s.addrs[1:] {
			replica, err := c.at(addr)
			if err != nil {
				return nil, err
			}
			replicas = append(replicas, replica)
		}
		break
	}
	return replicas, nil
}

// Slots returns the slots that a node itself takes for its own, in ascending order. A
// replica has none.
func (c *Cluster) Slots(ctx context.Context, server *lab.Server) (slots []int, err error) {
	n, err := c.find(server)
	if err != nil {
		return nil, err
	}
	shards, err := n.shards(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		for slot := s.first; slot <= s.last && s.addrs[0] == n.Addr(); slot++ {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// WaitReady waits until all nodes run and agree, each serves slots or is a replica, and
// each replica has the data of its master and receives its writes.
func (c *Cluster) WaitReady(ctx context.Context) error {
	if err := lab.Poll(ctx, c.ready); err != nil {
		return fmt.Errorf("the cluster is not ready: %w", err)
	}
	return nil
}

func (c *Cluster) ready(ctx context.Context) error {
	shards, err := c.agreed(ctx, c.nodes)
	if err != nil {
		return err
	}
	parts := make(map[string]int) // by address: 0 a master
	for _, s := range shards {
		for i, addr := range s.addrs {
			parts[addr] = i
		}
	}
	for _, n := range c.nodes {
		switch part, ok := parts[n.Addr()]; {
		case !ok:
			return fmt.Errorf("%s is neither a master with slots nor a replica", n.Addr())
		case part > 0:
			if err := n.follows(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// WaitTakeover waits until others serve all slots of a lost node, and all running nodes
// but lost agree on that. lost may be killed, paused or cut off.
func (c *Cluster) WaitTakeover(ctx context.Context, lost *lab.Server) error {
	err := lab.Poll(ctx, func(ctx context.Context) error {
		shards, err := c.agreed(ctx, c.running(lost))
		if err == nil && slices.ContainsFunc(shards, func(s shard) bool { return s.addrs[0] == lost.Addr() }) {
			err = errors.New("the others take it for a master")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("nobody took over from %s: %w", lost.Addr(), err)
	}
	return nil
}

// running returns the nodes but lost whose process exists.
func (c *Cluster) running(lost *lab.Server) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.Server == lost || !n.IsRunning() })
}

// find returns the node of a server.
func (c *Cluster) find(server *lab.Server) (*node, error) {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.Server == server })
	if i < 0 {
		return nil, fmt.Errorf("%s is not a node of this cluster", server.Addr())
	}
	return c.nodes[i], nil
}

// at returns the server at an address.
func (c *Cluster) at(addr string) (*lab.Server, error) {
	for _, n := range c.nodes {
		if n.Addr() == addr {
			return n.Server, nil
		}
	}
	return nil, fmt.Errorf("the cluster has a node %q that was not started with it", addr)
}

// shard is a range of slots and who has its data: the master, then its replicas.
type shard struct {
	first, last int
	addrs       []string
}

// agreed returns who serves the slots, if the nodes agree on it and take all slots for
// served.
func (c *Cluster) agreed(ctx context.Context, nodes []*node) (shards []shard, err error) {
	if len(nodes) == 0 {
		return nil, errors.New("no node runs")
	}
	for i, n := range nodes {
		if err := c.serves(ctx, n); err != nil {
			return nil, err
		}
		seen, err := n.shards(ctx)
		switch {
		case err != nil:
			return nil, err
		case i == 0:
			shards = seen
		case !reflect.DeepEqual(seen, shards):
			return nil, fmt.Errorf("%s sees %v, %s sees %v", nodes[0].Addr(), shards, n.Addr(), seen)
		}
	}
	return shards, nil
}

// serves returns nil if the node knows all others and takes all slots for served.
func (c *Cluster) serves(ctx context.Context, n *node) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := n.client.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("CLUSTER INFO of %s: %w", n.Addr(), err)
	}
	info := fields(text)
	for key, want := range map[string]string{
		"cluster_state": "ok", "cluster_slots_ok": strconv.Itoa(slotCount), "cluster_known_nodes": strconv.Itoa(len(c.nodes)),
	} {
		if info[key] != want {
			return fmt.Errorf("CLUSTER INFO of %s: %s is %q, not %s", n.Addr(), key, info[key], want)
		}
	}
	return nil
}

// shards returns who serves the slots, as the node sees it.
func (n *node) shards(ctx context.Context) ([]shard, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ranges := redis.NewClusterSlotsCmd(ctx, "CLUSTER", "SLOTS") // CLUSTER SHARDS needs Redis 7
	if err := n.client.Process(ctx, ranges); err != nil {
		return nil, fmt.Errorf("CLUSTER SLOTS of %s: %w", n.Addr(), err)
	}
	shards := make([]shard, len(ranges.Val()))
	for i, r := range ranges.Val() {
		shards[i] = shard{first: r.Start, last: r.End}
		for _, of := range r.Nodes {
			shards[i].addrs = append(shards[i].addrs, of.Addr)
		}
		slices.Sort(shards[i].addrs[1:])
	}
	slices.SortFunc(shards, func(a, b shard) int { return cmp.Compare(a.first, b.first) })
	return shards, nil
}
