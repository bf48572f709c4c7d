package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Result is the contents of a result directory: a run or a search for the capacity.
type Result struct {
	Dir       string
	Run       *Summary // nil for a search
	Recording Recording
	Capacity  *CapacitySummary // nil for a run
}

// ErrNoResult reports a directory without a result of a run or of a search.
var ErrNoResult = errors.New("no result of bench run, load or capacity")

// ReadResult reads a result directory.
func ReadResult(dir string) (Result, error) {
	f, err := readSummary(dir)
	switch {
	case err != nil:
		return Result{}, err
	case f.Capacity != nil:
		c := new(CapacitySummary)
		return Result{Dir: dir, Capacity: c}, f.decode(c)
	case f.Matrix != nil:
		return Result{}, fmt.Errorf("%s: %w, but one of bench matrix, which bench report shows alone", dir, ErrNoResult)
	case f.Load == nil:
		return Result{}, fmt.Errorf("%s: %w", dir, ErrNoResult)
	}
	s := new(Summary)
	if err := f.decode(s); err != nil {
		return Result{}, err
	}
	rec, err := ReadRecording(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	return Result{Dir: dir, Run: s, Recording: rec}, nil
}

// ReadMatrix reads summary.json of the result directory of a matrix.
func ReadMatrix(dir string) (s MatrixSummary, err error) {
	f, err := readSummary(dir)
	if err == nil && f.Matrix == nil {
		err = fmt.Errorf("%s: no result of bench matrix", dir)
	}
	if err != nil {
		return s, err
	}
	return s, f.decode(&s)
}

// summaryFile is summary.json of any kind.
type summaryFile struct {
	path                   string
	text                   []byte
	Schema                 int
	Load, Capacity, Matrix json.RawMessage // nil if it is another kind
}

// readSummary reads summary.json of a result directory. It returns an error if this program
// does not know the schema.
func readSummary(dir string) (f summaryFile, err error) {
	f.path = filepath.Join(dir, FileSummary)
	if f.text, err = readFile(dir); errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("%s: %w: %w", dir, ErrNoResult, err)
	} else if err != nil {
		return f, fmt.Errorf("read the result: %w", err)
	}
	err = f.decode(&f)
	switch {
	case err != nil:
	case f.Schema < Schema:
		err = fmt.Errorf("read %s: it has schema %d of an older version, and this program reads %d: measure again", f.path, f.Schema, Schema)
	case f.Schema > Schema:
		err = fmt.Errorf("read %s: it has schema %d of a newer version, and this program reads %d", f.path, f.Schema, Schema)
	}
	return f, err
}

func (f summaryFile) decode(into any) error {
	if err := json.Unmarshal(f.text, into); err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	return nil
}

// Envelope returns the part that results of both kinds share.
func (r Result) Envelope() Envelope {
	if r.Run != nil {
		return r.Run.Envelope
	}
	return r.Capacity.Envelope
}

// Steps returns the measurements at one rate each: the run, or the steps of a search.
func (r Result) Steps() []Step {
	if r.Capacity != nil {
		return r.Capacity.Capacity.Steps
	}
	return []Step{r.Run.step()}
}

// step returns the run as a step. It is valid: the validity of the run is that of the whole
// result.
func (s Summary) step() Step {
	return Step{DurationS: s.Run.DurationS, Measurement: s.Measurement, Validity: Validity{Valid: true}}
}

// MainStep returns the measurement that the figures of the result are quoted from: the run,
// or the last hold of the held rate that met the service level: of several searches, another
// one may have broken it there. It returns nil if there is none.
func (r Result) MainStep() *Step {
	if r.Run != nil {
		m := r.Run.step()
		return &m
	}
	c := r.Capacity.Capacity
	if c.Held == nil {
		return nil
	}
	for _, m := range slices.Backward(c.HeldSteps()) {
		if m.MeetsSLO != nil && *m.MeetsSLO {
			return &m
		}
	}
	return nil
}
