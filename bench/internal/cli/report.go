package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/merge"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/internal/document"
)

func (a *app) reportCommand() *cobra.Command {
	merge, markdown := false, false
	cmd := &cobra.Command{
		Use:   "report RESULT...",
		Short: "Show results again, alone or side by side, or merge those of several load hosts",
		Long: `Show results again, alone or side by side, or merge those of several load hosts.

With --merge the results are from several load hosts that sent load at the same time, with
bench load or vegeta attack. Counts are summed, histograms merged, and the costs of the
store counted once. The clocks of the load hosts must agree.

The verdicts of a result of bench matrix are made again from its runs. It is shown alone.

A result may also be the file of vegeta attack, as FILE.bin. Save /metrics of the server
before and after the attack as FILE.before.prom and FILE.after.prom, for the costs.`,
		Example: `  bench report sagabench-results/20260101-120000-redis
  bench report results/a results/b --out results/side-by-side
  bench report app.bin
  bench report --merge host1/result host2/result --out merged`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if merge {
				return a.merge(dirs, markdown)
			}
			return a.report(dirs, markdown)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&merge, "merge", merge, "merge the results of several load hosts")
	f.BoolVar(&markdown, "markdown", markdown, "print Markdown")
	f.BoolVar(&a.json, "json", false, "print summary.json of a merge or a matrix")
	f.StringVar(&a.out, "out", "", "directory for the page, and for a merged result (default: none)")
	return cmd
}

func (a *app) report(dirs []string, markdown bool) error {
	d, again, err := read(dirs)
	if err != nil {
		return err
	}
	if a.json && again == nil {
		return errors.New("--json: each result has its summary.json; only that of a merge or a matrix is made again")
	}
	files := a.out
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
		if err := report.WritePages(a.out, d); err != nil {
			return err
		}
	} else if len(dirs) == 1 {
		files = dirs[0]
	}
	switch {
	case a.json:
		return result.Encode(a.stdout, *again)
	case markdown:
		return document.Markdown(a.stdout, d)
	}
	d.Again = "" // this command does
	return a.print(d, files)
}

// read lays out results. again is made from the runs of a matrix.
func read(dirs []string) (d document.Document, again *result.MatrixSummary, err error) {
	if len(dirs) == 1 && matrix.IsResult(dirs[0]) {
		s, err := matrix.Read(dirs[0])
		if err != nil {
			return d, nil, err
		}
		return report.Matrix(s), &s, nil
	}
	results, err := session.ReadResults(dirs)
	if err != nil {
		return d, nil, err
	}
	return report.SideBySide(results...), nil, nil
}

func (a *app) merge(dirs []string, markdown bool) error {
	results, err := session.ReadResults(dirs)
	if err != nil {
		return err
	}
	s, rec, err := merge.Runs(results...)
	if err != nil {
		return err
	}
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
		err := merge.Files(a.out, dirs...)
		if err == nil {
			err = report.WriteRun(a.out, s)
		}
		if err != nil {
			_ = os.RemoveAll(a.out) // an incomplete result cannot be read
			return err
		}
	}
	d := report.Document(result.Result{Dir: a.out, Run: &s, Recording: rec})
	if markdown && !a.json {
		if err := document.Markdown(a.stdout, d); err != nil || s.Validity.Valid {
			return err
		}
		return errInvalid
	}
	return a.show(s, s.Validity, d, a.out)
}
