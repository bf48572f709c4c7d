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

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
)

func (a *app) planCommand() *cobra.Command {
	var from []string
	rate, peak, slo := "", "1x", ""
	demand := plan.Demand{}
	cmd := &cobra.Command{
		Use:   "plan --rate RATE --from RESULT...",
		Short: "How many machines a rate takes, by what was measured",
		Long: `How many machines a rate takes, by what was measured: app hosts and store nodes,
memory, disk and network, and what breaks first when one is lost. Each line names the
measurement that it is based on.

Use results of bench capacity, or of bench run and load with a rate, all on the same
kind of machine and store. If they are of several numbers of app hosts, the plan takes
those of the fewest that carried the peak.`,
		Example: `  bench plan --rate 20000/s --peak 2x --p99 20ms --retention 24h --from sagabench-results/*-redis`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if demand.RatePerS, err = parseRate(rate); err != nil || demand.RatePerS == 0 || math.IsInf(demand.RatePerS, 0) {
				return fmt.Errorf("--rate: %q, want sagas per time, as 20000/s", rate)
			}
			if demand.Peak, err = strconv.ParseFloat(strings.TrimSuffix(peak, "x"), 64); err != nil || !(demand.Peak >= 1) || math.IsInf(demand.Peak, 0) {
				return fmt.Errorf("--peak: %q, want a multiple of the rate, at least 1x, as 2x", peak)
			}
			if demand.SLO, err = result.ParseSLO(slo); err != nil {
				return fmt.Errorf("--%w", err)
			}
			if demand.Retention < 0 {
				return fmt.Errorf("--retention: %v, must not be negative", demand.Retention)
			}
			return a.plan(cmd.Context(), demand, slices.Concat(from, args))
		},
	}
	f := cmd.Flags()
	f.StringVar(&rate, "rate", rate, "sagas to carry on average, as 20000/s")
	f.StringVar(&peak, "peak", peak, "the highest rate, as a multiple of that")
	f.StringVar(&slo, "slo", "p99=20ms", "what is promised, at the peak too")
	f.Var(&p99Flag{slo: &slo}, "p99", "the same as --slo p99=…")
	cmd.MarkFlagsMutuallyExclusive("slo", "p99") // one would win, and nobody knew which
	f.DurationVar(&demand.Retention, "retention", 24*time.Hour, "how long finished sagas are kept")
	f.StringArrayVar(&from, "from", nil, "result directories; those that follow without a flag, too")
	f.BoolVar(&a.json, "json", false, "print the plan as JSON")
	f.StringVar(&a.out, "out", "", "directory for the plan as a page, Markdown and JSON (default: none)")
	return cmd
}

// p99Flag is short for the service level that most promise.
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
	var results []result.Result
	var checks []result.Check
	for _, dir := range dirs {
		r, err := result.ReadResult(dir)
		if err != nil {
			return err
		}
		results = append(results, r)
		checks = append(checks, r.Envelope().Check)
	}
	p, validity, err := plan.Make(d, results)
	if err != nil {
		return err
	}
	s := plan.Result{Envelope: results[0].Envelope(), Plan: p}
	s.Kind, s.Check, s.Validity = result.KindPlan, result.SumChecks(checks), validity
	s.Run.ID, s.Run.Started, s.Run.Command, s.Run.DurationS = result.RunID(began, "plan"), began, a.command(), time.Since(began).Seconds()
	s.Run.Commit = environment.Commit(ctx)
	doc := report.Plan(s)
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
		if err := write(a.out, s, doc); err != nil {
			return err
		}
	}
	return a.show(s, validity, doc, a.out)
}
