package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/session"
	"sagabench/internal/format"
)

func (a *app) checkCommand() *cobra.Command {
	allowEmpty := false
	cmd := &cobra.Command{
		Use:   "check STORE",
		Short: "Audit a store that is quiet: every saga in it, and its own bookkeeping",
		Args:  exactlyOneStore,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), args[0], allowEmpty) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print the result as JSON")
	cmd.Flags().BoolVar(&allowEmpty, "allow-empty", false, "a store without a single saga is no error")
	return cmd
}

func (a *app) check(ctx context.Context, name string, allowEmpty bool) error {
	target, err := a.standingTarget(name)
	if err != nil {
		return err
	}
	target.Config.MustExist = true
	started := time.Now()
	s, err := target.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	settings, err := s.Settings(ctx)
	if err != nil {
		return err
	}
	found, err := audit.Store(ctx, s)
	switch {
	case err != nil:
		return err
	case found.Sagas == 0 && found.Total == 0 && !allowEmpty:
		return errors.New("the store holds no saga, so nothing was checked: is it the right one? --allow-empty accepts it")
	}
	out := result.Envelope{
		Schema: result.Schema, Kind: result.KindCheck,
		Run: result.Run{
			ID: result.RunID(started, target.Driver), Started: started, DurationS: time.Since(started).Seconds(), Command: a.command(),
			Store:  session.StoreOf(settings),
			Commit: environment.Commit(ctx),
		},
		Check:       found.Check,
		Validity:    result.Validity{Valid: found.Total == 0, Because: found.Findings},
		Environment: environment.Describe(ctx),
	}
	if a.json {
		err = result.Encode(a.stdout, out)
	} else {
		err = printCheck(a.stdout, out, found.Total)
	}
	if err == nil && !out.Validity.Valid {
		return errInvalid
	}
	return err
}

func printCheck(w io.Writer, c result.Envelope, total int) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s (%s): %s, %s ended, %s unfinished\n", c.Run.Store.Driver, format.Printable(c.Run.Store.Version), c.Run.Store.Durability,
		format.Plural(*c.Check.Terminal+*c.Check.Unfinished, "saga"), format.Count(*c.Check.Terminal), format.Count(*c.Check.Unfinished))
	if n := c.Check.ForceStopped; n > 0 {
		fmt.Fprintf(&out, "stopped by force, so not asked whether they were undone: %s\n", format.Count(n))
	}
	if total == 0 {
		fmt.Fprintln(&out, "every saga is whole, and the store's bookkeeping agrees")
	} else {
		fmt.Fprintf(&out, "%s:\n", format.Plural(total, "finding"))
	}
	for _, finding := range c.Validity.Because {
		fmt.Fprintf(&out, "  - %s\n", format.Printable(finding))
	}
	if more := total - len(c.Validity.Because); more > 0 {
		fmt.Fprintf(&out, "  and %s more\n", format.Count(more))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
