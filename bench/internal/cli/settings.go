package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/server"
	"sagabench/internal/config"
	"sagabench/saga"
	"sagabench/store/open"
)

// defaults gathers what the packages default to: there is one place for each.
func defaults() config.Options {
	var o config.Options
	s, v, l := saga.DefaultConfig(), server.DefaultConfig(), load.Default()
	o.Settings = open.DefaultSettings()
	o.Coordinator.Lease = s.Lease
	o.Coordinator.RequestTimeout = s.RequestTimeout
	o.Coordinator.RetryInterval = s.RetryInterval
	o.Coordinator.MaxRetryInterval = s.MaxRetryInterval
	o.Coordinator.PollInterval = s.PollInterval
	o.Coordinator.MaxRecovering = s.MaxRecovering
	o.Coordinator.MaxInFlight = s.MaxInFlight
	o.Coordinator.BranchConns = v.BranchConns
	o.Coordinator.StoreWait = time.Minute
	o.Coordinator.BranchAllow = []string{}
	o.Coordinator.BranchLoopback = true
	o.GroupCommit.MaxBatch = s.Commit.MaxBatch
	o.GroupCommit.MaxQueue = s.Commit.MaxQueue
	o.GroupCommit.Flushers = s.Commit.Flushers
	o.GroupCommit.Timeout = s.Commit.Timeout
	o.Server.MaxConns = v.MaxConns
	o.Server.MaxWait = v.Wait
	o.Server.MaxPerPeer = v.MaxConnsPerPeer
	o.Server.Drain = v.Drain
	o.Server.Grace = v.Grace
	o.Server.Pprof = v.Pprof
	o.Load.InFlight = l.InFlight
	o.Load.Arrival = string(l.Arrival)
	o.Load.Duration = l.Duration
	o.Load.Warmup = l.Warmup
	o.Scenario.Steps = v.Scenario.Steps
	o.Scenario.Branches = v.Scenario.Branches
	o.Scenario.Payload = v.Scenario.Payload
	o.Scenario.Fail = v.Scenario.Fail
	return o
}

// configure lays file and environment over the defaults, and over those the
// flags that were given.
func (a *app) configure(cmd *cobra.Command) error {
	given := make(map[*pflag.Flag]string)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list { // no option is one
			given[f] = f.Value.String()
		}
	})
	options, err := config.Load(defaults(), a.configFile, a.environ)
	if err != nil {
		return err
	}
	a.options = options
	for f, value := range given { // the flags point into a.options
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
	}
	return nil
}

func (a *app) loadFlags(cmd *cobra.Command) {
	o, f := &a.options, cmd.Flags()
	f.IntVar(&o.Load.InFlight, "in-flight", o.Load.InFlight, "closed loop: requests kept in flight")
	f.StringVar(&o.Load.Rate, "rate", o.Load.Rate, "open loop: requests due, as 500/s, in steps 100/s,200/s or rising 100/s..2000/s; latency counts from when one was due")
	f.StringVar(&o.Load.Arrival, "arrival", o.Load.Arrival, "open loop: constant, evenly spaced, or poisson, as many users come")
	f.DurationVar(&o.Load.Duration, "duration", o.Load.Duration, "of the measured part")
	f.DurationVar(&o.Load.Warmup, "warmup", o.Load.Warmup, "before it, not measured")
	a.metricsFlag(cmd)
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-STORE)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
}

func (a *app) scenarioFlags(cmd *cobra.Command) {
	o, f := &a.options, cmd.Flags()
	f.IntVar(&o.Scenario.Steps, "steps", o.Scenario.Steps, "steps of a saga")
	f.StringVar(&o.Scenario.Branches, "branches", o.Scenario.Branches, "empty: they succeed without a call; http: the bench server calls itself")
	f.IntVar(&o.Scenario.Payload, "payload", o.Scenario.Payload, "bytes per step")
	f.Float64Var(&o.Scenario.Fail, "fail", o.Scenario.Fail, "share of sagas whose last step is refused, 0 to 1")
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
	if t.Embedded() && t.Dir() == "" {
		t.SetDir(dataDir)
	}
	return t, err
}

func (a *app) openConfig() open.Config {
	return a.options.Settings.Config(a.options.Coordinator.Lease)
}

func (a *app) sagaConfig() saga.Config {
	o := a.options
	cfg := saga.DefaultConfig()
	cfg.Lease = o.Coordinator.Lease
	cfg.RequestTimeout = o.Coordinator.RequestTimeout
	cfg.RetryInterval = o.Coordinator.RetryInterval
	cfg.MaxRetryInterval = o.Coordinator.MaxRetryInterval
	cfg.PollInterval = o.Coordinator.PollInterval
	cfg.MaxRecovering = o.Coordinator.MaxRecovering
	cfg.MaxInFlight = o.Coordinator.MaxInFlight
	cfg.Commit.MaxBatch = o.GroupCommit.MaxBatch
	cfg.Commit.MaxQueue = o.GroupCommit.MaxQueue
	cfg.Commit.Flushers = o.GroupCommit.Flushers
	cfg.Commit.Timeout = o.GroupCommit.Timeout
	return cfg
}

func (a *app) scenario() server.Scenario {
	s := a.options.Scenario
	return server.Scenario{Steps: s.Steps, Branches: s.Branches, Payload: s.Payload, Fail: s.Fail}
}

// loadConfig leaves out where to send and where to write.
func (a *app) loadConfig() (load.Config, error) {
	cfg := load.Default()
	cfg.InFlight = a.options.Load.InFlight
	cfg.Duration = a.options.Load.Duration
	cfg.Warmup = a.options.Load.Warmup
	cfg.Arrival = load.Arrival(a.options.Load.Arrival)
	rate, err := parseProfile(a.options.Load.Rate)
	cfg.Rate = rate
	return cfg, err
}

// parseProfile reads a rate, as 500/s, steps, as 100/s,200/s,400/s, or a ramp, as
// 100/s..2000/s. Empty is a closed loop.
func parseProfile(text string) (load.Profile, error) {
	if text == "" {
		return load.Profile{}, nil
	}
	profile, err := parseRates(text)
	if err == nil {
		err = profile.Validate()
	}
	if err != nil {
		return load.Profile{}, fmt.Errorf("rate: %q: %w; want requests per time, as 500/s, in steps 100/s,200/s or rising 100/s..2000/s, or none for a closed loop", text, err)
	}
	return profile, nil
}

func parseRates(text string) (load.Profile, error) {
	if from, to, ramp := strings.Cut(text, ".."); ramp {
		first, err := parseRate(from)
		last, err2 := parseRate(to)
		return load.Ramp(first, last), cmp.Or(err, err2)
	}
	var steps []float64
	for step := range strings.SplitSeq(text, ",") {
		rate, err := parseRate(step)
		if err != nil {
			return load.Profile{}, err
		}
		steps = append(steps, rate)
	}
	return load.Steps(steps...), nil
}

// parseRate reads 500, 500/s, 30000/m or 100/250ms, as vegeta does, into
// requests per second.
func parseRate(text string) (float64, error) {
	number, unit, found := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	per := time.Second
	if err == nil && found {
		if unit != "" && (unit[0] < '0' || unit[0] > '9') {
			unit = "1" + unit
		}
		per, err = time.ParseDuration(unit)
	}
	if err != nil || !(n >= 0) || per <= 0 {
		return 0, fmt.Errorf("%q is no rate", text)
	}
	return n / per.Seconds(), nil
}
