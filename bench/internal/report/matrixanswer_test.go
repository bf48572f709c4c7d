package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/result/resulttest"
	"sagabench/internal/document"
)

// asked runs a search and sagas at a fixed rate on three stores. change replaces the figures
// of a run.
func asked(t *testing.T, searches, repeats int, change func(store string, block int, r *result.MatrixRun)) result.MatrixSummary {
	t.Helper()
	file, err := matrix.Parse("test.yml", fmt.Appendf(nil, `title: Which store
tables:
  - name: held
    title: Highest rate held
    measure: capacity
    repeats: %d
    set: {rate: 2000/s, slo: p99=50ms, hold: 3s, durability: D3}
    axes: [{name: store, values: [pebble, redis, mysql]}]
    compare: store
  - name: asked
    title: At the asked rate
    measure: saga
    repeats: %d
    set: {rate: 2000/s, slo: p99=50ms, duration: 4s, durability: D3}
    axes: [{name: store, values: [pebble, redis, mysql]}]
    compare: store
`, searches, repeats))
	require.NoError(t, err)
	m := matrix.Matrix{Title: file.Title}
	began := resulttest.OpenRun().Run.Started
	for _, table := range file.Tables {
		one := matrix.RunTable{Table: table}
		for i, v := range table.Variants() {
			with := matrix.RunVariant{Variant: v}
			for block := range table.Repeats {
				jitter := 1 + 0.001*float64((block+i)%3)
				r := result.MatrixRun{Metrics: map[string]float64{
					"slo_met": 1, "p99_ms": 9 * jitter, "cpu_us": 100 * jitter, "store_bytes_written": 4096, "store_fsyncs": 0.5, "memory_bytes": 100 << 20,
				}}
				if table.Measure == matrix.MeasureCapacity {
					r.Metrics = map[string]float64{"held_per_s": 5000 * jitter, "app_hosts": 1, "store_nodes": 1}
				}
				r.Run.Started = began.Add(time.Duration(10*(3*block+i)) * time.Second)
				r.Run.Store = result.Store{Driver: v.Name(), Durability: "D3"}
				r.Validity.Valid = true
				change(v.Name(), block, &r)
				with.Runs = append(with.Runs, &r)
			}
			one.Variants = append(one.Variants, with)
		}
		m.Tables = append(m.Tables, one)
	}
	judged, v := matrix.Judge(m, nil)
	return result.MatrixSummary{Envelope: result.Envelope{Validity: v}, Matrix: judged}
}

func TestMatrix_AnswersWhichVariantCarriesTheRate(t *testing.T) {
	t.Parallel()
	const few = "Not ranked: highest rate held (1 run of each)."
	for name, tt := range map[string]struct {
		searches, repeats int
		change            func(store string, block int, r *result.MatrixRun)
		headline, lead    string
		row               string // of pebble
	}{
		"none differ": {
			5, 5, func(string, int, *result.MatrixRun) {},
			"held in every run by all 3", "No difference seen: highest rate held, p99, CPU per saga, writes per saga, memory.",
			`5,005 \(5,000–5,010\)  5 of 5  9.01 \(9.00–9.02\)  100  4.00 KiB  0.5  100 MiB  1  1`,
		},
		"all hold, pebble is best": {
			5, 5, func(store string, _ int, r *result.MatrixRun) {
				if store == "pebble" {
					r.Metrics["held_per_s"] *= 2
					r.Metrics["cpu_us"] /= 2
				}
			},
			"held in every run by all 3", "Highest rate held: pebble. Lowest CPU per saga: pebble. No difference seen: p99, writes per saga, memory.",
			`10,010 \(10,000–10,020\)  5 of 5  .*`,
		},
		"one fails, two share the lead": {
			1, 3, func(store string, block int, r *result.MatrixRun) {
				if store == "mysql" {
					r.Metrics["cpu_us"] *= 3
				}
				if store == "pebble" && block == 1 {
					r.Metrics["slo_met"], r.Metrics["p99_ms"] = 0, 80
				}
			},
			"held in every run by redis and mysql, in fewer by pebble (2 of 3)",
			"Lowest CPU per saga: pebble or redis (no difference seen between them). No difference seen: p99, writes per saga, memory. " + few,
			`5,000 \(1 run\)  2 of 3  9.02 \(9.00–80.0\)  .*`,
		},
		"one run is overloaded": {
			5, 5, func(store string, block int, r *result.MatrixRun) {
				if store == "pebble" && block == 1 {
					r.Metrics["slo_met"] = 0
					delete(r.Metrics, "p99_ms")
				}
			},
			"held in every run by redis and mysql, in fewer by pebble (4 of 5)",
			"No difference seen: highest rate held, CPU per saga, writes per saga, memory. Not ranked: p99 (not measured in every run).",
			`5,005 \(5,000–5,010\)  4 of 5  9.00 \(4 of 5 runs\)  .*`,
		},
		"one run, and a search that cannot tell": {
			1, 1, func(store string, _ int, r *result.MatrixRun) {
				if _, search := r.Metrics["held_per_s"]; search && store == "pebble" {
					r.Metrics, r.Validity = map[string]float64{}, result.Validity{Because: []string{"cannot tell here: the machine is too uneven"}}
				}
			},
			"held in every run by all 3", "Not ranked: highest rate held, p99, CPU per saga, writes per saga, memory (1 run of each).",
			`cannot tell  1 of 1  9.00  100  4.00 KiB  0.5  100 MiB  –  –`,
		},
		"no rate is held": {
			3, 3, func(_ string, _ int, r *result.MatrixRun) {
				r.Metrics["slo_met"] = 0
				if _, search := r.Metrics["held_per_s"]; search {
					r.Metrics = map[string]float64{"held_per_s": 0}
				}
			},
			"held in every run by none: pebble (0 of 3), redis (0 of 3) and mysql (0 of 3)",
			"No difference seen: p99, CPU per saga, writes per saga, memory. Not ranked: highest rate held (fewer than two to compare).",
			`none held  0 of 3  .*`,
		},
		"durability differs": {
			3, 3, func(store string, _ int, r *result.MatrixRun) {
				if store == "redis" {
					r.Run.Store.Durability = "D2"
				}
			},
			"held in every run by all 3",
			"Not ranked: highest rate held, p99, CPU per saga, writes per saga, memory (mismatched durability: pebble is D3; redis is D2; mysql is D3).",
			`5,005 .*`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Matrix(asked(t, tt.searches, tt.repeats, tt.change))
			require.Equal(t, "Which store at 2,000 sagas/s, p99 ≤ 50 ms, D3: "+tt.headline, d.Headline)
			require.Equal(t, tt.lead, d.Lead[0])
			first := d.Parts[0]
			require.Equal(t, "store", first.Table.Corner)
			require.Equal(t, "pebble", first.Table.Rows[0].Name)
			require.Regexp(t, "^"+tt.row+"$", strings.Join(first.Table.Rows[0].Cells, "  "))
			for _, p := range d.Parts[1:] {
				require.True(t, p.Detail || p.Table == nil, "%s is on the first screen", p.Title)
			}
			var out bytes.Buffer
			require.NoError(t, document.Text(&out, d.Brief("out")))
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, len([]rune(line)), 111, line)
			}
		})
	}
}
