package redisnodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"

	"sagabench/deploy/lab"
)

// CutOff cuts nodes off from all others, in place of those that were cut off before. They
// reach each other, and clients reach all nodes. It requires [ClusterConfig.CanCutOff].
//
// Messages of the cluster bus are dropped without a word to either side, as by a broken
// network. Replicas on the other side than their master are disconnected from it. The
// master notices that at once, where a broken network would leave it in doubt.
//
// While nodes are cut off, none may be restarted: it would replicate again.
func (c *Cluster) CutOff(ctx context.Context, servers ...*lab.Server) error {
	if c.bus == nil {
		return errors.New("cut nodes off: the cluster was started without CanCutOff")
	}
	cutOff := make(map[string]bool)
	for _, s := range servers {
		n, err := c.find(s)
		if err != nil {
			return fmt.Errorf("cut nodes off: %w", err)
		}
		cutOff[n.id] = true
	}
	c.bus.set(cutOff)
	for _, n := range c.running(nil) {
		if err := c.replicate(ctx, n, cutOff); err != nil {
			return fmt.Errorf("cut nodes off: %w", err)
		}
	}
	return nil
}

// Reconnect ends what CutOff began. To wait until the cluster is one again, use WaitReady.
func (c *Cluster) Reconnect(ctx context.Context) error { return c.CutOff(ctx) }

// replicate lets a node replicate, or, if one of it and its master is cut off from the
// other, prevents it: the master refuses a wrong password.
func (c *Cluster) replicate(ctx context.Context, n *node, cutOff map[string]bool) error {
	replication, err := n.info(ctx, "replication")
	if err != nil {
		return err
	}
	address := net.JoinHostPort(replication["master_host"], replication["master_port"])
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.Addr() == address })
	apart := i >= 0 && cutOff[n.id] != cutOff[c.nodes[i].id]
	password := n.Password()
	if apart {
		password = "cut off"
	}
	if err := n.client.ConfigSet(ctx, "masterauth", password).Err(); err != nil {
		return fmt.Errorf("CONFIG SET masterauth of %s: %w", n.Addr(), err)
	}
	if !apart {
		return nil
	}
	if err := n.client.ClientKillByFilter(ctx, "TYPE", "master").Err(); err != nil {
		return fmt.Errorf("CLIENT KILL of %s: %w", n.Addr(), err)
	}
	return nil
}

// Each message of the cluster bus names the node that sent it.
const (
	senderBegin = 40
	senderEnd   = 80
	busOffset   = 10_000 // from a node's port to its port of the bus
)

// bus passes on what the nodes of a cluster send to each other, except between those that
// are cut off and the others. Each node announces a port of the bus in place of its own.
type bus struct {
	closing context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	cutOff  map[string]bool // by node ID
	changed chan struct{}   // closed when cutOff is replaced
}

func newBus() *bus {
	b := &bus{changed: make(chan struct{})}
	b.closing, b.end = context.WithCancel(context.Background())
	return b
}

// listen opens a port for a node that is about to start.
func (b *bus) listen(host string) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("open a port of the cluster bus: %w", err)
	}
	context.AfterFunc(b.closing, func() { _ = l.Close() })
	return l, nil
}

// serve passes on what others send to a node.
func (b *bus) serve(l net.Listener, to *node) {
	b.running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			b.running.Go(func() { b.pass(from, to) })
		}
	})
}

// pass passes on a connection. If the nodes are cut off from each other, it waits until
// they are not, and then ends the connection: the nodes make another one.
func (b *bus) pass(from net.Conn, to *node) {
	defer b.closer(from)()
	first := make([]byte, senderEnd)
	if _, err := io.ReadFull(from, first); err != nil {
		return
	}
	sender := string(first[senderBegin:])
	if b.waited(sender, to.id) {
		return
	}
	host, port, _ := net.SplitHostPort(to.Addr())
	number, _ := strconv.Atoi(port)
	own, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(number+busOffset)))
	if err != nil {
		return
	}
	end := b.closer(from, own)
	defer end()
	b.running.Go(func() {
		defer end()
		b.copy(from, own, sender, to.id)
	})
	b.copy(own, io.MultiReader(bytes.NewReader(first), from), sender, to.id)
}

// closer returns a function that closes connections. When the bus is closed, they are, too.
func (b *bus) closer(conns ...net.Conn) func() {
	closeAll := func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	stop := context.AfterFunc(b.closing, closeAll)
	return func() {
		stop()
		closeAll()
	}
}

func (b *bus) copy(to io.Writer, from io.Reader, node, other string) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil || b.waited(node, other) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// waited returns when nodes are not cut off from each other, and reports whether they were.
func (b *bus) waited(node, other string) (were bool) {
	for {
		b.mu.Lock()
		apart, changed := b.cutOff[node] != b.cutOff[other], b.changed
		b.mu.Unlock()
		if !apart {
			return were
		}
		were = true
		select {
		case <-changed:
		case <-b.closing.Done():
			return true
		}
	}
}

// set replaces the nodes that are cut off from the others.
func (b *bus) set(cutOff map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cutOff = cutOff
	close(b.changed)
	b.changed = make(chan struct{})
}

// close returns when nothing is passed on any more.
func (b *bus) close() {
	if b != nil {
		b.end()
		b.running.Wait()
	}
}
