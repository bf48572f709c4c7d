package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
	"sagabench/internal/format"
	"sagabench/store/open"
	"sagabench/store/redisstore/redisconn"
)

// redisCluster samples the nodes of a Redis Cluster, all at the same time. What servers use
// is that of masters and replicas. What clients send, receive and store is that of the
// masters: a replica gets it from its master.
type redisCluster struct {
	nodes   []*clusterNode // masters first
	roles   map[string]string
	changed error // why the nodes are not those of the beginning; nil: they are
}

// clusterNode is a node with its sampler.
type clusterNode struct {
	*redisSampler // nil: see missing
	missing       error
	clusterMember
}

// clusterMember is a node as the cluster knows it.
type clusterMember struct {
	id      string
	address string
	master  string // id of the master that it replicates; empty: it is a master
}

var (
	errClusterChanged = errors.New("the cluster changed during the run: a node left or joined, or has another role")
	errNoSlots        = errors.New("it knows of no slots: is its cluster complete?")
)

// masterKeys are the figures of which replicas have no part.
var masterKeys = []string{keyBytesIn, keyBytesOut, keyMemory, keyCalls, keyMain}

// highestKeys are the figures of a cluster that are those of one node, the highest. Others
// are sums.
var highestKeys = []string{keyMain, "store_server_conns"}

// openRedisCluster samples the cluster of a node at an address, which it closes. Begin
// reports nodes that cannot be reached.
func openRedisCluster(ctx context.Context, server Server, options redis.Options, of *redisSampler, address string) (sample.Store, error) {
	members, err := of.redis.members(ctx, address)
	if err = errors.Join(err, of.Close()); err != nil {
		return nil, err
	}
	c := &redisCluster{roles: roles(members)}
	for _, m := range members {
		c.nodes = append(c.nodes, &clusterNode{clusterMember: m})
	}
	_ = c.each(func(n *clusterNode) error {
		own := server
		host, _, _ := net.SplitHostPort(n.address)
		own.Local = Local(host)
		n.redisSampler, n.missing = openRedisServer(ctx, own, options, n.address)
		return nil
	})
	return c, nil
}

// members returns the nodes that serve slots, and their replicas, as the server sees them.
// address is the server's.
func (r *redisEngine) members(ctx context.Context, address string) (all []clusterMember, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ranges, err := redisconn.Slots(ctx, r.client, address)
	if err != nil {
		return nil, err
	}
	for _, slots := range ranges {
		for i, node := range slots.Nodes {
			m := clusterMember{id: node.ID, address: node.Address}
			if i > 0 {
				m.master = slots.Nodes[0].ID
			}
			if !slices.ContainsFunc(all, func(other clusterMember) bool { return other.id == m.id }) {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		return nil, errNoSlots
	}
	masters := slices.DeleteFunc(slices.Clone(all), func(m clusterMember) bool { return m.master != "" })
	replicas := slices.DeleteFunc(all, func(m clusterMember) bool { return m.master == "" })
	return append(masters, replicas...), nil
}

// roles returns the masters of the nodes, by id.
func roles(members []clusterMember) map[string]string {
	all := make(map[string]string)
	for _, m := range members {
		all[m.id] = m.master
	}
	return all
}

// each calls do for all nodes at the same time. Its error names the first that failed.
func (c *redisCluster) each(do func(*clusterNode) error) error {
	errs := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		all.Go(func() {
			if err := do(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.address, err)
			}
		})
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	}
	return fmt.Errorf("%w; and %d more of %d nodes", failed[0], len(failed)-1, len(c.nodes))
}

// reached is each for the nodes that could be reached. Its error has those that could not.
func (c *redisCluster) reached(do func(*clusterNode) error) error {
	return c.each(func(n *clusterNode) error {
		if n.missing != nil {
			return n.missing
		}
		return do(n)
	})
}

func (c *redisCluster) Begin(ctx context.Context) error {
	return c.reached(func(n *clusterNode) error { return n.Begin(ctx) })
}

func (c *redisCluster) End(ctx context.Context) error {
	var mu sync.Mutex
	c.changed = nil
	return c.reached(func(n *clusterNode) error {
		if err := n.End(ctx); err != nil {
			return err
		}
		now, err := n.redis.members(ctx, n.address)
		if err == nil && !maps.Equal(roles(now), c.roles) {
			err = errClusterChanged
		}
		mu.Lock()
		defer mu.Unlock()
		c.changed = cmp.Or(c.changed, err)
		return nil
	})
}

func (c *redisCluster) CPU(ctx context.Context) (*float64, error) {
	var mu sync.Mutex
	sum := 0.0
	err := c.reached(func(n *clusterNode) error {
		used, err := n.CPU(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sum += *used
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &sum, nil
}

// PIDs returns none unless all nodes run on this machine: a part of them would not be the
// store.
func (c *redisCluster) PIDs() (all []int) {
	for _, n := range c.nodes {
		if n.missing != nil || n.process.pid == 0 {
			return nil
		}
		all = append(all, n.process.pid)
	}
	return all
}

func (c *redisCluster) Close() error {
	return c.each(func(n *clusterNode) error {
		if n.missing != nil {
			return nil
		}
		return n.redisSampler.Close()
	})
}

func (c *redisCluster) AddTo(u *sample.Usage) {
	u.Resources.StoreOneCore = true
	for _, n := range c.nodes {
		if n.missing != nil || n.before == nil || n.after == nil {
			return // Begin or End returned why
		}
		if n.before.server != n.after.server {
			u.Fail("the store", fmt.Errorf("%s: %w", n.address, errRestarted))
			return
		}
	}
	if c.changed != nil {
		u.Fail("the store", c.changed)
		return
	}
	var all, masters []sample.Usage
	failed := map[string][]string{} // addresses of nodes by why one of their figures is unknown
	for _, n := range c.nodes {
		if n.master != "" {
			n.before.remove(masterKeys)
			n.after.remove(masterKeys)
		}
		one := sample.Usage{Elapsed: u.Elapsed}
		n.AddTo(&one)
		for _, why := range one.Failures {
			failed[why] = append(failed[why], n.address)
		}
		all = append(all, one)
		if n.master == "" {
			masters = append(masters, one)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(failed)) {
		text := failed[why][0]
		if more := len(failed[why]) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		u.Failures = append(u.Failures, text+": "+why)
	}
	combine(result.CostFields, &u.Total, all, masters, func(u sample.Usage) result.Cost { return u.Total })
	combine(result.ResourceFields, &u.Resources, all, masters, func(u sample.Usage) result.Resources { return u.Resources })
	u.Total.StoreBusiestCPUUS, u.Resources.StoreCPUImbalance = busiest(masters)
}

// remove forgets figures.
func (c *counters) remove(keys []string) {
	for _, key := range keys {
		delete(c.values, key)
		delete(c.unknown, key)
	}
}

// combine sets the figures of a cluster to the sum or the highest of those of its nodes. A
// figure that a node lacks is unknown.
func combine[T any](fields []result.Field[T], to *T, all, masters []sample.Usage, figures func(sample.Usage) T) {
	for _, f := range fields {
		of := all
		if slices.Contains(masterKeys, f.Key) {
			of = masters
		}
		sum, known := 0.0, true
		for _, node := range of {
			x := f.Of(figures(node))
			switch {
			case x == nil:
				known = false
			case slices.Contains(highestKeys, f.Key):
				sum = max(sum, *x)
			default:
				sum += *x
			}
		}
		if known {
			f.Set(to, &sum)
		}
	}
}

// busiest returns the CPU of the master that used most, and how many times the mean of all
// masters that is.
func busiest(masters []sample.Usage) (most, imbalance *float64) {
	highest, sum := 0.0, 0.0
	for _, m := range masters {
		used := m.Total.StoreCPUUS
		if used == nil {
			return nil, nil
		}
		highest, sum = max(highest, *used), sum+*used
	}
	if sum <= 0 {
		return &highest, nil
	}
	share := result.Round(highest * float64(len(masters)) / sum)
	return &highest, &share
}

// Cluster is the nodes of a Redis Cluster, by address. It has no masters if the store is none.
type Cluster struct{ Masters, Replicas []string }

// ClusterOf returns the cluster that the server is a node of.
func ClusterOf(ctx context.Context, s Server) (found Cluster, err error) {
	if s.Driver != open.Redis {
		return found, nil
	}
	store, err := Sampler(s)(ctx)
	if err != nil {
		return found, err
	}
	if c, ok := store.(*redisCluster); ok {
		for _, n := range c.nodes {
			if n.master == "" {
				found.Masters = append(found.Masters, n.address)
			} else {
				found.Replicas = append(found.Replicas, n.address)
			}
		}
	}
	return found, store.Close()
}

// Local reports whether one of the nodes is on this machine.
func (c Cluster) Local() bool {
	return slices.ContainsFunc(slices.Concat(c.Masters, c.Replicas), func(address string) bool {
		host, _, _ := net.SplitHostPort(address)
		return Local(host)
	})
}

// String says how many nodes it has.
func (c Cluster) String() string {
	text := "a Redis Cluster of " + format.Plural(len(c.Masters), "master")
	if n := len(c.Replicas); n > 0 {
		text += " and " + format.Plural(n, "replica")
	}
	return text
}
