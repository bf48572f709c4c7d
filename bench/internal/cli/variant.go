package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sagabench/bench/internal/result"
)

// variant is one side of a comparison: bench run with flags of its own.
type variant struct {
	app  *app
	run  runOptions
	text string // as typed, without secrets

	cpuLimit string // of the last run: how the CPU of the store's server was limited
}

// newVariant checks all of a variant that can be checked before anything runs. common are
// flags that apply to both sides; the variant's own override them.
func (a *app) newVariant(words, common []string) (*variant, error) {
	if len(words) == 0 {
		return nil, errors.New("it is empty: want what follows bench run, as 'redis --start'")
	}
	v := &variant{text: redactVariant(words), app: &app{
		args:    slices.Concat([]string{"run"}, common, words),
		environ: a.environ, stderr: a.stderr, options: defaults(),
	}}
	cmd := v.app.variantCommand(&v.run)
	if err := cmd.ParseFlags(v.app.args[1:]); err != nil {
		return nil, err
	}
	if err := v.run.setStore(cmd.Flags().Args()); err != nil {
		return nil, err
	}
	if err := v.app.configure(cmd); err != nil {
		return nil, err
	}
	_, _, err := v.app.prepare(v.run)
	return v, err
}

// variantCommand has the flags of a variant: those of bench run, and those of all commands.
func (a *app) variantCommand(o *runOptions) *cobra.Command {
	cmd := &cobra.Command{}
	a.configFlag(cmd)
	a.runFlags(cmd, o)
	return cmd
}

// measure runs the variant once. The result goes into dir.
func (v *variant) measure(ctx context.Context, dir string) (result.Summary, error) {
	v.app.out = dir
	own, err := v.app.setUp(ctx, v.run)
	if err != nil {
		return result.Summary{}, err
	}
	defer own.stop()
	v.cpuLimit = own.cpuLimit
	if _, err := v.app.measure(ctx, own); err != nil {
		return result.Summary{}, err
	}
	s, _, err := result.Read(dir) // rounded, so that a comparison of the directories gives the same
	return s, err
}

// commonArgs returns the given flags of bench compare that a variant has, too.
func commonArgs(cmd *cobra.Command) (args []string) {
	ofVariant := new(app).variantCommand(new(runOptions))
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if ofVariant.Flag(f.Name) != nil && // that of all commands, too: --config
			f.Name != "out" && f.Name != "json" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// runsDir has the results of the runs that were compared.
const runsDir = "runs"

// nothingCompared ends a comparison without a complete pair. It names the runs that were
// made, and removes the directory if there are none.
func nothingCompared(dir string, why error) error {
	runs := filepath.Join(dir, runsDir)
	if made, _ := os.ReadDir(runs); len(made) > 0 {
		return fmt.Errorf("%w: nothing to compare; what was run is in %s", why, runs)
	}
	for _, empty := range []string{runs, dir, resultsDir} {
		_ = os.Remove(empty) // only if it is empty
	}
	return why
}
