package redisnodes

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/deploy/lab"
)

const (
	// migrateKeys is how many keys MIGRATE moves at once, as redis-cli does by default. The
	// source serves nobody meanwhile.
	migrateKeys    = 10
	migrateTimeout = 5 * time.Second
)

// moveAtOnce is how many slots are moved together: a node writes its configuration once for
// all of them. Commands for several keys of a slot may be refused meanwhile.
const moveAtOnce = 100

// MoveSlots moves slots with their keys from one master to another, as redis-cli does,
// while clients read and write. It refuses slots that from does not serve. After an error,
// the keys of some slots may be on both masters, where clients find them: call MoveSlots
// again with the slots that from still serves.
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
	for some := range slices.Chunk(slots, moveAtOnce) {
		if err := moveSlots(ctx, source, target, some); err != nil {
			return fmt.Errorf("move slots %d to %d from %s to %s: %w", some[0], some[len(some)-1], from.Addr(), to.Addr(), err)
		}
		// The others would learn it by gossip, but later. So do those that cannot be told:
		// replicas, and nodes that do not answer.
		others = slices.DeleteFunc(others, func(n *node) bool { return n.setSlots(ctx, some, "NODE", target) != nil })
	}
	return nil
}

func moveSlots(ctx context.Context, source, target *node, slots []int) error {
	// The target first: the source refers clients to it for keys that it does not have.
	if err := target.setSlots(ctx, slots, "IMPORTING", source); err != nil {
		return err
	}
	if err := source.setSlots(ctx, slots, "MIGRATING", target); err != nil {
		return err
	}
	counts, err := source.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, slot := range slots {
			pipe.ClusterCountKeysInSlot(ctx, slot)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("CLUSTER COUNTKEYSINSLOT: %w", err)
	}
	for i, count := range counts {
		if count.(*redis.IntCmd).Val() == 0 { // and there will be none: the source refers clients to the target
			continue
		}
		if err := moveKeys(ctx, source, target, slots[i]); err != nil {
			return fmt.Errorf("slot %d: %w", slots[i], err)
		}
	}
	// The target first: until it serves a slot, the source must not give it up.
	for _, n := range []*node{target, source} {
		if err := n.setSlots(ctx, slots, "NODE", target); err != nil {
			return err
		}
	}
	return nil
}

func moveKeys(ctx context.Context, source, target *node, slot int) error {
	for {
		keys, err := source.client.ClusterGetKeysInSlot(ctx, slot, migrateKeys).Result()
		if err != nil {
			return fmt.Errorf("CLUSTER GETKEYSINSLOT: %w", err)
		}
		if len(keys) == 0 {
			return nil
		}
		if err := source.migrate(ctx, target, keys); err != nil {
			return err
		}
	}
}

// setSlots sets the state of slots in one round trip.
func (n *node) setSlots(ctx context.Context, slots []int, state string, of *node) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := n.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, slot := range slots {
			pipe.Do(ctx, "CLUSTER", "SETSLOT", slot, state, of.id)
		}
		return nil
	})
	if err != nil {
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
