package redisnodes

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"sagabench/deploy/lab"
)

const (
	// migrateKeys is how many keys MIGRATE moves at once, as redis-cli does by default. The
	// source serves nobody meanwhile.
	migrateKeys    = 10
	migrateTimeout = 5 * time.Second
)

// MoveSlots moves slots with their keys from one master to another, as redis-cli does,
// one after the other, while clients read and write. It refuses slots that from does not
// serve. After an error, the keys of one slot may be on both masters, where clients find
// them: call MoveSlots again with that slot and the rest.
func (c *Cluster) MoveSlots(ctx context.Context, from, to *lab.Server, slots ...int) error {
	source, err := c.find(from)
	if err != nil {
		return fmt.Errorf("move slots: %w", err)
	}
	target, err := c.find(to)
	if err != nil {
		return fmt.Errorf("move slots: %w", err)
	}
	served, err := c.Slots(ctx, from)
	if err != nil {
		return fmt.Errorf("move slots: %w", err)
	}
	for _, slot := range slots {
		if _, ok := slices.BinarySearch(served, slot); !ok {
			return fmt.Errorf("move slots: %s does not serve slot %d", from.Addr(), slot)
		}
	}
	others := slices.DeleteFunc(c.running(nil), func(n *node) bool { return n == source || n == target })
	for _, slot := range slots {
		if err := moveSlot(ctx, source, target, slot); err != nil {
			return fmt.Errorf("move slot %d from %s to %s: %w", slot, from.Addr(), to.Addr(), err)
		}
		// The others would learn it by gossip, but later. So do those that cannot be told:
		// replicas, and nodes that do not answer.
		others = slices.DeleteFunc(others, func(n *node) bool { return n.setSlot(ctx, slot, "NODE", target) != nil })
	}
	return nil
}

func moveSlot(ctx context.Context, source, target *node, slot int) error {
	// The target first: the source refers clients to it for keys that it does not have.
	if err := target.setSlot(ctx, slot, "IMPORTING", source); err != nil {
		return err
	}
	if err := source.setSlot(ctx, slot, "MIGRATING", target); err != nil {
		return err
	}
	for {
		keys, err := source.client.ClusterGetKeysInSlot(ctx, slot, migrateKeys).Result()
		if err != nil {
			return fmt.Errorf("CLUSTER GETKEYSINSLOT: %w", err)
		}
		if len(keys) == 0 {
			break
		}
		if err := source.migrate(ctx, target, keys); err != nil {
			return err
		}
	}
	// The target first: until it serves the slot, the source must not give it up.
	for _, n := range []*node{target, source} {
		if err := n.setSlot(ctx, slot, "NODE", target); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) setSlot(ctx context.Context, slot int, state string, of *node) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := n.client.Do(ctx, "CLUSTER", "SETSLOT", slot, state, of.id).Err(); err != nil {
		return fmt.Errorf("CLUSTER SETSLOT %s of %s: %w", state, n.Addr(), err)
	}
	return nil
}

// migrate moves keys to the target. A key that is there already was left by a MIGRATE
// that failed: while the source has a key, it alone serves it.
func (n *node) migrate(ctx context.Context, target *node, keys []string) error {
	host, port, err := net.SplitHostPort(target.Addr())
	if err != nil {
		return err
	}
	command := []any{"MIGRATE", host, port, "", 0, migrateTimeout.Milliseconds(), "REPLACE", "AUTH", target.Password(), "KEYS"}
	for _, key := range keys {
		command = append(command, key)
	}
	if err := n.client.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("MIGRATE: %w", err)
	}
	return nil
}
