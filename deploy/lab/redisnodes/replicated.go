package redisnodes

import (
	"context"
	"errors"
	"fmt"
	"net"

	"sagabench/deploy/lab"
)

// Replicated is a running Redis with a replica, and nobody who would replace it.
type Replicated struct{ nodes []*node }

// StartReplicated starts a master and a replica. It returns when the replica has the data of
// its master. The settings are those of both, and may be all but port. In Config.Dir, each
// server has a directory of its own.
func StartReplicated(ctx context.Context, cfg lab.Config) (r *Replicated, err error) {
	r = &Replicated{}
	if cfg.Settings, err = sharedSettings(cfg.Settings); err == nil {
		r.nodes, err = startReplicated(ctx, cfg)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a Redis with a replica: %w", err), r.Stop())
	}
	return r, nil
}

// startReplicated starts a master and a replica with shared settings, and waits until the
// replica follows. After an error it returns those that were started.
func startReplicated(ctx context.Context, cfg lab.Config) (nodes []*node, err error) {
	for _, name := range []string{"master", "replica"} {
		n, err := startNode(ctx, lab.Redis, cfg, name)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(nodes[0].Addr())
	if err != nil {
		return nodes, err
	}
	if err := nodes[1].client.ReplicaOf(ctx, host, port).Err(); err != nil {
		return nodes, fmt.Errorf("REPLICAOF: %w", err)
	}
	return nodes, lab.Poll(ctx, nodes[1].follows)
}

// Nodes returns the two nodes, first the one that was started as the master. To stop them,
// use Stop.
func (r *Replicated) Nodes() []*lab.Server { return servers(r.nodes) }

// Promote makes the replica a master. The master must have ended.
func (r *Replicated) Promote(ctx context.Context) error {
	if err := r.nodes[1].client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("promote the replica: REPLICAOF NO ONE: %w", err)
	}
	return nil
}

// Stop ends both servers for good, and also paused ones: see [lab.Server.Stop].
func (r *Replicated) Stop() error { return stop(r.nodes) }
