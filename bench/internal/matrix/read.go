package matrix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sagabench/bench/internal/result"
)

// IsResult reports whether the directory is that of a matrix.
func IsResult(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filePlan))
	return err == nil
}

// Read returns the result of a directory that Run has filled. Its verdicts are made again from
// the saved runs. The directory needs a summary.json, which names the tables.
func Read(dir string) (result.MatrixSummary, error) {
	s, err := result.ReadMatrix(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s has no %s: its matrix is being run, or was killed; repeat its command to resume it", dir, result.FileSummary)
	} else if err != nil {
		return s, err
	}
	m := Matrix{Title: s.Matrix.Title, saved: saved{
		File: s.Matrix.File, Hash: s.Matrix.Hash, Seed: s.Matrix.Seed, Quick: s.Matrix.Quick, Overrides: s.Matrix.Overrides,
	}}
	there, missing := 0, 0
	for _, saved := range s.Matrix.Tables {
		t, err := tableOf(saved)
		if err != nil {
			return s, fmt.Errorf("%s: table %q: %w", dir, saved.Name, err)
		}
		one, err := loadTable(dir, t)
		if err != nil {
			return s, err
		}
		for i := range one.Variants {
			v := &one.Variants[i]
			failed := saved.Variants[i].Failed
			if failed != "" {
				v.Failed = errors.New(failed)
			}
			for _, r := range v.Runs {
				if r != nil {
					there++
				} else if failed == "" {
					missing++
				}
			}
		}
		m.Tables = append(m.Tables, one)
	}
	var incomplete error
	if missing > 0 {
		incomplete = fmt.Errorf("%d of %d runs are there", there, there+missing)
	}
	s.Matrix, s.Validity = Judge(m, incomplete)
	return s, nil
}

// tableOf returns a table that summary.json describes, without the values of its variants.
func tableOf(s result.MatrixTable) (Table, error) {
	t := Table{Name: s.Name, Title: s.Title, Measure: Measure(s.Measure), Repeats: s.Repeats, Set: s.Set, Compare: s.Compare}
	variants := 1
	for _, a := range s.Axes {
		axis := Axis{Name: a.Name}
		for _, name := range a.Values {
			axis.Values = append(axis.Values, Value{Name: name})
		}
		t.Axes = append(t.Axes, axis)
		if variants *= len(axis.Values); variants > mostVariants {
			break
		}
	}
	switch {
	case !tableName.MatchString(t.Name):
		return t, errors.New("its name is not allowed")
	case t.Repeats < 1 || t.Repeats > MostRepeats:
		return t, fmt.Errorf("%d repeats, must be 1 to %d", t.Repeats, MostRepeats)
	case variants != len(s.Variants) || variants > mostVariants:
		return t, fmt.Errorf("%d variants do not fit its axes", len(s.Variants))
	}
	return t, nil
}
