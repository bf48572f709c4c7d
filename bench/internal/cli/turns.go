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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
)

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

// check tells whether bench run would take a variant, without running it.
func (t turns) check(variant []string) error {
	if len(variant) == 0 {
		return errors.New("it is empty: what follows bench run, as 'redis --start'")
	}
	_, root, args := t.program(variant, "")
	cmd, args, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(args); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// program is bench run, of a variant.
func (t turns) program(variant []string, dir string) (sub *app, root *cobra.Command, args []string) {
	args = slices.Concat([]string{"run"}, t.common, variant, []string{"--json", "--out", dir})
	sub = &app{args: args, environ: t.app.environ, stderr: t.app.stderr}
	root = sub.root()
	root.SetArgs(args)
	root.SetErr(t.app.stderr)
	return sub, root, args
}

// run makes the pairs. When one cannot be made, those before it are kept.
func (t turns) run(ctx context.Context, sides *[2]compare.Side, pairs int) error {
	for pair := range pairs {
		var made [2]result.Summary
		order := []int{0, 1}
		if pair%2 == 1 {
			order = []int{1, 0}
		}
		for _, i := range order {
			name := sides[i].Name
			fmt.Fprintf(t.app.stderr, "pair %d of %d, %s: %s\n", pair+1, pairs, name, redactVariant(strings.Join(t.variants[i], " ")))
			var err error
			made[i], err = t.one(ctx, filepath.Join(t.dir, runsDir, fmt.Sprintf("%02d-%s", pair+1, strings.ToLower(name))), t.variants[i])
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("interrupted in pair %d of %d", pair+1, pairs)
			case err != nil:
				return fmt.Errorf("variant %s, in pair %d of %d: %w", name, pair+1, pairs, err)
			}
		}
		for i := range sides {
			sides[i].Runs = append(sides[i].Runs, made[i])
		}
	}
	return nil
}

// runsDir holds the results of the runs that were compared.
const runsDir = "runs"

func (t turns) one(ctx context.Context, dir string, variant []string) (s result.Summary, err error) {
	var out bytes.Buffer
	sub, root, _ := t.program(variant, dir)
	sub.stdout = &out
	root.SetOut(&out)
	if err := root.ExecuteContext(ctx); err != nil && !errors.Is(err, errInvalid) {
		return s, err
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("it gave no result: %w", err)
	}
	return s, nil
}

// nothing ends a comparison of which no pair was made. What was run until then is kept;
// if nothing was, nothing is left behind.
func (t turns) nothing(why error) error {
	runs := filepath.Join(t.dir, runsDir)
	if made, _ := os.ReadDir(runs); len(made) > 0 {
		return fmt.Errorf("%w: nothing to compare; what was run is in %s", why, runs)
	}
	for _, dir := range []string{runs, t.dir, resultsDir} {
		_ = os.Remove(dir) // only if it is empty
	}
	return why
}
