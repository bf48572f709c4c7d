package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/redisops"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/store/open"
)

// runOperation measures an operation of a Redis or a Redis Cluster.
func (a *app) runOperation(ctx context.Context, job matrix.Job) (run result.MatrixRun, err error) {
	began, values := time.Now(), job.Variant.Values
	cfg := matrix.OperationConfig(values)
	servers, topology, err := a.operationServers(ctx, values)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	cfg.URLs, cfg.PIDs = servers.URLs, servers.PIDs
	r, err := redisops.Run(ctx, cfg)
	if err != nil {
		return run, err
	}
	if asked := values[matrix.KeyDurability]; asked != "" && asked != r.Store.Durability.String() {
		return run, fmt.Errorf("durability: the server has %s in place of %s", r.Store.Durability, asked)
	}
	run.CPULimit, run.Metrics, run.LatencyFrom = servers.CPULimit, r.Metrics(), redisops.LatencyFrom(cfg.Client)
	run.Envelope = result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: result.RunID(began, open.Redis), Started: began, DurationS: time.Since(began).Seconds(), Command: a.command(),
			Store:    session.StoreOf(r.Store),
			Topology: topology, SharedHost: len(servers.PIDs) > 0, Commit: environment.Commit(ctx),
		},
		Validity:    r.Validity(),
		Environment: environment.Describe(ctx),
	}
	return run, nil
}

// operationServers starts the server or the cluster of a variant, unless it names the URL of
// one that runs.
func (a *app) operationServers(ctx context.Context, values matrix.Values) (started backend.Started, topology string, err error) {
	name := values.Store()
	target, err := a.target(name)
	if err != nil {
		return started, "", err
	}
	start := values.Start(target)
	servers, err := start.Check(name, &target)
	if err != nil {
		return started, "", err
	}
	if !servers.Any() {
		return backend.Started{URLs: []string{name}, Stop: func() error { return nil }}, "one Redis that was running", nil
	}
	topology = "client and Redis on one machine"
	if start.Nodes > 1 {
		topology = fmt.Sprintf("client and Redis Cluster of %d masters on one machine", start.Nodes)
	}
	started, err = servers.Start(ctx)
	return started, topology, err
}
