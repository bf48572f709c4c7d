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
		Short: "Compare two variants in interleaved runs, or two results",
		Long: `Compare two variants in interleaved runs, or two results.

A variant is what follows bench run, in quotes. Other flags apply to both variants. The
runs are interleaved, A B B A and so on, so that a change of the machine affects both.

A result is a directory, or several of one variant, separated by commas.

Neither side is called better with fewer than five pairs, if their durability differs,
or if a run is not valid.

A gate limits how far B may be from A, for example in CI. It is broken if the whole
interval is beyond the limit. The exit code then is 3.`,
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
			results := [2]bool{isResult(args[0]), isResult(args[1])}
			switch {
			case results[0] != results[1]:
				return fmt.Errorf("compare: %q and %q: want two results or two variants", redactVariant(args[0]), redactVariant(args[1]))
			case results[0]:
				return a.compareResults(cmd.Context(), args, gates)
			}
			return a.compareVariants(cmd, args, pairs, gates)
		},
	}
	cmd.Flags().IntVar(&pairs, "pairs", pairs, "pairs of runs")
	cmd.Flags().StringArrayVar(&texts, "gate", nil, "METRIC<=CHANGE%, as store_cpu_us<=+5%: exit code 3 if B is beyond it; may be repeated")
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

// compareResults compares results that exist: directories, separated by commas.
func (a *app) compareResults(ctx context.Context, args []string, gates []compare.Gate) error {
	began := time.Now()
	sides := [2]compare.Side{{Name: "A"}, {Name: "B"}}
	for i, arg := range args {
		for dir := range strings.SplitSeq(arg, ",") {
			s, _, err := result.Read(dir)
			if err != nil {
				return err
			}
			sides[i].Command = s.Run.Command
			sides[i].Runs = append(sides[i].Runs, s)
		}
	}
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
	}
	c, validity, err := compare.Make(sides[0], sides[1])
	if err != nil {
		return err
	}
	return a.showComparison(ctx, began, c, validity, sides, gates, args)
}

// compareVariants runs two variants and compares them.
func (a *app) compareVariants(cmd *cobra.Command, args []string, pairs int, gates []compare.Gate) error {
	began, ctx := time.Now(), cmd.Context()
	if pairs < 1 {
		return fmt.Errorf("--pairs: %d, at least 1", pairs)
	}
	if a.out == "" {
		a.out = filepath.Join(resultsDir, result.RunID(began, "compare"))
	}
	sides := [2]compare.Side{{Name: "A"}, {Name: "B"}}
	variants := map[string]*variant{}
	for i, text := range args {
		v, err := a.newVariant(text, commonArgs(cmd))
		if err != nil {
			return fmt.Errorf("variant %s: %w", sides[i].Name, err)
		}
		variants[sides[i].Name] = v
		sides[i].Command = programWords + " run " + v.text
	}
	if err := makeOut(a.out); err != nil {
		return err
	}
	ended := compare.Interleave(ctx, &sides[0], &sides[1], pairs, func(ctx context.Context, side compare.Side, pair int) (result.Summary, error) {
		v := variants[side.Name]
		fmt.Fprintf(a.stderr, "pair %d of %d, %s: %s\n", pair, pairs, side.Name, v.text)
		return v.measure(ctx, filepath.Join(a.out, runsDir, fmt.Sprintf("%02d-%s", pair, strings.ToLower(side.Name))))
	})
	if ended != nil && len(sides[0].Runs) == 0 {
		return nothingCompared(a.out, ended)
	}
	c, validity, err := compare.Make(sides[0], sides[1])
	if err != nil {
		return err
	}
	if ended != nil {
		validity.Valid = false
		validity.Warnings = append([]string{fmt.Sprintf("incomplete: %v", ended)}, validity.Warnings...)
	}
	return a.showComparison(ctx, began, c, validity, sides, gates, args)
}

// showComparison checks the gates, and writes and prints the result.
func (a *app) showComparison(ctx context.Context, began time.Time, c compare.Comparison, v result.Validity, sides [2]compare.Side, gates []compare.Gate, args []string) error {
	var of []result.Envelope
	for _, run := range slices.Concat(sides[0].Runs, sides[1].Runs) {
		of = append(of, run.Envelope)
	}
	s := compare.Result{Envelope: derived(ctx, result.KindCompare, began, of, v), Compare: c, Gates: []compare.GateResult{}}
	s.Run.Command = a.compareCommandLine(args)
	broken := false
	for _, gate := range gates {
		checked := c.Check(gate)
		broken = broken || checked.Outcome == compare.Broken
		s.Gates = append(s.Gates, checked)
	}
	if err := a.writeAndShow(s, v, report.Comparison(s), a.out); err != nil {
		return err
	}
	if broken {
		return errGate
	}
	return nil
}

// isResult reports whether an argument names directories, none of which has the name of a
// store.
func isResult(arg string) bool {
	for dir := range strings.SplitSeq(arg, ",") {
		_, notStore := open.Parse(dir, open.Config{})
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || notStore == nil {
			return false
		}
	}
	return true
}

// redactVariant returns a variant without secrets.
func redactVariant(text string) string {
	words := (&app{args: strings.Fields(text)}).command()
	return strings.TrimPrefix(words, programWords+" ")
}

// compareCommandLine returns what was typed, without the secrets in variants.
func (a *app) compareCommandLine(variants []string) string {
	shown := *a
	shown.args = slices.Clone(a.args)
	for i, arg := range shown.args {
		if slices.Contains(variants, arg) {
			shown.args[i] = redactVariant(arg)
		}
	}
	return shown.command()
}
