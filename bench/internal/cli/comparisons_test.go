package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/comparisons"
	"sagabench/bench/internal/matrix"
	"sagabench/internal/race"
)

// moment makes the runs of a table as short as they can be.
var moment = map[matrix.Measure]matrix.Values{
	matrix.MeasureSaga:      {matrix.KeyWarmup: "50ms", matrix.KeyDuration: "200ms"},
	matrix.MeasureOperation: {matrix.KeyWarmup: "20ms", matrix.KeyDuration: "100ms"},
	matrix.MeasureCrash:     {matrix.KeyDuration: "1s"},
	matrix.MeasureCapacity:  {matrix.KeyWarmup: "50ms", matrix.KeyHold: "200ms", matrix.KeySLO: "p99=1us"}, // which no rate holds
}

// shortened returns a file with the first and the last variant of each table, or, if a run of it
// takes seconds, the last one: searches, and clusters, whose nodes have to agree. A variant is left
// out if a table before has one with the same server, operation and client.
func shortened(f matrix.File) matrix.File {
	seen := map[string]bool{}
	tables := f.Tables
	f.Tables = nil
	for _, t := range tables {
		variants := t.Variants()
		last := variants[len(variants)-1]
		kept := []matrix.Variant{variants[0], last}
		if t.Measure == matrix.MeasureCapacity || last.Values.Int(matrix.KeyNodes, 1) > 1 {
			kept = kept[1:]
		}
		ends := matrix.Axis{Name: "variant"}
		for _, v := range kept {
			what := fmt.Sprint(t.Measure, v.Values.Settings())
			for _, key := range []string{
				matrix.KeyStore, matrix.KeyBinary, matrix.KeyDurability, matrix.KeyNodes, matrix.KeyReplicas, matrix.KeyOperation, matrix.KeyClient, matrix.KeyCrash,
			} {
				what += " " + v.Values[key]
			}
			if seen[what] {
				continue
			}
			seen[what] = true
			values := maps.Clone(v.Values)
			maps.Copy(values, moment[t.Measure])
			ends.Values = append(ends.Values, matrix.Value{Name: v.Name(), Set: values})
		}
		if t.Axes, t.Compare = []matrix.Axis{ends}, ""; len(ends.Values) > 0 {
			f.Tables = append(f.Tables, t)
		}
	}
	return f
}

// What the files name can be run: servers, settings, operations, clients.
func TestMatrix_RunsEachFile(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, name := range comparisons.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := comparisons.Read(name)
			require.NoError(t, err)
			file, err := matrix.Parse(name, text)
			require.NoError(t, err)
			var stdout, stderr bytes.Buffer
			a := &app{args: []string{"matrix", name}, environ: os.Environ(), stdout: &stdout, stderr: &stderr, options: defaults(), json: true, out: filepath.Join(t.TempDir(), "out")}
			_ = a.matrix(t.Context(), shortened(file), matrix.Options{Repeats: 1}) // so short a run may be not valid
			for _, table := range matrixOf(t, stdout.String()).Matrix.Tables {
				for _, v := range table.Variants {
					if strings.Contains(v.Failed, "LAB_REDIS_SERVERS") && os.Getenv("LAB_REDIS_SERVERS") == "" {
						continue // make test does not bring old servers, CI does
					}
					require.Empty(t, v.Failed, "%s, %s", table.Name, v.Names)
					require.Len(t, v.Runs, 1, "%s, %s", table.Name, v.Names)
				}
			}
		})
	}
}
