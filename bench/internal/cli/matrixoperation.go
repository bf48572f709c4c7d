package cli

import (
	"cmp"
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
	servers, err := a.operationServers(ctx, values)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	cfg.URLs, cfg.PIDs = servers.URLs, servers.PIDs
	r, err := redisops.Run(ctx, cfg)
	if err != nil {
		return run, err
	}
	if asked := values.Text(matrix.KeyDurability); asked != "" && asked != r.Store.Durability.String() {
		return run, fmt.Errorf("durability: the server has %s in place of %s", r.Store.Durability, asked)
	}
	run.CPULimit, run.Metrics = servers.CPULimit, r.Metrics()
	run.Envelope = result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: result.RunID(began, open.Redis), Started: began, DurationS: time.Since(began).Seconds(), Command: a.command(),
			Store:    session.StoreOf(r.Store),
			Topology: servers.Topology, SharedHost: len(servers.PIDs) > 0, Commit: environment.Commit(ctx),
		},
		Validity:    r.Validity(),
		Environment: environment.Describe(ctx),
	}
	return run, nil
}

// operationServers starts the server or the cluster of a variant, unless it names the URL of
// one that runs.
func (a *app) operationServers(ctx context.Context, values matrix.Values) (backend.RedisNodes, error) {
	name := cmp.Or(values.Text(matrix.KeyStore), open.Redis)
	target, err := a.target(name)
	if err != nil {
		return backend.RedisNodes{}, err
	}
	nodes := values.Int(matrix.KeyNodes, 1)
	start := starting{start: name == open.Redis, server: serverOf(values), durability: values.Text(matrix.KeyDurability)}
	for setting, value := range values.Settings() {
		start.set = append(start.set, setting+"="+value)
	}
	switch {
	case target.Driver != open.Redis:
		return backend.RedisNodes{}, fmt.Errorf("store: %s: operations are measured on a Redis", target.Driver)
	case !start.start && nodes > 1:
		return backend.RedisNodes{}, errors.New("nodes are servers that are started: leave them or the URL out")
	}
	settings, err := start.check(name, &target)
	if err != nil {
		return backend.RedisNodes{}, err
	}
	if !start.start {
		return backend.RedisNodes{URLs: []string{name}, Topology: "one Redis that was running", Stop: func() error { return nil }}, nil
	}
	start.server.Settings = settings
	return backend.StartRedis(ctx, start.server, nodes)
}
