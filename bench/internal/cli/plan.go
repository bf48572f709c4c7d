package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
)

func (a *app) planCommand() *cobra.Command {
	var from []string
	rate, peak, slo := "", "1x", ""
	demand, retention := plan.Demand{}, plan.DefaultRetention
	cmd := &cobra.Command{
		Use:   "plan --rate RATE --from RESULT...",
		Short: "Plan the machines for a rate from measurements",
		Long: `Plan the machines for a rate from measurements: app hosts, store nodes, memory, disk
and network, and what fails first if one machine is lost. Each line names the
measurement that it is based on.

Use results of bench capacity, of bench run and bench load with a rate, or files of vegeta
attack with a rate (see bench report), all from the same kind of machine and store. The
plan is based on the highest rate that was held. If the results have several numbers of
app hosts, it uses those of the fewest hosts that held the peak.`,
		Example: `  bench plan --rate 20000/s --peak 2x --p99 20ms --retention 24h --from sagabench-results/*-redis`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if demand.RatePerS, err = load.ParseRate(rate); err != nil || demand.RatePerS == 0 || math.IsInf(demand.RatePerS, 0) {
				return fmt.Errorf("--rate: %q, want sagas per time, as 20000/s", rate)
			}
			if demand.Peak, err = strconv.ParseFloat(strings.TrimSuffix(peak, "x"), 64); err != nil || !(demand.Peak >= 1) || math.IsInf(demand.Peak, 0) {
				return fmt.Errorf("--peak: %q, want a multiple of the rate, at least 1x, as 2x", peak)
			}
			if demand.SLO, err = result.ParseSLO(slo); err != nil {
				return fmt.Errorf("--%w", err)
			}
			if retention < 0 {
				return fmt.Errorf("--retention: %v, must not be negative", retention)
			}
			if cmd.Flags().Changed("retention") {
				demand.Retention = &retention
			}
			if demand.BranchLatency < 0 {
				return fmt.Errorf("--branch-latency: %v, must not be negative", demand.BranchLatency)
			}
			return a.plan(cmd.Context(), demand, slices.Concat(from, args))
		},
	}
	f := cmd.Flags()
	f.StringVar(&rate, "rate", rate, "average rate of sagas, as 20000/s")
	f.StringVar(&peak, "peak", peak, "highest rate, as a multiple of the average")
	f.StringVar(&slo, "slo", "p99=20ms", "service level, also at the peak")
	f.Var(&p99Flag{slo: &slo}, "p99", "the same as --slo p99=…")
	cmd.MarkFlagsMutuallyExclusive("slo", "p99") // otherwise the last one would win
	f.DurationVar(&retention, "retention", retention, "how long finished sagas are stored; without the flag as long as the measured app did, if the results say so")
	f.DurationVar(&demand.BranchLatency, "branch-latency", 0, "time that each branch takes, in addition to the measured one")
	f.StringArrayVar(&from, "from", nil, "result directory, or file of vegeta attack; may be repeated. Arguments without a flag are results, too")
	f.BoolVar(&a.json, "json", false, "print the plan as JSON")
	f.StringVar(&a.out, "out", "", "directory for the plan as a page, Markdown and JSON (default: none)")
	return cmd
}

// p99Flag sets a service level of one percentile.
type p99Flag struct {
	slo  *string
	text string
}

func (p *p99Flag) Set(text string) error {
	p.text, *p.slo = text, "p99="+text
	return nil
}

func (p *p99Flag) String() string { return p.text }
func (p *p99Flag) Type() string   { return "duration" }

func (a *app) plan(ctx context.Context, d plan.Demand, dirs []string) error {
	if len(dirs) == 0 {
		return errors.New("--from: which results? bench capacity STORE makes one")
	}
	began := time.Now()
	results, err := session.ReadResults(dirs)
	if err != nil {
		return err
	}
	p, validity, err := plan.Make(d, results)
	if err != nil {
		return err
	}
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
	}
	var of []result.Envelope
	for _, r := range results {
		of = append(of, r.Envelope())
	}
	s := plan.Result{Envelope: derived(ctx, result.KindPlan, began, of, validity), Plan: p}
	s.Run.Command = a.command()
	return a.writeAndShow(s, validity, report.Plan(s), a.out)
}
