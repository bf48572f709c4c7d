package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
)

// write puts a result of more than one run into its directory.
func write(dir string, summary any, d document.Document) error {
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		result.WriteFile(dir, result.FileSummary, func(w io.Writer) error { return result.Encode(w, summary) }),
		report.WritePages(dir, d))
}

// show prints a result that has been written, and ends with errInvalid when it is not
// to be relied on.
func (a *app) show(summary any, v result.Validity, d document.Document, dir string) error {
	var err error
	if a.json {
		err = result.Encode(a.stdout, summary)
		if dir != "" {
			fmt.Fprintf(a.stderr, "the result is in %s\n", dir)
		}
	} else {
		err = document.Text(a.stdout, d)
	}
	if err == nil && !v.Valid {
		return errInvalid
	}
	return err
}
