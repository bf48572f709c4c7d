package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/merge"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

func (a *app) reportCommand() *cobra.Command {
	merge, markdown := false, false
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Show results again, several side by side, or merge those of several load hosts",
		Long: `Show results again, several side by side, or merge those of several load hosts.

With --merge the results are those of one run that several machines drove at the same
time with bench load: counts are summed, histograms merged, and costs of the store
counted once. Their clocks have to agree.`,
		Example: `  bench report sagabench-results/20260101-120000-redis
  bench report results/a results/b --out results/side-by-side
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
	f.BoolVar(&merge, "merge", merge, "they are of several load hosts in one run")
	f.BoolVar(&markdown, "markdown", markdown, "print Markdown")
	f.BoolVar(&a.json, "json", false, "print summary.json of a merged result")
	f.StringVar(&a.out, "out", "", "directory for the page, and for a merged result (default: none)")
	return cmd
}

func (a *app) report(dirs []string, markdown bool) error {
	if a.json {
		return errors.New("--json: each result has its summary.json; only a merged one is new")
	}
	var results []result.Result
	for _, dir := range dirs {
		r, err := result.ReadResult(dir)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	d := report.Document(results[0])
	if len(results) > 1 {
		d = report.SideBySide(results...)
	}
	if a.out != "" {
		if err := makeOut(a.out); err != nil {
			return err
		}
		if err := report.WritePages(a.out, d); err != nil {
			return err
		}
	}
	return a.print(d, markdown)
}

func (a *app) merge(dirs []string, markdown bool) error {
	s, rec, err := merge.Runs(dirs...)
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
			_ = os.RemoveAll(a.out) // half a result is none
			return err
		}
	}
	d := report.Document(result.Result{Dir: a.out, Run: &s, Recording: rec})
	if markdown && !a.json {
		if err := a.print(d, true); err != nil || s.Validity.Valid {
			return err
		}
		return errInvalid
	}
	return a.show(s, s.Validity, d, a.out)
}

func (a *app) print(d document.Document, markdown bool) error {
	if markdown {
		return document.Markdown(a.stdout, d)
	}
	return document.Text(a.stdout, d)
}

// makeOut makes the directory that --out names.
func makeOut(dir string) error {
	if err := result.MakeDir(dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
