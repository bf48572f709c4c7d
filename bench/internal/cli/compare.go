package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/probe"
	"sagabench/bench/internal/report"
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

// comparison is summary.json of bench compare.
type comparison struct {
	Schema      int                  `json:"schema"`
	Run         report.Run           `json:"run"` // store and scenario are those of A
	Check       *report.Check        `json:"check"`
	Validity    report.Validity      `json:"validity"`
	Environment report.Environment   `json:"environment"`
	Compare     compare.Comparison   `json:"compare"`
	Gates       []compare.GateResult `json:"gates"`
}

func (a *app) compare(cmd *cobra.Command, names []string, pairs int, gates []compare.Gate) error {
	began, ctx := time.Now(), cmd.Context()
	sides := [2]compare.Side{{Name: "A"}, {Name: "B"}}
	results := [2]bool{isResult(names[0]), isResult(names[1])}
	var incomplete error
	dir := a.out
	switch {
	case results[0] != results[1]:
		return fmt.Errorf("compare: %q and %q: two results or two variants", names[0], names[1])
	case results[0]:
		for i, name := range names {
			for one := range strings.SplitSeq(name, ",") {
				s, _, err := report.Read(one)
				if err != nil {
					return err
				}
				sides[i].Command = s.Run.Command
				sides[i].Runs = append(sides[i].Runs, s)
			}
		}
	default:
		if pairs < 1 {
			return fmt.Errorf("--pairs: %d, at least 1", pairs)
		}
		if dir == "" {
			dir = filepath.Join(resultsDir, report.RunID(began, "compare"))
		}
		t := turns{app: a, dir: dir, common: given(cmd)}
		for i, name := range names {
			if t.variants[i] = strings.Fields(name); len(t.variants[i]) == 0 {
				return fmt.Errorf("compare: variant %s is empty: what follows bench run, as 'redis --start'", sides[i].Name)
			}
			sides[i].Command = "go run bench/main.go run " + name
		}
		if incomplete = t.run(ctx, &sides, pairs); incomplete != nil && len(sides[1].Runs) == 0 {
			return incomplete
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
	first := sides[0].Runs[0].Run
	s := comparison{
		Schema: report.Schema, Run: first, Validity: validity, Compare: c, Gates: []compare.GateResult{},
		Environment: sides[0].Runs[0].Environment, Check: sumChecks(slices.Concat(sides[0].Runs, sides[1].Runs)),
	}
	s.Run.ID, s.Run.Started, s.Run.Command, s.Run.DurationS = report.RunID(began, "compare"), began, a.command(), time.Since(began).Seconds()
	s.Run.Commit = probe.Commit(context.WithoutCancel(ctx))
	broken := false
	for _, gate := range gates {
		result := c.Judge(gate)
		broken = broken || result.Outcome == compare.Broken
		s.Gates = append(s.Gates, result)
	}
	d := c.Document(validity, s.Gates, s.Run.Command)
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

// isResult reports whether an argument is the directory of a result, or several.
func isResult(name string) bool {
	for one := range strings.SplitSeq(name, ",") {
		if _, err := os.Stat(filepath.Join(one, report.FileSummary)); err != nil {
			return false
		}
	}
	return true
}

// given are the flags of the command line that hold for both variants.
func given(cmd *cobra.Command) (args []string) {
	run := (&app{}).runCommand().Flags()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if run.Lookup(f.Name) != nil && f.Name != "out" && f.Name != "json" || f.Name == "config" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// turns runs two variants, each as bench run does.
type turns struct {
	app      *app
	dir      string
	common   []string // flags
	variants [2][]string
}

// run makes the pairs. When one cannot be made, those before it are kept.
func (t turns) run(ctx context.Context, sides *[2]compare.Side, pairs int) error {
	for pair := range pairs {
		var made [2]report.Summary
		order := []int{0, 1}
		if pair%2 == 1 {
			order = []int{1, 0}
		}
		for _, i := range order {
			fmt.Fprintf(t.app.stderr, "pair %d of %d, %s: %s\n", pair+1, pairs, sides[i].Name, strings.Join(t.variants[i], " "))
			var err error
			if made[i], err = t.one(ctx, fmt.Sprintf("%02d-%s", pair+1, strings.ToLower(sides[i].Name)), t.variants[i]); err != nil {
				return fmt.Errorf("%s: %w", sides[i].Name, err)
			}
		}
		for i := range sides {
			sides[i].Runs = append(sides[i].Runs, made[i])
		}
	}
	return nil
}

func (t turns) one(ctx context.Context, name string, variant []string) (s report.Summary, err error) {
	var out bytes.Buffer
	args := slices.Concat([]string{"run"}, t.common, variant, []string{"--json", "--out", filepath.Join(t.dir, "runs", name)})
	sub := &app{args: args, environ: t.app.environ, stdout: &out, stderr: t.app.stderr}
	root := sub.root()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(t.app.stderr)
	if err := root.ExecuteContext(ctx); err != nil && !errors.Is(err, errInvalid) {
		return s, err
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("it gave no result: %w", err)
	}
	return s, context.Cause(ctx)
}

// sumChecks adds up what the audits found; null when one was not made.
func sumChecks(runs []report.Summary) *report.Check {
	var sum report.Check
	for i, s := range runs {
		c := s.Check
		sum.Acknowledged += c.Acknowledged
		for _, n := range []struct{ to, from **int64 }{
			{&sum.Terminal, &c.Terminal}, {&sum.Lost, &c.Lost}, {&sum.BothOutcomes, &c.BothOutcomes},
			{&sum.Uncompensated, &c.Uncompensated}, {&sum.Unfinished, &c.Unfinished},
		} {
			switch {
			case *n.from == nil || i > 0 && *n.to == nil:
				*n.to = nil
			case i == 0:
				first := **n.from
				*n.to = &first
			default:
				**n.to += **n.from
			}
		}
	}
	return &sum
}
