package cli

import (
	"context"
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

func (a *app) compareCommand() *cobra.Command {
	pairs, gates, texts := compare.MinPairs, gates{unclear: exitUnclear}, []string{}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two variants in interleaved runs, or two results",
		Long: `Compare two variants in interleaved runs, or two results.

A variant is what follows bench run, in quotes. Other flags apply to both variants. The
runs are interleaved, A B B A and so on, so that a change of the machine affects both.

A result is a directory, or several of one variant, separated by commas.

Neither side is called better with fewer than five pairs, if their durability differs,
or if a run is not valid.

A gate limits how far B may be from A, for example in CI. It is kept if its whole
interval of 95% is within the limit, and broken if all of it is beyond: exit code 3.
Otherwise, or if the sides are not ranked, it cannot tell: exit code 4, or that of
--gate-unclear. Several gates share the 5%.`,
		Example: `  bench compare 'redis --start' 'redis --start --set io-threads=2'
  bench compare 'mysql --start' 'postgres --start' --durability D3 --pairs 7
  bench compare results/before results/after
  bench compare 'pebble' 'pebble --payload 1000' --gate 'app_cpu_us<=+5%'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if gates.unclear < 0 || gates.unclear > 125 {
				return fmt.Errorf("--gate-unclear: %d, must be 0 to 125", gates.unclear)
			}
			for _, text := range texts {
				gate, err := compare.ParseGate(text)
				if err != nil {
					return fmt.Errorf("--gate: %w", err)
				}
				gates.list = append(gates.list, gate)
			}
			results := [2]bool{isResult(args[0]), isResult(args[1])}
			switch {
			case results[0] != results[1]:
				return fmt.Errorf("compare: %q and %q: want two results or two variants", redactVariant(strings.Fields(args[0])), redactVariant(strings.Fields(args[1])))
			case results[0]:
				return a.compareResults(cmd.Context(), args, gates)
			}
			return a.compareVariants(cmd, args, pairs, gates)
		},
	}
	cmd.Flags().IntVar(&pairs, "pairs", pairs, "pairs of runs")
	cmd.Flags().StringArrayVar(&texts, "gate", nil, "METRIC<=CHANGE%, as store_cpu_us<=+5%: exit code 3 if B is beyond it; may be repeated")
	cmd.Flags().IntVar(&gates.unclear, "gate-unclear", gates.unclear, "exit code if no gate is broken and one cannot tell; 0: it passes")
	durabilityFlagOf(cmd.Flags(), new(string)) // of both variants: see commonArgs
	a.loadFlags(cmd)
	a.scenarioFlags(cmd)
	return cmd
}

// gates are those of a comparison, and the exit code if one of them cannot tell.
type gates struct {
	list    []compare.Gate
	unclear int
}

// end returns the exit code as an error, or nil if the gates pass.
func (g gates) end(results []compare.GateResult) error {
	has := func(o compare.Outcome) bool {
		return slices.ContainsFunc(results, func(r compare.GateResult) bool { return r.Outcome == o })
	}
	switch {
	case has(compare.Broken):
		return ended(exitGate)
	case has(compare.CannotTell) && g.unclear != exitOK:
		return ended(g.unclear)
	}
	return nil
}

// compareResults compares results that exist: directories, separated by commas.
func (a *app) compareResults(ctx context.Context, args []string, gates gates) error {
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
func (a *app) compareVariants(cmd *cobra.Command, args []string, pairs int, gates gates) error {
	began, ctx := time.Now(), cmd.Context()
	id := result.RunID(began, string(result.KindCompare))
	if pairs < 1 {
		return fmt.Errorf("--pairs: %d, at least 1", pairs)
	}
	if a.out == "" {
		a.out = filepath.Join(resultsDir, id)
	}
	sides := [2]compare.Side{{Name: "A"}, {Name: "B"}}
	variants := map[string]*variant{}
	for i, text := range args {
		v, err := a.newVariant(strings.Fields(text), commonArgs(cmd))
		if err != nil {
			return fmt.Errorf("variant %s: %w", sides[i].Name, err)
		}
		variants[sides[i].Name] = v
		sides[i].Command = programWords + " run " + v.text
	}
	if err := makeOut(a.out); err != nil {
		return err
	}
	incomplete := compare.Interleave(ctx, &sides[0], &sides[1], pairs, func(ctx context.Context, side compare.Side, pair int) (result.Summary, error) {
		v := variants[side.Name]
		fmt.Fprintf(a.stderr, "pair %d of %d, %s: %s\n", pair, pairs, side.Name, v.text)
		v.app.options.Load.Seed = compare.Seed(id, pair)
		return v.measure(ctx, filepath.Join(a.out, runsDir, fmt.Sprintf("%02d-%s", pair, strings.ToLower(side.Name))))
	})
	if incomplete != nil && len(sides[0].Runs) == 0 {
		return nothingCompared(a.out, incomplete)
	}
	c, validity, err := compare.Make(sides[0], sides[1])
	if err != nil {
		return err
	}
	if incomplete != nil {
		validity.Valid = false
		validity.Because = append([]string{fmt.Sprintf("it is incomplete: %v", incomplete)}, validity.Because...)
	}
	return a.showComparison(ctx, began, c, validity, sides, gates, args)
}

// showComparison checks the gates, and writes and prints the result.
func (a *app) showComparison(ctx context.Context, began time.Time, c compare.Comparison, v result.Validity, sides [2]compare.Side, gates gates, args []string) error {
	var of []result.Envelope
	for _, run := range slices.Concat(sides[0].Runs, sides[1].Runs) {
		of = append(of, run.Envelope)
	}
	s := compare.Result{Envelope: derived(ctx, result.KindCompare, began, of, v), Compare: c, Gates: c.Check(gates.list)}
	s.Run.Command = a.compareCommandLine(args)
	if err := a.writeAndShow(s, v, report.Comparison(s), a.out); err != nil {
		return err
	}
	return gates.end(s.Gates)
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
func redactVariant(words []string) string {
	return strings.TrimPrefix((&app{args: words}).command(), programWords+" ")
}

// compareCommandLine returns what was typed, without the secrets in variants.
func (a *app) compareCommandLine(variants []string) string {
	shown := *a
	shown.args = slices.Clone(a.args)
	for i, arg := range shown.args {
		if slices.Contains(variants, arg) {
			shown.args[i] = redactVariant(strings.Fields(arg))
		}
	}
	return shown.command()
}
