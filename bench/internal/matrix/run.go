package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sagabench/bench/internal/result"
)

// Job is one run to make.
type Job struct {
	Table   Table
	Variant Variant
	Block   int    // from 1
	Seed    uint64 // for random arrivals: the same for all variants of a block
	Dir     string // for the files of the run; it is absent
}

// Runner makes runs of one measure. The result's Metrics have the keys of this measure in
// [Metrics]. An error says that the run could not be made, or that ctx has ended.
type Runner func(ctx context.Context, job Job) (result.MatrixRun, error)

// Config of a matrix.
type Config struct {
	File    File
	Options Options
	Dir     string // of the result
	New     bool   // nobody chose Dir: if it exists, the matrix gets another directory, and does not resume
	Runners map[Measure]Runner
	Status  func(string) // called with what is being done; may be nil

	// Pull downloads a container image, before the first run. It may be nil if no variant
	// has one.
	Pull func(ctx context.Context, image string) error
}

// The files and directories below that of a result.
const (
	filePlan = "matrix.json" // what is run
	fileRun  = "run.json"    // a run, in a directory of its own
	fileLock = "matrix.lock" // while it is run
	dirRuns  = "runs"
)

// saved is what matrix.json has: a directory is resumed only for the same.
type saved struct {
	File      string            `json:"file"`
	Hash      string            `json:"hash"`
	Quick     bool              `json:"quick"`
	Repeats   int               `json:"repeats"`
	Overrides map[string]string `json:"overrides"`
	Seed      uint64            `json:"seed"`
}

// Matrix is a file with its runs.
type Matrix struct {
	Title  string
	Dir    string // of the result
	saved  saved
	Tables []RunTable
}

// RunTable is a table with its runs.
type RunTable struct {
	Table
	Variants []RunVariant
}

// RunVariant is a variant with its runs. Runs has an element for each block, nil if there is
// none.
type RunVariant struct {
	Variant
	Runs   []*result.MatrixRun
	Failed error // why the last run that failed could not be made; nil: none failed
}

// Runs returns all runs, in the order of the tables and blocks.
func (m Matrix) Runs() (all []result.MatrixRun) {
	for _, t := range m.Tables {
		for block := range t.Repeats {
			for _, v := range t.Variants {
				if r := v.Runs[block]; r != nil {
					all = append(all, *r)
				}
			}
		}
	}
	return all
}

// Failure returns why a variant could not run, or nil if all could.
func (m Matrix) Failure() error {
	for _, t := range m.Tables {
		for _, v := range t.Variants {
			if v.Failed != nil {
				return fmt.Errorf("%s, %s could not run: %w", t.Name, v.Name(), v.Failed)
			}
		}
	}
	return nil
}

// maxFailures of a variant end its runs.
const maxFailures = 2

// Run makes the runs that are missing in cfg.Dir. A variant whose run fails does not stop
// the others. After an interruption, Run returns what there is, with an error that says how
// much is missing. Other errors say that nothing can be run.
func Run(ctx context.Context, cfg Config) (Matrix, error) {
	if cfg.Status == nil {
		cfg.Status = func(string) {}
	}
	tables, err := cfg.File.plan(cfg.Options)
	if err != nil {
		return Matrix{}, err
	}
	if cfg.New {
		if cfg.Dir, err = result.NewDir(cfg.Dir); err != nil {
			return Matrix{}, err
		}
	}
	plan, resumed, err := cfg.read()
	if err != nil {
		return Matrix{}, err
	}
	if !resumed {
		if err := result.MakeDir(cfg.Dir); err != nil {
			return Matrix{}, err
		}
	}
	unlock, err := lock(cfg.Dir)
	if err != nil {
		return Matrix{}, err
	}
	defer unlock()
	if !resumed {
		if err := writeJSON(cfg.Dir, filePlan, plan); err != nil {
			return Matrix{}, err
		}
	}
	m := Matrix{Title: cfg.File.Title, Dir: cfg.Dir, saved: plan}
	for _, t := range tables {
		one, err := loadTable(cfg.Dir, t)
		if err != nil {
			return Matrix{}, err
		}
		m.Tables = append(m.Tables, one)
	}
	cfg.pull(ctx, m)
	p := newProgress(m)
	for _, t := range m.Tables {
		if err := cfg.runTable(ctx, plan.Seed, t, p); err != nil {
			return m, err
		}
	}
	return m, nil
}

// lock keeps others from running the matrix in dir, which would remove our runs as those of
// a program that was killed. The lock ends with us, however we end.
func lock(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, fileLock)
	held, err := vfs.Default.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s, which another program may be running: %w", dir, err)
	}
	return func() {
		_ = os.Remove(path) // before others can have the lock
		_ = held.Close()
	}, nil
}

// pull downloads the images of the runs that are missing, so that no run is measured beside
// a download. A variant whose image cannot be had fails by itself.
func (cfg Config) pull(ctx context.Context, m Matrix) {
	pulled := map[string]bool{"": true}
	for _, t := range m.Tables {
		for _, v := range t.Variants {
			image := v.Values[KeyImage]
			if pulled[image] || !slices.Contains(v.Runs, nil) {
				continue
			}
			pulled[image] = true
			if err := cfg.Pull(ctx, image); err != nil {
				cfg.Status(err.Error())
			}
		}
	}
}

// read returns the plan of the directory, or a new one. It refuses a directory of another.
func (cfg Config) read() (plan saved, resumed bool, err error) {
	o := cfg.Options
	plan = saved{File: cfg.File.Name, Hash: cfg.File.Hash, Quick: o.Quick, Repeats: o.Repeats, Overrides: maps.Collect(maps.All(o.Override)), Seed: o.Seed}
	text, err := os.ReadFile(filepath.Join(cfg.Dir, filePlan))
	if errors.Is(err, fs.ErrNotExist) {
		if plan.Seed == 0 {
			plan.Seed = rand.Uint64()>>11 | 1 // a number of JSON holds 53 bits
		}
		return plan, false, result.CheckDir(cfg.Dir)
	} else if err != nil {
		return plan, false, fmt.Errorf("read the plan of the matrix: %w", err)
	}
	var there saved
	if err := json.Unmarshal(text, &there); err != nil {
		return plan, false, fmt.Errorf("read %s: %w", filepath.Join(cfg.Dir, filePlan), err)
	}
	for _, d := range []struct {
		what        string
		here, there any
	}{
		{"variant file", plan.Hash, there.Hash},
		{"--quick", plan.Quick, there.Quick},
		{"--repeats", plan.Repeats, there.Repeats},
		{"overrides", plan.Overrides, there.Overrides},
	} {
		if !reflect.DeepEqual(d.here, d.there) {
			return plan, false, fmt.Errorf("%s has runs of another matrix (%s, now %v, then %v): choose another directory, or repeat its command to resume it", cfg.Dir, d.what, d.here, d.there)
		}
	}
	return there, true, nil
}

// loadTable returns the table with the runs that are in the directory of a result.
func loadTable(dir string, t Table) (RunTable, error) {
	one := RunTable{Table: t}
	for i, v := range t.Variants() {
		with := RunVariant{Variant: v}
		for block := 1; block <= t.Repeats; block++ {
			run, err := readRun(filepath.Join(dir, runDir(t.Name, v, block, i)))
			if err != nil {
				return one, err
			}
			with.Runs = append(with.Runs, run)
		}
		one.Variants = append(one.Variants, with)
	}
	return one, nil
}

// runDir returns the directory of a run below that of the result. Blocks count from 1,
// variants from 0.
func runDir(table string, v Variant, block, index int) string {
	return filepath.Join(dirRuns, table, fmt.Sprintf("%02d-%03d-%s", block, index+1, slug(v)))
}

// slug writes the name of a variant for a directory.
func slug(v Variant) string {
	const most = 60
	text := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, strings.Join(v.Names, "-"))
	return text[:min(most, len(text))]
}

func readRun(dir string) (*result.MatrixRun, error) {
	path := filepath.Join(dir, fileRun)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read a run of the matrix: %w", err)
	}
	run := new(result.MatrixRun)
	if err := json.Unmarshal(text, run); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return run, nil
}

// runTable makes the runs of a table that are missing.
func (cfg Config) runTable(ctx context.Context, seed uint64, t RunTable, p *progress) error {
	failures := make([]int, len(t.Variants))
	for block := 1; block <= t.Repeats; block++ {
		for _, i := range order(seed, t.Name, block, len(t.Variants)) {
			v := &t.Variants[i]
			if v.Runs[block-1] != nil {
				continue
			}
			if failures[i] >= maxFailures {
				p.skip(t)
				continue
			}
			cfg.Status(p.next(t, block, v.Variant))
			began := time.Now()
			run, err := cfg.runOne(ctx, Job{
				Table: t.Table, Variant: v.Variant, Block: block, Seed: seed ^ uint64(block),
				Dir: filepath.Join(cfg.Dir, runDir(t.Name, v.Variant, block, i)),
			})
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("interrupted after %d of %d runs", p.done, p.all)
			case err != nil:
				v.Failed = err
				failures[i]++
				cfg.Status(fmt.Sprintf("%s could not run: %v", v.Name(), err))
				p.skip(t)
			default:
				v.Runs[block-1] = &run
				p.made(t, time.Since(began))
			}
		}
	}
	return nil
}

// runOne makes a run and writes it. It removes what an interrupted one left.
func (cfg Config) runOne(ctx context.Context, job Job) (result.MatrixRun, error) {
	if err := os.RemoveAll(job.Dir); err != nil {
		return result.MatrixRun{}, fmt.Errorf("remove an incomplete run: %w", err)
	}
	runner, ok := cfg.Runners[job.Table.Measure]
	if !ok {
		return result.MatrixRun{}, fmt.Errorf("measure %s cannot be run by this program", job.Table.Measure)
	}
	run, err := runner(ctx, job)
	if err == nil {
		err = ctx.Err() // what an interrupted run measured does not count
	}
	if err != nil {
		return run, errors.Join(err, os.RemoveAll(job.Dir))
	}
	run.Names, run.Block = job.Variant.Names, job.Block
	if err := os.MkdirAll(job.Dir, 0o700); err != nil {
		return run, fmt.Errorf("write a run of the matrix: %w", err)
	}
	return run, writeJSON(job.Dir, fileRun, run)
}

func writeJSON(dir, name string, value any) error {
	return result.WriteFile(dir, name, func(w io.Writer) error { return result.Encode(w, value) })
}

// progress counts the runs, and estimates the time that is left.
type progress struct {
	done, all int // of all tables
	tables    map[string]*pace
}

// pace is how long the runs of a table take.
type pace struct {
	left  int
	spent time.Duration // by made of them
	made  int
	guess time.Duration // of a run, until one is made
}

func newProgress(m Matrix) *progress {
	p := &progress{tables: map[string]*pace{}}
	for _, t := range m.Tables {
		one := &pace{guess: t.guess()}
		for _, v := range t.Variants {
			for _, r := range v.Runs {
				p.all++
				if r != nil {
					p.done++
				} else {
					one.left++
				}
			}
		}
		p.tables[t.Name] = one
	}
	return p
}

const (
	startGuess = 4 * time.Second // to start a server, to audit and to stop it
	holdsGuess = 12              // holds that a search takes, with all that is shorter
)

// guess is how long a run of the table may take.
func (t Table) guess() time.Duration {
	length := t.Set.Duration(KeyDuration, 10*time.Second)
	if t.Measure == MeasureCapacity {
		length = holdsGuess * t.Set.Duration(KeyHold, time.Minute)
	}
	return startGuess + t.Set.Duration(KeyWarmup, 2*time.Second) + length
}

func (p *progress) made(t RunTable, took time.Duration) {
	one := p.tables[t.Name]
	p.done++
	one.left--
	one.made++
	one.spent += took
}

func (p *progress) skip(t RunTable) { p.tables[t.Name].left-- }

// next describes the run that begins.
func (p *progress) next(t RunTable, block int, v Variant) string {
	left := time.Duration(0)
	for _, one := range p.tables {
		each := one.guess
		if one.made > 0 {
			each = one.spent / time.Duration(one.made)
		}
		left += time.Duration(one.left) * each
	}
	return fmt.Sprintf("run %d of %d, about %v left: %s, block %d of %d: %s", p.done+1, p.all, left.Round(time.Second), t.Name, block, t.Repeats, v.Name())
}
