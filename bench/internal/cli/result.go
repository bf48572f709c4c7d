package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

// derived returns the envelope of a result that was made from others. Its store, scenario
// and environment are those of the first.
func derived(ctx context.Context, kind result.Kind, began time.Time, of []result.Envelope, v result.Validity) result.Envelope {
	e := of[0]
	var checks []result.Check
	for _, one := range of {
		checks = append(checks, one.Check)
	}
	e.Kind, e.Check, e.Validity = kind, result.SumChecks(checks), v
	e.Run.ID, e.Run.Started, e.Run.DurationS = result.RunID(began, string(kind)), began, time.Since(began).Seconds()
	e.Run.Commit = environment.Commit(context.WithoutCancel(ctx))
	return e
}

// makeOut makes the directory that --out names.
func makeOut(dir string) error {
	if err := result.MakeDir(dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// writeAndShow writes a result into dir, unless that is empty, and prints it.
func (a *app) writeAndShow(summary any, v result.Validity, d document.Document, dir string) error {
	if dir != "" {
		if err := errors.Join(result.WriteSummary(dir, summary), report.WritePages(dir, d)); err != nil {
			return err
		}
	}
	return a.show(summary, v, d, dir)
}

// show prints a result that was written to dir. It returns errInvalid if the result is
// not valid.
func (a *app) show(summary any, v result.Validity, d document.Document, dir string) error {
	var err error
	if a.json {
		err = result.Encode(a.stdout, summary)
		if dir != "" {
			fmt.Fprintf(a.stderr, "the result is in %s\n", dir)
		}
	} else {
		err = a.print(d, dir)
	}
	if err == nil && !v.Valid {
		return errInvalid
	}
	return err
}

// print writes the first screen of a report, or with --verbose all of it. dir holds its
// files; empty: there are none.
func (a *app) print(d document.Document, dir string) error {
	if !a.verbose {
		d = d.Brief(dir)
	}
	return document.Text(a.stdout, d)
}
