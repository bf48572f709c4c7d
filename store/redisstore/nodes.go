package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/store/redisstore/redisconn"
)

// node is one server.
type node struct {
	*redis.Client
	address string // for messages: without the password
}

// nodes are the servers of the store: one, or those of a Redis Cluster, of which it knows
// who holds each slot.
type nodes struct {
	client  func(address string) *redis.Client
	timeout time.Duration
	seeds   []*node // those of the URL
	only    *node   // the one server; nil: it is a cluster

	owners atomic.Pointer[[slots]*node] // nil where a slot has no server
	mu     sync.Mutex                   // for changes of owners
	known  map[string]*node             // of a cluster, by address

	background sync.WaitGroup
	closing    chan struct{}
	refreshing atomic.Bool
}

// refreshPause is how long the owners of the slots are left alone after they were asked
// for.
const refreshPause = 100 * time.Millisecond

// String returns the address, or what stands for no server.
func (n *node) String() string {
	if n == nil {
		return "no server"
	}
	return n.address
}

func newNodes(addresses []string, timeout time.Duration, client func(address string) *redis.Client) *nodes {
	n := &nodes{client: client, timeout: timeout, closing: make(chan struct{})}
	for _, address := range addresses {
		n.seeds = append(n.seeds, &node{client(address), address})
	}
	return n
}

// owner returns the server of a slot, or nil if there is none.
func (n *nodes) owner(slot int) *node {
	if n.only != nil {
		return n.only
	}
	return n.owners.Load()[slot]
}

// all returns the servers that hold slots.
func (n *nodes) all() (all []*node) {
	if n.only != nil {
		return []*node{n.only}
	}
	for _, owner := range n.owners.Load() {
		// Slots come in ranges, so the owner was mostly seen just before.
		if owner != nil && (len(all) == 0 || all[len(all)-1] != owner) && !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	return all
}

// discover finds out whether the server of the URL is one of a cluster, and who holds its
// slots. It returns what INFO says.
func (n *nodes) discover(ctx context.Context) (info map[string]string, err error) {
	for _, seed := range n.seeds {
		text, one := seed.Info(ctx).Result()
		if one != nil {
			err = cmp.Or(err, one)
			continue
		}
		info = redisconn.Fields(text)
		if info["cluster_enabled"] != "1" {
			n.only = seed
			return info, nil
		}
		n.known = make(map[string]*node)
		return info, n.refresh(ctx)
	}
	return nil, err // of the first: the caller names its address
}

// refresh asks all known servers of a cluster who holds the slots, and believes the first
// answer: a server that was cut off may have an old one, which its MOVED and CLUSTERDOWN
// will tell.
func (n *nodes) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	n.mu.Lock()
	ask := slices.Collect(maps.Values(n.known))
	n.mu.Unlock()
	for _, seed := range n.seeds {
		if !slices.ContainsFunc(ask, func(known *node) bool { return known.address == seed.address }) {
			ask = append(ask, seed)
		}
	}
	type answer struct {
		from   *node
		ranges []redis.ClusterSlot
		err    error
	}
	answers := make(chan answer, len(ask))
	for _, server := range ask {
		n.background.Go(func() {
			slots := redis.NewClusterSlotsCmd(ctx, "cluster", "slots") // CLUSTER SHARDS needs 7.0
			err := server.Process(ctx, slots)
			answers <- answer{server, slots.Val(), err}
		})
	}
	var err error
	for range ask {
		a := <-answers
		switch {
		case a.err != nil:
			err = fmt.Errorf("asking %v who holds the slots: %w", a.from, a.err)
		case len(a.ranges) == 0:
			err = fmt.Errorf("%v is one of a cluster, and knows nobody who holds slots: is the cluster complete?", a.from)
		default:
			n.set(a.from, a.ranges)
			return nil
		}
	}
	return err
}

// set replaces the owners of the slots, and disconnects from servers that have left.
func (n *nodes) set(from *node, ranges []redis.ClusterSlot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	owners, members := new([slots]*node), make(map[string]*node)
	for _, r := range ranges {
		for i, member := range r.Nodes {
			address := redisconn.Reachable(member.Addr, from.address)
			if members[address] == nil {
				members[address] = n.node(address)
			}
			for slot := r.Start; i == 0 && slot <= r.End && slot < slots; slot++ {
				owners[slot] = members[address]
			}
		}
	}
	for address, left := range n.known {
		if members[address] == nil {
			n.background.Go(func() { n.disconnect(left) })
		}
	}
	n.known = members
	n.owners.Store(owners)
}

// disconnect waits for the calls under way.
func (n *nodes) disconnect(left *node) {
	select {
	case <-time.After(2 * n.timeout):
	case <-n.closing:
	}
	left.Close()
}

// node returns the server at an address. The caller holds mu.
func (n *nodes) node(address string) *node {
	if known := n.known[address]; known != nil {
		return known
	}
	return &node{n.client(address), address}
}

// at returns the server at the address of a redirection by another.
func (n *nodes) at(address string, from *node) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	address = redisconn.Reachable(address, from.address)
	server := n.node(address)
	n.known[address] = server
	return server
}

// moved records that a server has a slot now.
func (n *nodes) moved(slot int, to *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	owners := *n.owners.Load()
	owners[slot] = to
	n.owners.Store(&owners)
}

// refreshSoon refreshes in the background, unless that is under way.
func (n *nodes) refreshSoon() {
	if !n.refreshing.CompareAndSwap(false, true) {
		return
	}
	n.background.Go(func() {
		defer n.refreshing.Store(false)
		_ = n.refresh(context.Background()) // the next failed call asks for another
		select {
		case <-time.After(refreshPause):
		case <-n.closing:
		}
	})
}

// close returns when nothing goes on in the background.
func (n *nodes) close() error {
	close(n.closing)
	n.background.Wait()
	var errs []error
	for _, seed := range n.seeds {
		errs = append(errs, seed.Close())
	}
	for _, known := range n.known {
		errs = append(errs, known.Close())
	}
	return errors.Join(errs...)
}
