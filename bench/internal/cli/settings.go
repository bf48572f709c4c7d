package cli

import (
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/server"
	"sagabench/internal/config"
	"sagabench/internal/secret"
	"sagabench/saga"
	"sagabench/store/open"
)

// options are all settings: the configuration of each package, and what the commands add.
type options struct {
	open.Config
	Saga      saga.Config
	StoreWait time.Duration // for a store that does not answer, at the start
	Server    struct {
		server.Config
		Token, AdminToken         secret.Text // several, with white space between
		TokenFile, AdminTokenFile string
	}
	Load struct {
		load.Config
		Rate    string // hides Config.Rate
		Metrics string
	}
}

// defaults returns the defaults of the packages.
func defaults() options {
	var o options
	o.Config, o.Saga, o.StoreWait = open.DefaultConfig(), saga.DefaultConfig(), time.Minute
	o.Server.Config, o.Load.Config = server.DefaultConfig(), load.Default()
	o.Server.Listen = "" // depends on the command
	return o
}

// settings names every setting. conf.sample.yml has the same, with their meaning.
func (o *options) settings() config.Settings {
	settings := config.Settings{
		"coordinator.lease":              &o.Saga.Lease,
		"coordinator.request_timeout":    &o.Saga.RequestTimeout,
		"coordinator.retry_interval":     &o.Saga.RetryInterval,
		"coordinator.max_retry_interval": &o.Saga.MaxRetryInterval,
		"coordinator.poll_interval":      &o.Saga.PollInterval,
		"coordinator.max_recovering":     &o.Saga.MaxRecovering,
		"coordinator.max_in_flight":      &o.Saga.MaxInFlight,
		"coordinator.store_wait":         &o.StoreWait,
		"coordinator.branch_conns":       &o.Server.BranchConns,
		"coordinator.branch_allow":       &o.Server.BranchAllow,
		"coordinator.branch_loopback":    &o.Server.BranchLoopback,
		"coordinator.branch_ca":          &o.Server.BranchTLS.CA,
		"coordinator.branch_cert":        &o.Server.BranchTLS.Cert,
		"coordinator.branch_key":         &o.Server.BranchTLS.Key,

		"group_commit.max_batch": &o.Saga.Commit.MaxBatch,
		"group_commit.max_queue": &o.Saga.Commit.MaxQueue,
		"group_commit.flushers":  &o.Saga.Commit.Flushers,
		"group_commit.timeout":   &o.Saga.Commit.Timeout,

		"server.listen":             &o.Server.Listen,
		"server.token":              &o.Server.Token,
		"server.token_file":         &o.Server.TokenFile,
		"server.admin_token":        &o.Server.AdminToken,
		"server.admin_token_file":   &o.Server.AdminTokenFile,
		"server.max_conns":          &o.Server.MaxConns,
		"server.max_conns_per_peer": &o.Server.MaxConnsPerPeer,
		"server.max_wait":           &o.Server.MaxWait,
		"server.drain":              &o.Server.Drain,
		"server.grace":              &o.Server.Grace,
		"server.pprof":              &o.Server.Pprof,
		"server.audit_submits":      &o.Server.AuditSubmits,
		"server.tls_cert":           &o.Server.TLS.Cert,
		"server.tls_key":            &o.Server.TLS.Key,
		"server.client_ca":          &o.Server.TLS.CA,

		"load.in_flight":     &o.Load.InFlight,
		"load.max_in_flight": &o.Load.MaxInFlight,
		"load.rate":          &o.Load.Rate,
		"load.arrival":       (*string)(&o.Load.Arrival),
		"load.duration":      &o.Load.Duration,
		"load.warmup":        &o.Load.Warmup,
		"load.metrics":       &o.Load.Metrics,

		"scenario.steps":    &o.Server.Scenario.Steps,
		"scenario.branches": &o.Server.Scenario.Branches,
		"scenario.payload":  &o.Server.Scenario.Payload,
		"scenario.fail":     &o.Server.Scenario.Fail,
	}
	maps.Copy(settings, o.Config.Keys()) // of the stores
	return settings
}

// Tokens are the tokens that clients may show.
func (o *options) Tokens() secret.Tokens { return secret.NewTokens(o.Server.Token.Reveal()) }

// AdminTokens are the admin's tokens.
func (o *options) AdminTokens() secret.Tokens { return secret.NewTokens(o.Server.AdminToken.Reveal()) }

// configure sets the options from file and environment, and then from the flags given.
func (a *app) configure(cmd *cobra.Command) error {
	given := make(map[*pflag.Flag]string)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list { // no setting has such a flag
			given[f] = f.Value.String()
		}
	})
	a.options = defaults()
	if err := a.options.settings().Load(a.configFile, a.environ); err != nil {
		return err
	}
	for f, value := range given { // the flags point into a.options
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
	}
	return config.CheckTokensDiffer(a.options.Tokens(), a.options.AdminTokens())
}

func (a *app) loadFlags(cmd *cobra.Command) {
	o, f := &a.options, cmd.Flags()
	f.IntVar(&o.Load.InFlight, "in-flight", o.Load.InFlight, "closed loop: requests kept in flight")
	f.StringVar(&o.Load.Rate, "rate", o.Load.Rate, "open loop: requests due, as 500/s, in steps 100/s,200/s or rising 100/s..2000/s; latency counts from when one was due")
	f.StringVar((*string)(&o.Load.Arrival), "arrival", string(o.Load.Arrival), "open loop: constant, evenly spaced, or poisson, as many users come")
	a.maxInFlightFlag(cmd)
	f.DurationVar(&o.Load.Duration, "duration", o.Load.Duration, "of the measured part")
	f.DurationVar(&o.Load.Warmup, "warmup", o.Load.Warmup, "before it, not measured")
	a.metricsFlag(cmd)
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-STORE)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
}

func (a *app) maxInFlightFlag(cmd *cobra.Command) {
	l := &a.options.Load
	cmd.Flags().IntVar(&l.MaxInFlight, "max-in-flight", l.MaxInFlight, "open loop: most requests in flight; one that is due then waits, which counts in its latency")
}

func (a *app) scenarioFlags(cmd *cobra.Command) {
	o, f := &a.options.Server.Scenario, cmd.Flags()
	f.IntVar(&o.Steps, "steps", o.Steps, "steps of a saga")
	f.StringVar(&o.Branches, "branches", o.Branches, "empty: they succeed without a call; http: the bench server calls itself")
	f.IntVar(&o.Payload, "payload", o.Payload, "bytes per step")
	f.Float64Var(&o.Fail, "fail", o.Fail, "share of sagas whose last step is refused, 0 to 1")
}

func (a *app) serverFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.options.Server.Listen, "listen", a.options.Server.Listen, "HOST:PORT of the server (default "+server.ListenBench+", of bench coordinator "+server.ListenCoordinator+"); port 0: any that is free")
	f.BoolVar(&a.options.Server.Pprof, "pprof", a.options.Server.Pprof, "serve profiles under /debug/pprof")
}

// target is the store of that name, as the settings have it.
func (a *app) target(name string) (open.Target, error) { return open.Parse(name, a.openConfig()) }

// dataDir is where an embedded store lives that outlasts a run, when the
// settings do not say.
const dataDir = "sagabench-data"

// standingTarget is a store that outlasts a run.
func (a *app) standingTarget(name string) (open.Target, error) {
	t, err := a.target(name)
	if t.Embedded() && t.Config.Pebble.Dir == "" {
		t.Config.Pebble.Dir = dataDir
	}
	return t, err
}

func (a *app) openConfig() open.Config {
	cfg := a.options.Config
	cfg.Lease = a.options.Saga.Lease
	return cfg
}

func (a *app) sagaConfig() saga.Config { return a.options.Saga }

func (a *app) scenario() server.Scenario { return a.options.Server.Scenario }

// loadConfig returns the load's configuration without targets and directory.
func (a *app) loadConfig() (load.Config, error) {
	cfg := a.options.Load.Config
	rate, err := load.ParseProfile(a.options.Load.Rate)
	cfg.Rate = rate
	return cfg, err
}
