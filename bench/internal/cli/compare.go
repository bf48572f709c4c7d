package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/store/open"
)

// errGate ends a command whose report has said which gate is broken.
var errGate = errors.New("a gate is broken")

func (a *app) compareCommand() *cobra.Command {
	pairs, texts := compare.MinPairs, []string{}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Set two variants, run in turns, or two results side by side",
		Long: `Set two variants, run in turns, or two results side by side.

A variant is what follows bench run, in quotes. Both are run in turns, A B B A and so
on, so that what changes meanwhile changes both; flags that are given here hold for
both. A result is a directory, or several of one variant, separated by commas. With
less than five pairs neither is called the better one, nor when their durability
differs.

A gate bounds how far B may be from A, for instance in CI. It is broken when all of
the interval is beyond; the exit code then is 3.`,
		Example: `  bench compare 'redis --start' 'redis --start --set io-threads=2'
  bench compare 'mysql --start' 'postgres --start' --in-flight 256 --pairs 7
  bench compare results/before results/after
  bench compare 'pebble' 'pebble --payload 1000' --gate 'app_cpu_us<=+5%'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var gates []compare.Gate
			for _, text := range texts {
				gate, err := compare.ParseGate(text)
				if err != nil {
					return fmt.Errorf("--gate: %w", err)
				}
				gates = append(gates, gate)
			}
			return a.compare(cmd, args, pairs, gates)
		},
	}
	cmd.Flags().IntVar(&pairs, "pairs", pairs, "of runs")
	cmd.Flags().StringArrayVar(&texts, "gate", nil, "METRIC<=CHANGE%, as store_cpu_us<=+5%: exit code 3 if B is beyond; once for each")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

func (a *app) compare(cmd *cobra.Command, names []string, pairs int, gates []compare.Gate) error {
	began, ctx := time.Now(), cmd.Context()
	sides := [2]compare.Side{{Name: "A"}, {Name: "B"}}
	results := [2]bool{isResult(names[0]), isResult(names[1])}
	var incomplete error
	dir := a.out
	switch {
	case results[0] != results[1]:
		return fmt.Errorf("compare: %q and %q: two results or two variants", redactVariant(names[0]), redactVariant(names[1]))
	case results[0]:
		if err := readSides(names, &sides); err != nil {
			return err
		}
		if dir != "" {
			if err := makeOut(dir); err != nil {
				return err
			}
		}
	default:
		if pairs < 1 {
			return fmt.Errorf("--pairs: %d, at least 1", pairs)
		}
		if dir == "" {
			dir = filepath.Join(resultsDir, result.RunID(began, "compare"))
		}
		t := turns{app: a, dir: dir, common: given(cmd)}
		for i, name := range names {
			t.variants[i] = strings.Fields(name)
			if err := t.check(t.variants[i]); err != nil {
				return fmt.Errorf("variant %s: %w", sides[i].Name, err)
			}
			sides[i].Command = programWords + " run " + redactVariant(name)
		}
		if err := makeOut(dir); err != nil {
			return err
		}
		if incomplete = t.run(ctx, &sides, pairs); incomplete != nil && len(sides[1].Runs) == 0 {
			return t.nothing(incomplete)
		}
	}
	c, validity, err := compare.Make(sides[0], sides[1])
	if err != nil {
		return err
	}
	if incomplete != nil {
		validity.Valid = false
		validity.Warnings = append([]string{fmt.Sprintf("incomplete: %v", incomplete)}, validity.Warnings...)
	}
	var checks []result.Check
	for _, run := range slices.Concat(sides[0].Runs, sides[1].Runs) {
		checks = append(checks, run.Check)
	}
	s := compare.Result{Envelope: sides[0].Runs[0].Envelope, Compare: c, Gates: []compare.GateResult{}}
	s.Kind, s.Check, s.Validity = result.KindCompare, result.SumChecks(checks), validity
	s.Run.ID, s.Run.Started, s.Run.Command, s.Run.DurationS = result.RunID(began, "compare"), began, a.compareCommandLine(names), time.Since(began).Seconds()
	s.Run.Commit = environment.Commit(context.WithoutCancel(ctx))
	broken := false
	for _, gate := range gates {
		result := c.Judge(gate)
		broken = broken || result.Outcome == compare.Broken
		s.Gates = append(s.Gates, result)
	}
	d := report.Comparison(s)
	if dir != "" {
		if err := write(dir, s, d); err != nil {
			return err
		}
	}
	if err := a.show(s, validity, d, dir); err != nil {
		return err
	}
	if broken {
		return errGate
	}
	return nil
}

// readSides reads results that are there: directories, separated by commas.
func readSides(names []string, sides *[2]compare.Side) error {
	for i, name := range names {
		for dir := range strings.SplitSeq(name, ",") {
			s, _, err := result.Read(dir)
			if err != nil {
				return err
			}
			sides[i].Command = s.Run.Command
			sides[i].Runs = append(sides[i].Runs, s)
		}
	}
	return nil
}

// isResult reports whether an argument names directories, of results then, if not one
// that happens to be called like a store.
func isResult(name string) bool {
	for one := range strings.SplitSeq(name, ",") {
		_, noStore := open.Parse(one, open.Config{})
		if info, err := os.Stat(one); err != nil || !info.IsDir() || noStore == nil {
			return false
		}
	}
	return true
}

// redactVariant is a variant without secrets.
func redactVariant(name string) string {
	words := (&app{args: strings.Fields(name)}).command()
	return strings.TrimPrefix(words, programWords+" ")
}

// compareCommandLine is what was typed, without the secrets that are in variants.
func (a *app) compareCommandLine(names []string) string {
	shown := *a
	shown.args = slices.Clone(a.args)
	for i, arg := range shown.args {
		if slices.Contains(names, arg) {
			shown.args[i] = redactVariant(arg)
		}
	}
	return shown.command()
}
