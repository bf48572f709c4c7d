package backend

import (
	"context"
	"fmt"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/redisnodes"
)

// RedisNodes is one Redis, or the masters of a Redis Cluster.
type RedisNodes struct {
	URLs     []string
	PIDs     []int  // empty: they were running
	Topology string // see result.Run
	CPULimit string // how their CPU is limited; empty: it is not
	Stop     func() error
}

// StartRedis starts one Redis, or a Redis Cluster of more than one node.
func StartRedis(ctx context.Context, cfg lab.Config, nodes int) (RedisNodes, error) {
	if nodes == 1 {
		server, err := lab.Redis.Start(ctx, cfg)
		if err != nil {
			return RedisNodes{}, err
		}
		return RedisNodes{
			URLs: []string{server.URL()}, PIDs: []int{server.PID()}, Stop: server.Stop, CPULimit: server.CPULimit(),
			Topology: "client and Redis on one machine",
		}, nil
	}
	cluster, err := redisnodes.StartCluster(ctx, redisnodes.ClusterConfig{Masters: nodes, Node: cfg})
	if err != nil {
		return RedisNodes{}, err
	}
	started := RedisNodes{
		URLs: cluster.URLs(), Stop: cluster.Stop, CPULimit: cluster.Nodes()[0].CPULimit(),
		Topology: fmt.Sprintf("client and Redis Cluster of %d masters on one machine", nodes),
	}
	for _, node := range cluster.Nodes() {
		started.PIDs = append(started.PIDs, node.PID())
	}
	return started, nil
}
