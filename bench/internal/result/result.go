package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	case kind.Schema < Schema:
		return Result{}, fmt.Errorf("read %s: it has schema %d of an older version, and this program reads %d: measure again", path, kind.Schema, Schema)
	case kind.Schema > Schema:
		return Result{}, fmt.Errorf("read %s: it has schema %d of a newer version, and this program reads %d", path, kind.Schema, Schema)
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
