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

	"sagabench/store"
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
	ids    map[string]bool              // of the servers of a cluster

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
		if err := n.refresh(ctx, nil); err != nil {
			return info, err
		}
		return info, n.checkSeeds(ctx)
	}
	return nil, err // of the first: the caller names its address
}

// checkSeeds refuses a URL with servers that are not of one cluster. Some of them may not
// answer, or know no cluster yet.
func (n *nodes) checkSeeds(ctx context.Context) error {
	if len(n.seeds) == 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	errs := make([]error, len(n.seeds))
	var all sync.WaitGroup
	for i, seed := range n.seeds {
		all.Go(func() {
			ranges, err := redisconn.Slots(ctx, seed.Client, seed.address)
			switch {
			case isReply(err) && !redis.IsLoadingError(err):
				errs[i] = err
			case len(ranges) > 0 && !slices.ContainsFunc(ranges, n.isOwn):
				errs[i] = fmt.Errorf("%w: %v belongs to another cluster than %v: give nodes of one", store.ErrUnsafe, seed, n.all()[0])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refresh asks the known servers of a cluster but one, who may not answer, or may be cut off
// from the others and not know, who holds the slots. If none answers, it asks those of the URL.
func (n *nodes) refresh(ctx context.Context, but *node) error {
	n.mu.Lock()
	known := slices.Collect(maps.Values(n.known))
	n.mu.Unlock()
	known = slices.DeleteFunc(known, func(server *node) bool { return but != nil && server.address == but.address })
	if len(known) > 0 && n.ask(ctx, known, but) == nil {
		return nil
	}
	return n.ask(ctx, n.seeds, but)
}

// ask asks servers of a cluster who holds the slots, and believes the first one that says
// that lost holds none any more, or, if there is none, the first one. Those that are cut off
// together with lost would say for ever that it holds its slots, and may be the fastest.
func (n *nodes) ask(ctx context.Context, servers []*node, lost *node) error {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	type answer struct {
		from   *node
		ranges []redisconn.SlotRange
		err    error
	}
	answers := make(chan answer, len(servers))
	for _, server := range servers {
		n.background.Go(func() {
			ranges, err := redisconn.Slots(ctx, server.Client, server.address)
			answers <- answer{server, ranges, err}
		})
	}
	var err error
	var first []redisconn.SlotRange
	var enough <-chan time.Time // the others have had time, too
	for range servers {
		var a answer
		select {
		case a = <-answers:
		case <-enough:
			n.set(first)
			return nil
		}
		switch {
		case a.err != nil:
			err = a.err
		case len(a.ranges) == 0:
			err = fmt.Errorf("%v is one of a cluster, and knows nobody who holds slots: is the cluster complete?", a.from)
		case lost == nil || !slices.ContainsFunc(a.ranges, func(r redisconn.SlotRange) bool { return r.Nodes[0].Address == lost.address }):
			n.set(a.ranges)
			return nil
		case first == nil:
			first, enough = a.ranges, time.After(refreshPause)
		}
	}
	if first == nil {
		return err
	}
	n.set(first)
	return nil
}

// isOwn reports whether one of the nodes of a range belongs to the cluster.
func (n *nodes) isOwn(r redisconn.SlotRange) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(r.Nodes, func(m redisconn.ClusterNode) bool { return n.ids[m.ID] })
}

// set replaces the owners of the slots, and disconnects from servers that have left.
func (n *nodes) set(ranges []redisconn.SlotRange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	owners, members, ids := new([slots]*node), make(map[string]*node), make(map[string]bool)
	for _, r := range ranges {
		for _, m := range r.Nodes {
			ids[m.ID] = true
			if members[m.Address] == nil {
				members[m.Address] = n.node(m.Address)
			}
		}
		for slot := r.First; slot <= r.Last; slot++ {
			owners[slot] = members[r.Nodes[0].Address]
		}
	}
	for address, left := range n.known {
		if members[address] == nil {
			n.background.Go(func() { n.disconnect(left) })
		}
	}
	n.known, n.ids = members, ids
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
func (n *nodes) refreshSoon(but *node) {
	if !n.refreshing.CompareAndSwap(false, true) {
		return
	}
	n.background.Go(func() {
		defer n.refreshing.Store(false)
		_ = n.refresh(context.Background(), but) // the next failed call asks for another
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
