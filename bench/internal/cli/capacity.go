package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/capacity"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/progress"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

func (a *app) capacityCommand() *cobra.Command {
	var o runOptions
	targets := ""
	cfg := capacity.Default()
	slo, warmup, arrival := "p99=20ms", capacityWarmup, load.ArrivalPoisson
	cmd := &cobra.Command{
		Use:   "capacity [STORE] [--target URL,...]",
		Short: "Find the highest rate that holds at a service level, and what limits it",
		Long: `Find the highest rate that holds at a service level, and what limits it.

A bench server is started on the store, as bench run does, and measured:

  scaling       closed loops with 1 to 512 requests in flight. The Universal
                Scalability Law is fitted to the throughputs.
  search        short open loops find the neighbourhood of the rate, and holds
                (--hold) the highest rate that meets the service level.
  hold          a rate 5% below it, and lower ones, until one is held twice.
  validation    one rate in the middle of the range, compared with the prediction
                from the other measurements.

A search takes about 7 holds, and at most 12, and the time for the scaling.

At the end the store is audited. docs/capacity.md explains the result.

With --target no server is started: bench servers that already run are measured, all
together, as by bench load. Name the store behind them to measure its costs and to audit
it. If SAGABENCH_SERVER_TOKEN is set, that token is sent to them.`,
		Example: `  bench capacity pebble --slo p99=20ms
  bench capacity redis --start --slo p99=5ms,p99.9=50ms,errors=0.1%
  bench capacity mysql --start --hold 5m --fill 1000000 --repeat 3
  bench capacity redis://10.0.0.9:6379 --target http://10.0.0.1:8080,http://10.0.0.2:8080`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed(targetFlag) {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return exactlyOneStore(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.SLO, err = result.ParseSLO(slo); err != nil {
				return fmt.Errorf("--%w", err)
			}
			switch {
			case cfg.Hold < shortestHold:
				return fmt.Errorf("--hold: %v, must be at least %v", cfg.Hold, shortestHold)
			case cfg.Repeat < 1:
				return fmt.Errorf("--repeat: %d, must be at least 1", cfg.Repeat)
			case warmup < 0:
				return fmt.Errorf("--warmup: %v, must not be negative", warmup)
			}
			a.options.Load.Arrival = arrival
			if err := a.options.Load.ValidateOpen(); err != nil {
				return err
			}
			var on setup
			if !cmd.Flags().Changed(targetFlag) {
				o.store = args[0]
				on, err = a.setUp(cmd.Context(), o)
			} else if err = o.start.None(); err == nil && o.fill != 0 {
				err = errors.New("--fill: the servers run already; fill the store through them")
			} else if err == nil {
				on, err = a.running(targets, session.ProtocolBench, args, "capacity")
			}
			if err != nil {
				return err
			}
			defer on.stop()
			on.cfg.Load.Warmup = warmup
			return a.capacity(cmd.Context(), on, cfg.WithHold(cfg.Hold))
		},
	}
	f := cmd.Flags()
	f.StringVar(&slo, "slo", slo, "service level: the highest latency of percentiles, and the share of errors allowed, as p99=20ms,errors=0.1%")
	f.DurationVar(&cfg.Hold, "hold", cfg.Hold, "how long a rate must meet the service level; the other measurements are scaled with it")
	f.IntVar(&cfg.Repeat, "repeat", cfg.Repeat, "number of searches; the result has their spread")
	f.DurationVar(&warmup, "warmup", warmup, "before each measurement, not counted")
	f.StringVar((*string)(&arrival), "arrival", string(arrival), "arrival process: poisson (independent clients) or constant (evenly spaced)")
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-STORE)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
	o.flags(f)
	targetsFlag(cmd, &targets)
	a.maxInFlightFlag(cmd)
	a.metricsFlag(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

// capacityWarmup comes before each measurement of a search.
const capacityWarmup = time.Second

// shortestHold has a few seconds to judge.
const shortestHold = 2 * time.Second

func (a *app) capacity(ctx context.Context, on setup, cfg capacity.Config) error {
	summary, err := a.findCapacity(ctx, on, cfg)
	if err != nil {
		return err
	}
	d := report.Document(result.Result{Dir: on.cfg.Dir, Capacity: &summary})
	return a.writeAndShow(summary, summary.Validity, d, on.cfg.Dir)
}

// findCapacity searches for the highest rate.
func (a *app) findCapacity(ctx context.Context, on setup, cfg capacity.Config) (summary result.CapacitySummary, err error) {
	stopMetrics, err := a.serveMetrics(&on.cfg.Load)
	if err != nil {
		return summary, err
	}
	defer stopMetrics()
	shown := progress.Follow(a.stderr, &on.cfg)
	if !shown.Terminal { // each measurement has its line
		on.cfg.Load.Progress = nil
	}
	on.cfg.SLO = cfg.SLO
	cfg.Load, cfg.Status = on.cfg.Load, on.cfg.Status
	measured, err := session.Open(ctx, on.cfg, on.servers)
	if err == nil {
		cfg.Batches = on.flushers * measured.Partitions()
		summary, err = capacity.Run(ctx, cfg, measured)
	}
	shown.EndBar()
	if err != nil {
		_ = os.Remove(resultsDir) // if it is empty: nothing was written
		if ctx.Err() != nil {
			err = errors.New("interrupted before anything was measured")
		}
		return summary, on.advise(err)
	}
	return summary, nil
}
