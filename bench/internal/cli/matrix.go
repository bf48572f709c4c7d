package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sagabench/bench/comparisons"
	"sagabench/bench/internal/capacity"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/progress"
	"sagabench/bench/internal/report"
	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
)

// overrideFlags replace values of a variant file that has these keys.
var overrideFlags = map[string]string{
	matrix.KeyRate:       "sagas per time, as 2000/s",
	matrix.KeySLO:        "service level, as p99=20ms",
	matrix.KeyDurability: "durability class, D0 to D4",
	matrix.KeyDuration:   "of the measured part of each run",
}

func (a *app) matrixCommand() *cobra.Command {
	options := matrix.Options{Override: matrix.Values{}}
	given := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "matrix FILE|NAME",
		Short: "Run a table of variants, interleaved, and say which is better",
		Long: `Run a table of variants, interleaved, and say which is better.

A variant file names axes, such as the store and the durability. All combinations of
their values are run in blocks, each in random order. A variant is called better than
another only if the interval of their ratio excludes 1. docs/matrix.md describes the file.

NAME is one of ` + strings.Join(comparisons.Names(), ", ") + `.

Run the same command with the same --out again to resume a matrix that was interrupted.
If a variant cannot run, the others go on, and the exit code is 1.`,
		Example: `  bench matrix stores --rate 2000/s --slo p99=50ms --durability D3 --quick
  bench matrix versions.yml --out results/versions`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := comparisons.Read(args[0])
			if err != nil {
				return err
			}
			file, err := matrix.Parse(args[0], text)
			if err != nil {
				return err
			}
			for key, value := range given {
				if cmd.Flags().Changed(key) {
					options.Override[key] = *value
				}
			}
			if cmd.Flags().Changed("repeats") && (options.Repeats < 1 || options.Repeats > matrix.MostRepeats) {
				return fmt.Errorf("--repeats: %d, must be 1 to %d", options.Repeats, matrix.MostRepeats)
			}
			return a.matrix(cmd.Context(), file, options)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&options.Quick, "quick", false, "the short form of the file: fewer and shorter runs")
	f.IntVar(&options.Repeats, "repeats", 0, "blocks of each table (default: as the file says)")
	for key, what := range overrideFlags {
		given[key] = f.String(key, "", "replaces that of the file: "+what)
	}
	f.StringVar(&a.out, "out", "", "result directory, to be resumed if it has runs (default sagabench-results/TIME-matrix)")
	f.BoolVar(&a.json, "json", false, "print summary.json on stdout instead of the report")
	return cmd
}

func (a *app) matrix(ctx context.Context, file matrix.File, options matrix.Options) error {
	began := time.Now()
	m, incomplete := matrix.Run(ctx, matrix.Config{
		File: file, Options: options, New: a.out == "",
		Dir: cmp.Or(a.out, filepath.Join(resultsDir, result.RunID(began, string(result.KindMatrix)))),
		Runners: map[matrix.Measure]matrix.Runner{
			matrix.MeasureSaga: a.runSagas, matrix.MeasureCapacity: a.runCapacity, matrix.MeasureOperation: a.runOperation, matrix.MeasureCrash: a.runCrash,
		},
		Status: func(text string) { fmt.Fprintln(a.stderr, text) },
		Pull:   func(ctx context.Context, image string) error { return lab.Pull(ctx, image, a.stderr) },
	})
	a.out = m.Dir
	runs := m.Runs()
	if len(runs) == 0 {
		return errors.Join(incomplete, m.Failure())
	}
	judged, v := matrix.Judge(m, incomplete)
	var of []result.Envelope
	for _, r := range runs {
		of = append(of, r.Envelope)
	}
	s := result.MatrixSummary{Envelope: derived(ctx, result.KindMatrix, began, of, v), Matrix: judged}
	s.Run.Command = a.command()
	s.Run = s.Run.Spanning(of) // some may be of another day
	if err := matrix.WriteTables(a.out, judged); err != nil {
		return err
	}
	if err := a.writeAndShow(s, v, report.Matrix(s), a.out); err != nil {
		return err
	}
	if m.Failure() != nil {
		return ended(exitError)
	}
	return nil
}

// jobFlags are the keys of a variant that are flags of bench run, with hyphens.
var jobFlags = []string{
	matrix.KeyDurability, matrix.KeyNodes, matrix.KeyReplicas, matrix.KeyInFlight, matrix.KeyRate, matrix.KeyDuration, matrix.KeyWarmup,
	matrix.KeySteps, matrix.KeyBranches, matrix.KeyPayload, matrix.KeyFail, matrix.KeyFill,
}

// jobVariant returns what runs a job, without the flags of these keys.
func (a *app) jobVariant(job matrix.Job, without ...string) (*variant, error) {
	values := job.Variant.Values
	words := []string{values.Store()}
	target, err := a.target(values.Store())
	if err != nil {
		return nil, err
	}
	start := values.Start(target)
	if start.Start {
		words = append(words, "--start")
	}
	for _, key := range jobFlags {
		if value := values[key]; value != "" && !slices.Contains(without, key) {
			words = append(words, "--"+strings.ReplaceAll(key, "_", "-")+"="+value)
		}
	}
	for _, setting := range start.Set {
		words = append(words, "--"+setFlag+"="+setting)
	}
	if values[matrix.KeyRate] != "" {
		words = append(words, "--arrival=poisson")
	}
	slices.Sort(words[1:]) // the same command each time
	var common []string
	if a.configFile != "" {
		common = []string{"--config=" + a.configFile}
	}
	v, err := a.newVariant(words, common)
	if err != nil {
		return nil, err
	}
	v.run.start.Server = start.Server
	v.app.options.Load.Seed = job.Seed
	if !progress.NewDisplay(a.stderr).Terminal {
		v.app.stderr = io.Discard // the lines of each run would hide those of the matrix
	}
	return v, nil
}

// runSagas makes a run as bench run does.
func (a *app) runSagas(ctx context.Context, job matrix.Job) (result.MatrixRun, error) {
	v, err := a.jobVariant(job)
	if err != nil {
		return result.MatrixRun{}, err
	}
	var slo *result.SLO
	if text := job.Variant.Values[matrix.KeySLO]; text != "" {
		asked, err := result.ParseSLO(text)
		if err != nil {
			return result.MatrixRun{}, err
		}
		slo = &asked
	}
	s, err := v.measure(ctx, job.Dir)
	metrics := matrix.OfSaga(s, slo)
	if job.Variant.Values[matrix.KeyNodes] == "1" {
		matrix.AddBusiest(metrics, s)
	}
	return result.MatrixRun{Envelope: s.Envelope, CPULimit: v.cpuLimit, Metrics: metrics}, err
}

// runCapacity makes a search as bench capacity does, and plans for the asked rate.
func (a *app) runCapacity(ctx context.Context, job matrix.Job) (result.MatrixRun, error) {
	values := job.Variant.Values
	v, err := a.jobVariant(job, matrix.KeyRate, matrix.KeyDuration, matrix.KeyWarmup)
	if err != nil {
		return result.MatrixRun{}, err
	}
	cfg := capacity.Default().WithHold(values.Duration(matrix.KeyHold, capacity.Default().Hold))
	if text := values[matrix.KeySLO]; text != "" {
		if cfg.SLO, err = result.ParseSLO(text); err != nil {
			return result.MatrixRun{}, err
		}
	}
	v.app.out = job.Dir
	own, err := v.app.setUp(ctx, v.run)
	if err != nil {
		return result.MatrixRun{}, err
	}
	defer own.stop()
	own.cfg.Load.Warmup = values.Duration(matrix.KeyWarmup, capacityWarmup)
	s, err := v.app.findCapacity(ctx, own, cfg)
	if err != nil {
		return result.MatrixRun{}, err
	}
	found := result.Result{Dir: job.Dir, Capacity: &s}
	if err := errors.Join(result.WriteSummary(job.Dir, s), report.WritePages(job.Dir, report.Document(found))); err != nil {
		return result.MatrixRun{}, err
	}
	run := result.MatrixRun{Envelope: s.Envelope, CPULimit: own.cpuLimit, Metrics: matrix.OfCapacity(s), Curve: s.Capacity.LatencyByRate()}
	if perS := values.Rate(matrix.KeyRate); perS > 0 {
		if p, _, err := plan.Make(plan.Demand{RatePerS: perS, Peak: 1, SLO: cfg.SLO}, []result.Result{found}); err == nil { // else the machines are unknown
			matrix.AddMachines(run.Metrics, p.Lines)
		}
	}
	return run, nil
}
