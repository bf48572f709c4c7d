package redisconn

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// SlotCount is the number of hash slots of a Redis Cluster.
const SlotCount = 16384

// SlotRange is slots of a Redis Cluster and the servers that have their keys.
type SlotRange struct {
	First, Last int
	Nodes       []ClusterNode // the master, then its replicas
}

// ClusterNode is a server as its cluster knows it.
type ClusterNode struct{ Address, ID string }

// Slots asks a server, whose address is asked, who has the slots of its cluster. It reads
// the reply itself: a server that does not know its own address has nil for its host, which
// the client's parser refuses.
func Slots(ctx context.Context, client *redis.Client, asked string) ([]SlotRange, error) {
	reply, err := client.Do(ctx, "cluster", "slots").Slice() // CLUSTER SHARDS needs 7.0
	if err != nil {
		return nil, fmt.Errorf("CLUSTER SLOTS of %s: %w", asked, err)
	}
	ranges := make([]SlotRange, len(reply))
	for i := range reply {
		entry, _ := reply[i].([]any)
		var ok bool
		if ranges[i], ok = parseRange(entry, asked); !ok {
			return nil, fmt.Errorf("CLUSTER SLOTS of %s: the reply has %.100q", asked, fmt.Sprint(reply[i]))
		}
	}
	return ranges, nil
}

// parseRange parses an entry of the reply of the server at an address: the first and the
// last slot, and for each server its host, its port, its ID, and more.
func parseRange(entry []any, asked string) (r SlotRange, ok bool) {
	if len(entry) < 3 {
		return r, false
	}
	first, ok1 := entry[0].(int64)
	last, ok2 := entry[1].(int64)
	r.First, r.Last = int(first), int(last)
	for _, node := range entry[2:] {
		words, _ := node.([]any)
		if len(words) < 3 {
			return r, false
		}
		host, _ := words[0].(string)
		port, ok := words[1].(int64)
		id, _ := words[2].(string)
		if !ok {
			return r, false
		}
		address := Reachable(net.JoinHostPort(host, strconv.FormatInt(port, 10)), asked)
		r.Nodes = append(r.Nodes, ClusterNode{address, cmp.Or(id, address)}) // a proxy may have no IDs
	}
	return r, ok1 && ok2 && 0 <= first && first <= last && last < SlotCount
}
