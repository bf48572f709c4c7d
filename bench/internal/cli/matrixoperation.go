package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/redisops"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/store/open"
)

// runOperation measures an operation of a Redis or a Redis Cluster.
func (a *app) runOperation(ctx context.Context, job matrix.Job) (run result.MatrixRun, err error) {
	began, values := time.Now(), job.Variant.Values
	cfg := operationConfig(values)
	servers, err := a.operationServers(ctx, values)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	cfg.URLs, cfg.PIDs = servers.urls, servers.pids
	r, err := redisops.Run(ctx, cfg)
	if err != nil {
		return run, err
	}
	if asked := values.Text(matrix.KeyDurability); asked != "" && asked != r.Store.Durability.String() {
		return run, fmt.Errorf("durability: the server has %s in place of %s", r.Store.Durability, asked)
	}
	run.CPULimit, run.Metrics = servers.cpuLimit, r.Metrics()
	run.Envelope = result.Envelope{
		Schema: result.Schema, Kind: result.KindRun,
		Run: result.Run{
			ID: result.RunID(began, open.Redis), Started: began, DurationS: time.Since(began).Seconds(), Command: a.command(),
			Store: result.Store{
				Driver: r.Store.Driver, Version: r.Store.Version, Settings: r.Store.Values, Durability: r.Store.Durability.String(),
			},
			Topology: servers.topology, SharedHost: len(servers.pids) > 0, Commit: environment.Commit(ctx),
		},
		Validity:    r.Validity(),
		Environment: environment.Describe(ctx),
	}
	return run, nil
}

func operationConfig(values matrix.Values) redisops.Config {
	cfg := redisops.Default()
	cfg.Operation = cmp.Or(values.Text(matrix.KeyOperation), cfg.Operation)
	cfg.Client = cmp.Or(values.Text(matrix.KeyClient), cfg.Client)
	cfg.Clients = values.Int(matrix.KeyClients, cfg.Clients)
	cfg.Pipeline = values.Int(matrix.KeyPipeline, cfg.Pipeline)
	cfg.Payload = values.Int(matrix.KeyPayload, cfg.Payload)
	cfg.ManyKeys = values.Text(matrix.KeyKeys) == "many"
	cfg.KeysPerRequest = values.Int(matrix.KeyKeysPerRequest, cfg.KeysPerRequest)
	cfg.Duration = values.Duration(matrix.KeyDuration, cfg.Duration)
	cfg.Warmup = values.Duration(matrix.KeyWarmup, cfg.Warmup)
	return cfg
}

// operationTarget is the servers that an operation is measured on.
type operationTarget struct {
	urls               []string
	pids               []int // empty: they were running
	topology, cpuLimit string
	stop               func() error
}

// operationServers starts the server or the cluster of a variant, unless it names the URL of
// one that runs.
func (a *app) operationServers(ctx context.Context, values matrix.Values) (operationTarget, error) {
	name := cmp.Or(values.Text(matrix.KeyStore), open.Redis)
	target, err := a.target(name)
	if err != nil {
		return operationTarget{}, err
	}
	nodes := values.Int(matrix.KeyNodes, 1)
	start := starting{start: name == open.Redis, durability: values.Text(matrix.KeyDurability)}
	for setting, value := range values.Settings() {
		start.set = append(start.set, setting+"="+value)
	}
	switch {
	case target.Driver != open.Redis:
		return operationTarget{}, fmt.Errorf("store: %s: operations are measured on a Redis", target.Driver)
	case !start.start && (nodes > 1 || values.Text(matrix.KeyBinary) != "" || values.Text(matrix.KeyCPUs) != ""):
		return operationTarget{}, errors.New("binary, cpus and nodes are for servers that are started: leave them or the URL out")
	}
	settings, err := start.check(name, &target)
	if err != nil {
		return operationTarget{}, err
	}
	if !start.start {
		return operationTarget{urls: []string{name}, topology: "one Redis that was running", stop: func() error { return nil }}, nil
	}
	cfg := lab.Config{Binary: values.Text(matrix.KeyBinary), CPUs: values.Float(matrix.KeyCPUs, 0), Settings: settings}
	if nodes > 1 {
		cluster, err := lab.StartCluster(ctx, cfg, nodes)
		if err != nil {
			return operationTarget{}, err
		}
		var pids []int
		for _, node := range cluster.Servers() {
			pids = append(pids, node.PID())
		}
		return operationTarget{
			urls: cluster.URLs(), pids: pids, stop: cluster.Stop, cpuLimit: cluster.Servers()[0].CPULimit(),
			topology: fmt.Sprintf("client and Redis Cluster of %d masters on one machine", nodes),
		}, nil
	}
	server, err := lab.Redis.Start(ctx, cfg)
	if err != nil {
		return operationTarget{}, err
	}
	return operationTarget{
		urls: []string{server.URL()}, pids: []int{server.PID()}, stop: server.Stop, cpuLimit: server.CPULimit(),
		topology: "client and Redis on one machine",
	}, nil
}
