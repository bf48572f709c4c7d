package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/capacity"
	"sagabench/bench/internal/limit"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/bench/internal/usl"
	"sagabench/bench/internal/validity"
	"sagabench/internal/format"
)

func (a *app) capacityCommand() *cobra.Command {
	var start starting
	targets := ""
	cfg := capacity.Default()
	slo, step, warmup := "p99=20ms", cfg.Step, time.Second
	cmd := &cobra.Command{
		Use:   "capacity [STORE] [--target URL,...]",
		Short: "Find the highest rate that keeps the latency you promised, and what limits it",
		Long: `Find the highest rate that keeps the latency you promised, and what limits it.

A bench server is started, as bench run does. Closed loops with 1 to 512 in flight
give the scaling curve, to which the Universal Scalability Law is fitted; open loops
from a tenth of the highest throughput upwards give the latency over the rate; then
rates near the one from which the service level is broken are measured, always where it
is as likely to be kept as not, until that rate is known to some 5% or time is up.

With --target none is started: bench servers that run already are measured, together,
as bench load does. With the store that is behind them, its costs are measured and it
is audited afterwards. A token that is configured (SAGABENCH_SERVER_TOKEN) is shown to
them.`,
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
				on, err = a.setUp(cmd.Context(), args[0], start)
			} else if err = start.none(); err == nil {
				on, err = a.running(targets, args, "capacity")
			}
			if err != nil {
				return err
			}
			defer on.stop()
			on.cfg.Load.Warmup = warmup
			return a.capacity(cmd.Context(), on, cfg.WithStep(step, warmup))
		},
	}
	cmd.Flags().StringVar(&slo, "slo", slo, "what was promised: bounds of percentiles, and the share of errors, as p99=20ms,errors=0.1%")
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
	if progress.bars == nil { // each measurement has its line
		on.cfg.Load.Progress = nil
	}
	s := &capacitySearch{cfg: cfg, load: on.cfg.Load, status: on.cfg.Status, result: result.Capacity{SLO: cfg.SLO, Predicted: []result.Predicted{}}}
	base, err := s.measure(ctx, on)
	progress.done()
	if err != nil {
		_ = os.Remove(resultsDir) // if it is empty: nothing was written
		if ctx.Err() != nil {
			err = errors.New("interrupted before anything was measured")
		}
		return on.advise(err)
	}
	summary := result.CapacitySummary{
		Envelope: base.Envelope,
		Capacity: s.conclude(limit.Machine{Cores: base.Environment.Cores, Shared: base.Run.SharedHost, Batches: on.flushers}),
	}
	summary.Kind = result.KindCapacity
	foretell(&summary)
	summary.Validity = validity.JudgeCapacity(base.Validity, summary.Capacity)
	d := report.Document(result.Result{Dir: on.cfg.Dir, Capacity: &summary})
	if err := write(on.cfg.Dir, summary, d); err != nil {
		return err
	}
	return a.show(summary, summary.Validity, d, on.cfg.Dir)
}

// sweepFlags are those of the load that a search leaves open.
func (a *app) sweepFlags(cmd *cobra.Command, step, warmup *time.Duration) {
	o, f := &a.options, cmd.Flags()
	f.DurationVar(step, "duration", *step, "of a measurement at one rate, at least; the search takes longer or shorter with it")
	f.DurationVar(warmup, "warmup", *warmup, "before each, not measured")
	f.StringVar((*string)(&o.Load.Arrival), "arrival", string(o.Load.Arrival), "requests are due at even distances (constant), or as independent clients send them (poisson)")
	f.StringVar(&a.out, "out", "", "result directory (default sagabench-results/TIME-STORE)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
	a.metricsFlag(cmd)
}

// capacitySearch is a search under way.
type capacitySearch struct {
	cfg    capacity.Config
	load   load.Config
	status func(string)
	result result.Capacity
}

// measure returns what all measurements of the search have in common.
func (s *capacitySearch) measure(ctx context.Context, on setup) (result.Summary, error) {
	servers, err := session.Open(ctx, on.cfg, on.servers)
	if err != nil {
		return result.Summary{}, err
	}
	return servers.Close(ctx, s.run(ctx, servers.Measure))
}

func (s *capacitySearch) run(ctx context.Context, measure func(context.Context, load.Config) (result.Step, error)) (err error) {
	closed := func(ctx context.Context, n int, length time.Duration) (result.Step, error) {
		shape := s.load
		shape.InFlight, shape.Rate, shape.Duration, shape.Warmup = n, load.Profile{}, length, s.cfg.ScalingWarmup
		m, err := measure(ctx, shape)
		if err == nil {
			s.status(fmt.Sprintf("%d in flight: %s/s", n, format.Number(m.Load.AchievedPerS)))
		}
		return m, err
	}
	open := func(ctx context.Context, rate float64, length time.Duration) (result.Step, error) {
		shape := s.load
		shape.Rate, shape.Duration = load.Constant(rate), length
		m, err := measure(ctx, shape)
		if err == nil {
			s.status(fmt.Sprintf("%s/s for %s s: %s", format.Number(rate), format.Number(length.Seconds()), s.verdict(m)))
		}
		return m, err
	}
	s.status(fmt.Sprintf("closed loops with 1 to %d in flight", capacity.MostInFlight))
	c := &s.result
	if c.Scaling, err = capacity.Scaling(ctx, s.cfg.ScalingStep, closed); err != nil {
		return err
	}
	best := slices.MaxFunc(c.Scaling, func(a, b result.Step) int { return cmp.Compare(a.Load.AchievedPerS, b.Load.AchievedPerS) })
	if c.Steps, err = capacity.Search(ctx, s.cfg, best.Load.AchievedPerS, open); err != nil {
		return err
	}
	if edge := capacity.FindEdge(c.Steps); edge.Rate != nil {
		middle, err := open(ctx, math.Round(middleShare**edge.Rate), s.cfg.Step)
		if middle.Load.Requests > 0 {
			c.Validation = &middle
		}
		if err != nil {
			return err
		}
	}
	s.status("the highest of the closed loops again")
	again, err := closed(ctx, best.Load.InFlight, s.cfg.ScalingStep)
	if again.Load.Requests > 0 {
		c.Recheck = &again
	}
	return err
}

// middleShare is where a rate is measured to check what the others foretell: between
// two of those with which a search begins.
const middleShare = 0.6

// foretell sets what the measurements say of the middle of the range beside what was
// seen there.
func foretell(summary *result.CapacitySummary) {
	c := &summary.Capacity
	if c.Validation == nil || !c.Validation.Validity.Valid {
		return
	}
	lines, err := plan.Predict(c.Validation.Load.AchievedPerS, []result.Result{{Capacity: summary}})
	if err != nil {
		return // of measurements that carry no plan, which says so itself
	}
	r := c.Validation.Resources
	for i, measured := range []*float64{r.LoadCores, r.AppCores, r.StoreCores, r.StoreFsyncsPerS} {
		if l := lines[i]; l.Value != nil && measured != nil {
			c.Predicted = append(c.Predicted, result.Predicted{What: l.What, Unit: l.Unit, Expected: *l.Value, Measured: *measured})
		}
	}
}

// verdict says in a few words how a rate went.
func (s *capacitySearch) verdict(m result.Step) string {
	capacity.Judge(&m, s.cfg.SLO)
	switch {
	case m.MeetsSLO == nil:
		return "not judged: " + m.Why
	case !*m.MeetsSLO:
		return m.Why
	}
	var latencies []string
	for _, goal := range s.cfg.SLO.Latencies {
		latencies = append(latencies, fmt.Sprintf("%s %s ms", goal.Name(), format.Number(*m.LatencyMS.At(goal.Percentile))))
	}
	return "kept, " + strings.Join(latencies, ", ")
}

// conclude draws from the measurements what they carry.
func (s *capacitySearch) conclude(machine limit.Machine) result.Capacity {
	c := s.result
	c.Steps, c.Scaling = append([]result.Step{}, c.Steps...), append([]result.Step{}, c.Scaling...) // never null
	edge := capacity.FindEdge(c.Steps)
	c.RatePerS, c.LowPerS, c.HighPerS = edge.Rate, edge.Low, edge.High
	c.Limit = capacity.FindLimit(c.Steps, c.RatePerS, machine)
	var points []usl.Point
	for _, m := range c.Scaling {
		if !m.Validity.Valid {
			continue // interrupted
		}
		points = append(points, usl.Point{N: float64(m.Load.InFlight), X: m.Load.AchievedPerS})
	}
	if fit, err := usl.FitPoints(points, 1); err != nil {
		c.NoFit = err.Error()
	} else {
		c.Fit = &fit
	}
	return c
}
