package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Result is what a result directory holds: a run or a search for a capacity.
type Result struct {
	Dir       string
	Run       *Summary // nil: it is a Capacity
	Recording Recording
	Capacity  *CapacitySummary // nil: it is a Run
}

// ErrNoResult is of a directory that holds no result of a kind that is known here.
var ErrNoResult = errors.New("no result of bench run, load or capacity")

// ReadResult reads a result directory.
func ReadResult(dir string) (Result, error) {
	path := filepath.Join(dir, FileSummary)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("%s: %w: %w", dir, ErrNoResult, err)
	} else if err != nil {
		return Result{}, fmt.Errorf("read the result: %w", err)
	}
	var kind struct {
		Schema   int
		Load     json.RawMessage
		Capacity json.RawMessage
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return Result{}, fmt.Errorf("read %s: %w", path, err)
	}
	switch {
	case kind.Schema != Schema:
		return Result{}, fmt.Errorf("read %s: schema %d, this program knows %d", path, kind.Schema, Schema)
	case kind.Capacity != nil:
		c := new(CapacitySummary)
		if err := json.Unmarshal(text, c); err != nil {
			return Result{}, fmt.Errorf("read %s: %w", path, err)
		}
		return Result{Dir: dir, Capacity: c}, nil
	case kind.Load == nil:
		return Result{}, fmt.Errorf("%s: %w", dir, ErrNoResult)
	}
	s := new(Summary)
	if err := json.Unmarshal(text, s); err != nil {
		return Result{}, fmt.Errorf("read %s: %w", path, err)
	}
	rec, err := ReadRecording(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	return Result{Dir: dir, Run: s, Recording: rec}, nil
}

// Envelope returns what results of both kinds have.
func (r Result) Envelope() Envelope {
	if r.Run != nil {
		return r.Run.Envelope
	}
	return r.Capacity.Envelope
}

// Steps returns what was measured at one rate each: the run, or the steps of a search.
func (r Result) Steps() []Step {
	if r.Capacity != nil {
		return r.Capacity.Capacity.Steps
	}
	return []Step{r.Run.measured()}
}

// measured is a run as one measurement among others. If the run is not valid, that is
// said of the whole result.
func (s Summary) measured() Step {
	return Step{DurationS: s.Run.DurationS, Measurement: s.Measurement, Validity: Validity{Valid: true}}
}

// Edge is the measurement that a result stands for: the run, or the last one at the
// highest rate at which the service level was kept; nil: there is none.
func (r Result) MainStep() *Step {
	if r.Run != nil {
		m := r.Run.measured()
		return &m
	}
	var edge *Step
	for _, m := range r.Capacity.Capacity.ByRate() {
		if rate := r.Capacity.Capacity.RatePerS; rate != nil && m.MeetsSLO != nil && *m.MeetsSLO && *m.Load.OfferedPerS <= *rate {
			edge = &m
		}
	}
	return edge
}
