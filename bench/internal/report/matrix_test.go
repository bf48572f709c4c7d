package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/internal/document"
)

// matrixRun has a table with one group, in which a variant failed, one with several groups,
// and one that ranks nothing.
func matrixRun(t *testing.T) result.MatrixSummary {
	t.Helper()
	file, err := matrix.Parse("test.yml", []byte(`title: Which store
tables:
  - name: asked
    title: At the asked rate
    measure: saga
    repeats: 3
    set: {rate: 2000/s, slo: p99=50ms, durability: D3}
    axes: [{name: store, values: [pebble, redis, mysql]}]
    compare: store
  - name: sagas
    title: Kinds of sagas
    measure: saga
    axes:
      - {name: steps, values: [2, 10]}
      - {name: store, values: [pebble, redis]}
    compare: store
  - name: held
    title: Highest rate held
    measure: capacity
    repeats: 1
    axes: [{name: store, values: [pebble, redis]}]
`))
	require.NoError(t, err)
	m := matrix.Matrix{Title: file.Title}
	began := resulttest.OpenRun().Run.Started
	for _, table := range file.Tables {
		one := matrix.RunTable{Table: table}
		for i, v := range table.Variants() {
			with := matrix.RunVariant{Variant: v, Runs: make([]*result.MatrixRun, table.Repeats)}
			if v.Name() == "mysql" {
				with.Failed = matrixFailure("mariadbd or mysqld is not installed")
			}
			for block := range table.Repeats {
				if with.Failed != nil {
					break
				}
				began = began.Add(10 * time.Second)
				r := result.MatrixRun{Envelope: resulttest.OpenRun().Envelope, Metrics: map[string]float64{
					"slo_met": float64((block + i) % 2), "achieved_per_s": 2000, "cpu_us": 80 * float64(i+1) * (1 + 0.001*float64(block)),
					"p99_ms": 4 + 3*float64((7*block+i)%4), "memory_bytes": 50 << 20, "store_bytes_written": 420, "held_per_s": 5000 + 1000*float64(i),
				}}
				r.Check = result.Check{}
				r.Run.Started, r.Run.Store = began, result.Store{Driver: v.Names[len(v.Names)-1], Version: "1.2", Durability: "D3"}
				r.Validity = result.Validity{Valid: true, Warnings: []string{"shared host: load, app and store share 2 cores"}}
				with.Runs[block] = &r
			}
			one.Variants = append(one.Variants, with)
		}
		m.Tables = append(m.Tables, one)
	}
	judged, v := matrix.Judge(m, nil)
	s := result.MatrixSummary{Envelope: resulttest.OpenRun().Envelope, Matrix: judged}
	s.Kind, s.Validity, s.Run.Command = result.KindMatrix, v, "go run bench/main.go matrix test.yml"
	return s
}

type matrixFailure string

func (f matrixFailure) Error() string { return string(f) }

func TestMatrix_Golden(t *testing.T) {
	t.Parallel()
	s := matrixRun(t)
	for name, d := range map[string]document.Document{"matrix.txt": Matrix(s), "matrix-brief.txt": Matrix(s).Brief("out")} {
		var out bytes.Buffer
		require.NoError(t, document.Text(&out, d))
		resulttest.Golden(t, name, out.Bytes())
	}
	var csv bytes.Buffer
	require.NoError(t, matrix.WriteCSV(&csv, s.Matrix.Tables[0]))
	resulttest.Golden(t, "matrix.csv", csv.Bytes())
}

func TestMatrix_ShowsTheWorstCrash(t *testing.T) {
	t.Parallel()
	table := result.MatrixTable{
		Name: "loss", Title: "Lost", Measure: string(matrix.MeasureCrash), Repeats: 3,
		Axes:    []result.MatrixAxis{{Name: "store", Values: []string{"one", "other"}}, {Name: "crash", Values: []string{"process", "machine"}}},
		Metrics: []result.MatrixMetric{{Key: "lost", Label: "sagas lost"}},
	}
	for i, names := range [][]string{{"one", "process"}, {"one", "machine"}, {"other", "process"}, {"other", "machine"}} {
		lost := float64(i / 3 * 900)
		table.Variants = append(table.Variants, result.MatrixVariant{
			Names: names, Store: result.Store{Durability: []string{"D3", "D2"}[i/2]},
			Figures: map[string]result.MatrixFigure{"lost": {Low: lost / 3, Median: lost / 2, High: lost}},
		})
	}
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, Matrix(result.MatrixSummary{Matrix: result.Matrix{Title: "Crashes", Tables: []result.MatrixTable{table}}})))
	require.Contains(t, out.String(), "Crashes: nothing lost in any crash: one\n")
	require.Regexp(t, `other, machine +D2 +300 to 900\n`, out.String())
	require.Regexp(t, `one, machine +D3 +0\n`, out.String())
	require.NotContains(t, out.String(), "best")
}
