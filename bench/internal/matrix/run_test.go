package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

// fake makes runs without a store. It is our own interface, not a store's.
type fake struct {
	mu    sync.Mutex
	made  []string // variants in the order of the runs
	clock time.Time

	metrics func(job matrix.Job) map[string]float64
	change  func(job matrix.Job, run *result.MatrixRun) error // may be nil
	after   func(made int)                                    // may be nil
}

func (f *fake) run(ctx context.Context, job matrix.Job) (result.MatrixRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return result.MatrixRun{}, err
	}
	f.clock = f.clock.Add(10 * time.Second)
	var run result.MatrixRun
	run.Run.Started, run.Run.Store = time.Unix(1e9, 0).Add(f.clock.Sub(time.Time{})), result.Store{Driver: "redis", Durability: "D3", Settings: map[string]string{}}
	run.Validity.Valid = true
	if f.metrics != nil {
		run.Metrics = f.metrics(job)
	}
	if f.change != nil {
		if err := f.change(job, &run); err != nil {
			return run, err
		}
	}
	f.made = append(f.made, fmt.Sprintf("%d %s", job.Block, job.Variant.Name()))
	if f.after != nil {
		f.after(len(f.made))
	}
	return run, nil
}

func config(t *testing.T, f *fake, values string, repeats int) matrix.Config {
	t.Helper()
	file, err := matrix.Parse("test.yml", fmt.Appendf(nil, `title: Test
tables:
  - name: sagas
    title: Sagas
    measure: saga
    repeats: %d
    set: {store: redis, rate: 100/s, duration: 1s}
    axes:
      - {name: variant, values: [%s]}
    compare: variant
    quick: {repeats: 1}
`, repeats, values))
	require.NoError(t, err)
	return matrix.Config{File: file, Dir: filepath.Join(t.TempDir(), "out"), Runners: map[matrix.Measure]matrix.Runner{matrix.MeasureSaga: f.run}}
}

const abc = "{name: a}, {name: b}, {name: c}"

func TestRun_MakesBlocksOfAllVariantsInRandomOrder(t *testing.T) {
	t.Parallel()
	f := &fake{}
	cfg := config(t, f, abc, 20)
	cfg.Options.Seed = 7
	m, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, m.Runs(), 60)
	orders := map[string]int{}
	for block := range 20 {
		made := f.made[3*block : 3*block+3]
		orders[strings.ReplaceAll(strings.Join(made, ""), fmt.Sprint(block+1), "")]++
		sorted := slices.Sorted(slices.Values(made))
		require.Equal(t, []string{fmt.Sprintf("%d a", block+1), fmt.Sprintf("%d b", block+1), fmt.Sprintf("%d c", block+1)}, sorted)
	}
	require.Greater(t, len(orders), 3, "of six orders")

	again := &fake{}
	cfg.Dir, cfg.Runners[matrix.MeasureSaga] = filepath.Join(t.TempDir(), "out"), again.run
	_, err = matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, f.made, again.made, "the order follows from the seed")
}

func TestRun_ResumesAndEndsWithTheSameRuns(t *testing.T) {
	t.Parallel()
	value := func(job matrix.Job) map[string]float64 {
		return map[string]float64{"p99_ms": float64(100*job.Block) + float64(job.Variant.Name()[0])}
	}
	f := &fake{metrics: value}
	cfg := config(t, f, abc, 4)
	cfg.Options.Seed = 3
	whole, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)

	ctx, interrupt := context.WithCancel(t.Context())
	first := &fake{metrics: value, after: func(made int) {
		if made == 5 {
			interrupt()
		}
	}}
	cfg.Dir, cfg.Runners[matrix.MeasureSaga] = filepath.Join(t.TempDir(), "out"), first.run
	part, err := matrix.Run(ctx, cfg)
	require.ErrorContains(t, err, "interrupted after 4 of 12 runs")
	require.Len(t, part.Runs(), 4, "what was measured when the signal came does not count")
	judged, v := matrix.Judge(part, err)
	require.False(t, v.Valid)
	require.Contains(t, v.Because[0], "it is incomplete: interrupted after 4 of 12 runs")
	require.Len(t, judged.Tables[0].Variants, 3)
	left := filepath.Join(cfg.Dir, "runs", "sagas", "04-001-a")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "results.bin"), nil, 0o600), "of a program that was killed")

	second := &fake{metrics: value}
	cfg.Runners[matrix.MeasureSaga] = second.run
	cfg.Options.Seed = 0 // that of the directory counts
	resumed, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, f.made, append(first.made[:4:4], second.made...))
	require.NoFileExists(t, filepath.Join(left, "results.bin"))
	a, _ := matrix.Judge(whole, nil)
	b, _ := matrix.Judge(resumed, nil)
	require.Equal(t, a.Tables[0].Variants, b.Tables[0].Variants)

	third := &fake{}
	cfg.Runners[matrix.MeasureSaga] = third.run
	_, err = matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Empty(t, third.made, "nothing is run twice")
}

func TestRun_RefusesTheDirectoryOfAnother(t *testing.T) {
	t.Parallel()
	f := &fake{}
	cfg := config(t, f, abc, 1)
	_, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	for what, change := range map[string]func(*matrix.Config){
		"variant file": func(c *matrix.Config) { c.File.Hash = "other" },
		"--quick":      func(c *matrix.Config) { c.Options.Quick = true },
		"--repeats":    func(c *matrix.Config) { c.Options.Repeats = 2 },
		"overrides":    func(c *matrix.Config) { c.Options.Override = matrix.Values{"rate": "7/s"} },
	} {
		other := cfg
		change(&other)
		_, err := matrix.Run(t.Context(), other)
		require.ErrorContains(t, err, "has runs of another matrix ("+what, what)
	}
	require.NoError(t, os.Remove(filepath.Join(cfg.Dir, "matrix.json")))
	_, err = matrix.Run(t.Context(), cfg)
	require.ErrorContains(t, err, "is not empty")
	require.Len(t, f.made, 3)
}

// Two that nobody gave a directory begin in the same second.
func TestRun_NewDirectoriesAreNotShared(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "results", "20260101-120000-matrix")
	for _, dir := range []string{name, name + "-2", name + "-3"} {
		cfg := config(t, &fake{}, abc, 1)
		cfg.Dir, cfg.New = name, true
		m, err := matrix.Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, dir, m.Dir)
		require.Len(t, m.Runs(), 3)
	}
	cfg := config(t, &fake{}, abc, 1)
	cfg.Dir, cfg.New, cfg.Options.Override = filepath.Join(t.TempDir(), "out"), true, matrix.Values{"hold": "20s"}
	_, err := matrix.Run(t.Context(), cfg)
	require.Error(t, err)
	require.NoDirExists(t, cfg.Dir)
}

func TestRun_RefusesADirectoryThatAnotherProgramRuns(t *testing.T) {
	t.Parallel()
	f := &fake{}
	cfg := config(t, f, abc, 1)
	other := cfg
	f.after = func(int) {
		_, err := matrix.Run(t.Context(), other)
		require.ErrorContains(t, err, "lock "+cfg.Dir+", which another program may be running")
	}
	_, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, f.made, 3)
	require.NoFileExists(t, filepath.Join(cfg.Dir, "matrix.lock"))
	f.after = nil
	_, err = matrix.Run(t.Context(), other)
	require.NoError(t, err)
}

func TestRead_JudgesTheSavedRunsAgain(t *testing.T) {
	t.Parallel()
	f := &fake{
		metrics: func(job matrix.Job) map[string]float64 {
			return map[string]float64{"p99_ms": float64(job.Block) + 100*float64(job.Variant.Name()[0])}
		},
		change: func(job matrix.Job, _ *result.MatrixRun) error {
			if job.Variant.Name() == "d" {
				return errors.New("redis-5.0 is not installed")
			}
			return nil
		},
	}
	cfg := config(t, f, abc+", {name: d}", 3)
	m, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	_, err = matrix.Read(cfg.Dir)
	require.ErrorContains(t, err, "has no summary.json: its matrix is being run, or was killed")

	s := result.MatrixSummary{Envelope: result.Envelope{Schema: result.Schema, Kind: result.KindMatrix}}
	s.Matrix, s.Validity = matrix.Judge(m, nil)
	saved := s
	saved.Matrix.Tables = slices.Clone(s.Matrix.Tables)
	saved.Matrix.Tables[0].Groups = nil // as an older version judged
	write := func(s result.MatrixSummary) { require.NoError(t, result.WriteSummary(cfg.Dir, s)) }
	write(saved)
	again, err := matrix.Read(cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, s.Matrix.Tables[0].Groups, again.Matrix.Tables[0].Groups)
	require.NotEmpty(t, again.Matrix.Tables[0].Groups[0].Verdicts[0].Best)
	require.Equal(t, s.Validity, again.Validity)
	require.True(t, matrix.IsResult(cfg.Dir))
	require.False(t, matrix.IsResult(t.TempDir()))

	require.NoError(t, os.RemoveAll(filepath.Join(cfg.Dir, s.Matrix.Tables[0].Variants[0].Runs[1])))
	again, err = matrix.Read(cfg.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{"it is incomplete: 8 of 9 runs are there"}, again.Validity.Because)

	for want, change := range map[string]func(*result.MatrixTable){
		"its name is not allowed":          func(t *result.MatrixTable) { t.Name = "../runs" },
		"1000000000 repeats, must be 1 to": func(t *result.MatrixTable) { t.Repeats = 1e9 },
		"3 variants do not fit its axes":   func(t *result.MatrixTable) { t.Variants = t.Variants[:3] },
	} {
		bad := saved
		bad.Matrix.Tables = slices.Clone(saved.Matrix.Tables)
		change(&bad.Matrix.Tables[0])
		write(bad)
		_, err = matrix.Read(cfg.Dir)
		require.ErrorContains(t, err, want)
	}
}

func TestJudge_ShowsNoSecretSetting(t *testing.T) {
	t.Parallel()
	cfg := config(t, &fake{}, abc, 1)
	cfg.File.Tables[0].Set["settings.requirepass"] = "topsecret"
	cfg.File.Tables[0].Set["settings.save"] = "60 1"
	m, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	judged, _ := matrix.Judge(m, nil)
	set := judged.Tables[0].Set
	require.Equal(t, []string{"***", "60 1"}, []string{set["settings.requirepass"], set["settings.save"]})
}

func TestRun_OverridesValuesOfTablesThatHaveTheKey(t *testing.T) {
	t.Parallel()
	var seen []string
	f := &fake{metrics: func(job matrix.Job) map[string]float64 {
		seen = append(seen, job.Variant.Values["rate"])
		return nil
	}}
	cfg := config(t, f, "{name: a}, {name: b, set: {rate: 5/s}}", 3)
	cfg.Options = matrix.Options{Quick: true, Override: matrix.Values{"rate": "9/s"}}
	_, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"9/s", "5/s"}, seen, "the file's own variants stay, and quick has one block")

	for _, bad := range []struct {
		values matrix.Values
		want   string
	}{
		{matrix.Values{"rate": "fast"}, `--rate: "fast": want requests per time`},
		{matrix.Values{"hold": "20s"}, "no table of this file sets hold"},
	} {
		cfg.Dir, cfg.Options.Override = filepath.Join(t.TempDir(), "out"), bad.values
		_, err := matrix.Run(t.Context(), cfg)
		require.ErrorContains(t, err, bad.want)
		require.NoDirExists(t, cfg.Dir)
	}
}

func TestRun_GoesOnWithoutAVariantThatFails(t *testing.T) {
	t.Parallel()
	tries := 0
	f := &fake{change: func(job matrix.Job, _ *result.MatrixRun) error {
		if job.Variant.Name() == "b" {
			tries++
			return errors.New("redis-5.0 is not installed")
		}
		return nil
	}}
	cfg := config(t, f, abc, 4)
	m, err := matrix.Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, m.Runs(), 8)
	require.Equal(t, 2, tries, "a variant that never runs does not take the time of all blocks")
	require.ErrorContains(t, m.Failure(), "sagas, b could not run: redis-5.0 is not installed")
	judged, v := matrix.Judge(m, nil)
	require.True(t, v.Valid)
	require.Contains(t, v.Warnings[0], "sagas, b could not run: redis-5.0 is not installed")
	require.Equal(t, "redis-5.0 is not installed", judged.Tables[0].Variants[1].Failed)
	require.Empty(t, judged.Tables[0].Variants[1].Runs)
}

func TestJudge_IsNotValidIfSagasWereLost(t *testing.T) {
	t.Parallel()
	lost := int64(2)
	f := &fake{change: func(job matrix.Job, r *result.MatrixRun) error {
		if job.Variant.Name() == "b" {
			r.Check.Lost = &lost
		}
		return nil
	}}
	m, err := matrix.Run(t.Context(), config(t, f, abc, 1))
	require.NoError(t, err)
	_, v := matrix.Judge(m, nil)
	require.False(t, v.Valid)
	require.Equal(t, []string{"the audits found 2 sagas lost"}, v.Because)
}

func TestJudge_JoinsTheLatenciesOfValidSearches(t *testing.T) {
	t.Parallel()
	f := &fake{change: func(job matrix.Job, run *result.MatrixRun) error {
		run.Validity.Valid = job.Block != 2
		run.Curve = []result.RatePoint{{RatePerS: float64(10 * job.Block), P99MS: 1}, {RatePerS: 25, P99MS: float64(job.Block)}}
		return nil
	}}
	m, err := matrix.Run(t.Context(), config(t, f, abc, 3))
	require.NoError(t, err)
	judged, _ := matrix.Judge(m, nil)
	require.Equal(t, []result.RatePoint{{RatePerS: 10, P99MS: 1}, {RatePerS: 25, P99MS: 1}, {RatePerS: 25, P99MS: 3}, {RatePerS: 30, P99MS: 1}}, judged.Tables[0].Variants[0].Curve)
}

func TestJudge_GroupsWarnings(t *testing.T) {
	t.Parallel()
	f := &fake{change: func(job matrix.Job, run *result.MatrixRun) error {
		run.Validity.Warnings = []string{"plan: the predicted CPU is 2 cores, the measured 3", "shared host: all on one"}
		if job.Variant.Name() != "c" {
			run.Validity = result.Validity{Because: []string{fmt.Sprintf("the search cannot tell: 100/s to 2%s%d/s", map[string]string{"a": "0", "b": "1"}[job.Variant.Name()], job.Block)}}
			run.Validity.Warnings = []string{fmt.Sprintf("at 1,%d00/s: steal: the hypervisor took 1.%d%%", job.Block, job.Block), "plan: the predicted CPU is 2 cores, the measured 3"}
		}
		return nil
	}}
	m, err := matrix.Run(t.Context(), config(t, f, abc, 2))
	require.NoError(t, err)
	_, v := matrix.Judge(m, nil)
	require.Equal(t, []string{
		"sagas, a and b: run 1 is not valid: the search cannot tell: 100/s to 201/s (figures of a)",
		"at 1,100/s: steal: the hypervisor took 1.1% (in 4 of 6 runs; figures of the first)",
		"shared host: all on one (in 2 of 6 runs)",
		"plan: the predicted CPU is 2 cores, the measured 3 (in all runs)",
	}, v.Warnings, "of the most runs first, and figures that differ from predictions last")
}

func TestOfCapacity_CountsASearchWithoutAHeldRateAsZero(t *testing.T) {
	t.Parallel()
	s := result.CapacitySummary{Capacity: result.Capacity{Search: result.Search{Next: &result.Next{RatePerS: 100}}}}
	require.Equal(t, map[string]float64{"held_per_s": 0, "next_per_s": 100}, matrix.OfCapacity(s))
	s.Capacity.CannotTell = "the load generator was late"
	require.NotContains(t, matrix.OfCapacity(s), "held_per_s")
}

func TestAddMachines_LeavesOutWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	hosts, nodes := 2.0, 1.0
	metrics := map[string]float64{}
	matrix.AddMachines(metrics, []plan.Line{{What: "app hosts", Value: &hosts}, {What: "store nodes", Value: &nodes, Extrapolated: true}})
	require.Equal(t, map[string]float64{"app_hosts": 2}, metrics, "the store did not hold the rate")
	matrix.AddMachines(metrics, []plan.Line{{What: "app CPU"}, {What: "store nodes", Value: &nodes}})
	require.Equal(t, map[string]float64{"app_hosts": 2, "store_nodes": 1}, metrics)
}
