package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/capacity"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

func (a *app) capacityCommand() *cobra.Command {
	var start starting
	targets := ""
	cfg := capacity.Default()
	slo, step, warmup := "p99=20ms", cfg.Step, time.Second
	cmd := &cobra.Command{
		Use:   "capacity [STORE] [--target URL,...]",
		Short: "Find the highest rate that meets a service level, and what limits it",
		Long: `Find the highest rate that meets a service level, and what limits it.

A bench server is started on the store, as bench run does, and measured in five parts:

  scaling       closed loops with 1 to 512 requests in flight. The Universal
                Scalability Law is fitted to the throughputs.
  first rates   open loops from 10% of the highest throughput upwards, until the
                service level is violated.
  search        rates near the highest one that meets the service level, until its
                95% interval is 10% wide or the time is over (150 s by default).
  validation    one rate in the middle of the range, compared with the prediction
                from the other measurements.
  recheck       the best point of the scaling curve once more.

At the end the store is audited. docs/capacity.md explains the result.

With --target no server is started: bench servers that already run are measured, all
together, as by bench load. Name the store behind them to measure its costs and to audit
it. If SAGABENCH_SERVER_TOKEN is set, that token is sent to them.`,
		Example: `  bench capacity pebble --slo p99=20ms
  bench capacity redis --start --slo p99=5ms,p99.9=50ms,errors=0.1%
  bench capacity mysql --start --duration 10s --arrival poisson
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
			case step <= 0:
				return fmt.Errorf("--duration: %v, must be more than 0", step)
			case warmup < 0:
				return fmt.Errorf("--warmup: %v, must not be negative", warmup)
			}
			if err := a.options.Load.Arrival.Validate(); err != nil {
				return err
			}
			var on setup
			if !cmd.Flags().Changed(targetFlag) {
				on, err = a.setUp(cmd.Context(), runOptions{store: args[0], start: start})
			} else if err = start.none(); err == nil {
				on, err = a.running(targets, session.ProtocolBench, args, "capacity")
			}
			if err != nil {
				return err
			}
			defer on.stop()
			on.cfg.Load.Warmup = warmup
			return a.capacity(cmd.Context(), on, cfg.WithStep(step, warmup))
		},
	}
	cmd.Flags().StringVar(&slo, "slo", slo, "service level: the highest latency of percentiles, and the share of errors allowed, as p99=20ms,errors=0.1%")
	start.flags(cmd.Flags())
	targetsFlag(cmd, &targets)
	a.sweepFlags(cmd, &step, &warmup)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) capacity(ctx context.Context, on setup, cfg capacity.Config) error {
	stopMetrics, err := a.serveMetrics(&on.cfg.Load)
	if err != nil {
		return err
	}
	defer stopMetrics()
	progress := a.newProgress(&on.cfg)
	if !progress.terminal { // each measurement has its line
		on.cfg.Load.Progress = nil
	}
	cfg.Load, cfg.Batches, cfg.Status = on.cfg.Load, on.flushers, on.cfg.Status
	var summary result.CapacitySummary
	measured, err := session.Open(ctx, on.cfg, on.servers)
	if err == nil {
		summary, err = capacity.Run(ctx, cfg, measured)
	}
	progress.endBar()
	if err != nil {
		_ = os.Remove(resultsDir) // if it is empty: nothing was written
		if ctx.Err() != nil {
			err = errors.New("interrupted before anything was measured")
		}
		return on.advise(err)
	}
	d := report.Document(result.Result{Dir: on.cfg.Dir, Capacity: &summary})
	return a.writeAndShow(summary, summary.Validity, d, on.cfg.Dir)
}

// sweepFlags binds the flags of the load that a search does not set itself.
func (a *app) sweepFlags(cmd *cobra.Command, step, warmup *time.Duration) {
	o, f := &a.options, cmd.Flags()
	f.DurationVar(step, "duration", *step, "shortest measurement of a rate; the time of the search is scaled with it")
	f.DurationVar(warmup, "warmup", *warmup, "before each measurement, not counted")
	f.StringVar((*string)(&o.Load.Arrival), "arrival", string(o.Load.Arrival), "arrival process: constant (evenly spaced) or poisson (independent clients)")
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-STORE)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
	a.metricsFlag(cmd)
}
