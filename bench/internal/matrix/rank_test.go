package matrix_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/redisops"
	"sagabench/bench/internal/result"
	"sagabench/internal/race"
)

// noisy returns metrics that vary by so much from run to run, times a factor of the variant.
func noisy(rng *rand.Rand, factor map[string]float64) func(matrix.Job) map[string]float64 {
	return func(job matrix.Job) map[string]float64 {
		metrics := map[string]float64{}
		// In a fixed order, so that a seed makes the same figures each time.
		for _, of := range []struct {
			key   string
			noise float64
		}{
			{"achieved_per_s", 0.1}, {"p99_ms", 0.3}, {"cpu_us", 0.03}, {"store_cpu_us", 0.03}, {"store_bytes_written", 0.02}, {"memory_bytes", 0.05},
		} {
			key, noise := of.key, of.noise
			x := 100 * math.Exp(noise*rng.NormFloat64())
			if f, ok := factor[job.Variant.Name()]; ok && key == "cpu_us" {
				x *= f
			}
			metrics[key] = x
		}
		return metrics
	}
}

func verdictOf(t *testing.T, m result.Matrix, metric string) result.MatrixVerdict {
	t.Helper()
	for _, v := range m.Tables[0].Groups[0].Verdicts {
		if v.Metric == metric {
			return v
		}
	}
	t.Fatal("no verdict on " + metric)
	return result.MatrixVerdict{}
}

func TestJudge_NamesAWinnerWhereIntervalsPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		repeats int
		factor  map[string]float64
		best    []string
		text    string
	}{
		{5, map[string]float64{"a": 2, "c": 3}, []string{"b"}, "b"},
		{5, map[string]float64{"c": 3}, []string{"a", "b"}, "one of a, b"},
		{5, nil, nil, matrix.NoDifference},
		{3, map[string]float64{"a": 4, "c": 5}, []string{"b"}, "b (3 runs each)"},
		{2, map[string]float64{"a": 4, "c": 5}, nil, "too few runs"},
	} {
		f := &fake{metrics: noisy(rand.New(rand.NewPCG(1, 2)), tt.factor)}
		m, err := matrix.Run(t.Context(), config(t, f, abc, tt.repeats))
		require.NoError(t, err)
		judged, v := matrix.Judge(m, nil)
		require.True(t, v.Valid)
		got := verdictOf(t, judged, "cpu_us")
		require.Equal(t, tt.text, got.Text)
		if tt.repeats == 2 {
			require.Equal(t, "not ranked (too few runs)", matrix.Headline(judged.Tables))
		}
		require.Equal(t, tt.best, got.Best)
		require.Len(t, got.Pairs, 3)
		require.InDelta(t, 1-0.02/18, got.Pairs[0].Confidence, 1e-9, "six metrics of three pairs share 2%")
	}
}

func TestJudge_SaysWhyThereIsNoInterval(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	f := &fake{metrics: func(matrix.Job) map[string]float64 {
		return map[string]float64{"store_bytes_written": 0, "p99_ms": math.Exp(10 * rng.NormFloat64())}
	}}
	m, err := matrix.Run(t.Context(), config(t, f, abc, 3))
	require.NoError(t, err)
	judged, _ := matrix.Judge(m, nil)
	require.Equal(t, "no ratio: it was 0 in some runs", verdictOf(t, judged, "store_bytes_written").Text)
	require.Equal(t, "cannot tell: the runs vary too much", verdictOf(t, judged, "p99_ms").Text)
	require.Equal(t, "cannot tell in p99 (the runs vary too much); not ranked by written to disk per saga", matrix.Headline(judged.Tables))
}

// An overloaded run has no percentiles, so those of the other runs say less than they seem to.
func TestJudge_RanksByWhatEveryRunHas(t *testing.T) {
	t.Parallel()
	all := noisy(rand.New(rand.NewPCG(1, 2)), map[string]float64{"a": 2, "c": 3})
	f := &fake{metrics: func(job matrix.Job) map[string]float64 {
		metrics := all(job)
		if metrics["p99_ms"] = 10 + 0.01*float64(job.Block); job.Variant.Name() == "a" {
			metrics["p99_ms"] /= 5
			if job.Block == 4 {
				delete(metrics, "p99_ms")
			}
		}
		return metrics
	}}
	m, err := matrix.Run(t.Context(), config(t, f, abc, 5))
	require.NoError(t, err)
	judged, _ := matrix.Judge(m, nil)
	got := verdictOf(t, judged, "p99_ms")
	require.Equal(t, "not measured in every run", got.Text)
	require.Empty(t, got.Best)
	require.InDelta(t, 5, got.Pairs[0].Ratio, 0.01, "the ratio of the blocks that have it is there")
	require.Equal(t, []string{"b"}, verdictOf(t, judged, "cpu_us").Best)
}

// The latencies of a program that counts from another moment are shown, and not judged.
func TestJudge_ComparesNoLatenciesOfDifferentClocks(t *testing.T) {
	t.Parallel()
	file, err := matrix.Parse("test.yml", []byte(`title: Test
tables:
  - name: clients
    title: Clients
    measure: operation
    repeats: 5
    axes:
      - {name: operation, values: [SET, GET]}
      - {name: client, values: [redis-benchmark, go-redis, rueidis]}
    compare: client
  - name: operations
    title: Operations
    measure: operation
    repeats: 5
    axes:
      - {name: client, values: [redis-benchmark, go-redis]}
      - {name: operation, values: [SET, GET]}
    compare: operation
`))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	f := &fake{
		metrics: func(job matrix.Job) map[string]float64 {
			x := 1 + 0.01*rng.Float64()
			if job.Variant.Values[matrix.KeyClient] == "redis-benchmark" {
				x /= 2
			}
			return map[string]float64{"p50_ms": x, "server_cpu_us": x}
		},
		change: func(job matrix.Job, r *result.MatrixRun) error {
			r.LatencyFrom = redisops.LatencyFrom(job.Variant.Values[matrix.KeyClient])
			return nil
		},
	}
	m, err := matrix.Run(t.Context(), matrix.Config{
		File: file, Dir: filepath.Join(t.TempDir(), "out"), Runners: map[matrix.Measure]matrix.Runner{matrix.MeasureOperation: f.run},
	})
	require.NoError(t, err)
	judged, v := matrix.Judge(m, nil)
	clients, operations := judged.Tables[0], judged.Tables[1]
	for _, g := range append(clients.Groups, *clients.Overall) {
		latency, cpu := g.Verdicts[0], g.Verdicts[1]
		require.Equal(t, []string{"p50_ms", "server_cpu_us"}, []string{latency.Metric, cpu.Metric})
		require.Len(t, latency.Pairs, 1)
		require.Equal(t, matrix.NoDifference, latency.Text)
		require.Equal(t, []string{"redis-benchmark"}, cpu.Best)
	}
	require.Positive(t, clients.Variants[0].Figures["p50_ms"].Median, "it is shown")
	for _, g := range append(operations.Groups, *operations.Overall) {
		require.Len(t, g.Verdicts, 2, "all in a row count from the same moment")
		require.Len(t, g.Verdicts[0].Pairs, 1)
	}
	require.Len(t, operations.Overall.Where, 2)
	require.Equal(t, []string{"clients: the latencies of redis-benchmark are not judged against those of the others: they count from the write of a request, the others from before it"}, v.Notes)
}

func TestJudge_RanksNobodyWithoutTheSameDurabilityAndValidRuns(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(matrix.Job, *result.MatrixRun){
		"mismatched durability: a is D3; b is D2; c is D3": func(job matrix.Job, r *result.MatrixRun) {
			if job.Variant.Name() == "b" {
				r.Run.Store.Durability = "D2"
			}
		},
		"mismatched durability: a is unknown; b is unknown; c is unknown": func(_ matrix.Job, r *result.MatrixRun) { r.Run.Store.Durability = "" },
		"c: run 2 is not valid: the load generator was late": func(job matrix.Job, r *result.MatrixRun) {
			if job.Variant.Name() == "c" && job.Block == 2 {
				r.Validity = result.Validity{Because: []string{"the load generator was late"}}
			}
		},
		"a: run 4 has durability D1, the first D3": func(job matrix.Job, r *result.MatrixRun) {
			if job.Variant.Name() == "a" && job.Block == 4 {
				r.Run.Store.Durability = "D1"
			}
		},
	} {
		f := &fake{
			metrics: noisy(rand.New(rand.NewPCG(1, 2)), map[string]float64{"a": 2, "c": 3}),
			change:  func(job matrix.Job, r *result.MatrixRun) error { change(job, r); return nil },
		}
		m, err := matrix.Run(t.Context(), config(t, f, abc, 5))
		require.NoError(t, err)
		judged, v := matrix.Judge(m, nil)
		require.True(t, v.Valid)
		require.Equal(t, want, judged.Tables[0].Groups[0].NotRanked)
		require.Regexp(t, "^not ranked: sagas[,:] "+want, v.Warnings[0])
		got := verdictOf(t, judged, "cpu_us")
		require.Empty(t, got.Best)
		require.Equal(t, "not ranked", got.Text)
	}
}

// A variant under several names is called better than itself in at most one table of
// twenty, whatever else the machine does.
func TestJudge_NamesNoWinnerAmongTheSame(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const tables = 60
	for name, machine := range map[string]func(rng *rand.Rand) func(variant string) float64{
		"quiet": func(*rand.Rand) func(string) float64 { return func(string) float64 { return 1 } },
		"drift": func(*rand.Rand) func(string) float64 {
			x := 1.0
			return func(string) float64 { x *= 1.02; return x }
		},
		"phases": func(rng *rand.Rand) func(string) float64 {
			x := 0.0
			return func(string) float64 { x = 0.8*x + 0.05*rng.NormFloat64(); return math.Exp(x) }
		},
		"stalls": func(rng *rand.Rand) func(string) float64 {
			return func(string) float64 {
				if rng.IntN(10) == 0 {
					return 1.5
				}
				return 1
			}
		},
		"one varies more": func(rng *rand.Rand) func(string) float64 {
			return func(variant string) float64 {
				if variant == "c" {
					return math.Exp(0.2 * rng.NormFloat64())
				}
				return 1
			}
		},
	} {
		for _, repeats := range []int{3, 5} {
			for _, rows := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s %d x %d", name, repeats, rows), func(t *testing.T) {
					t.Parallel()
					rng := rand.New(rand.NewPCG(11, uint64(repeats)))
					wrong := 0
					for table := range tables {
						of, speed := noisy(rng, nil), machine(rng)
						f := &fake{metrics: func(job matrix.Job) map[string]float64 {
							metrics, s := of(job), speed(job.Variant.Names[0])
							for key := range metrics {
								metrics[key] *= s
							}
							return metrics
						}}
						if named(simulated(t, f, repeats, rows, uint64(table+1))) {
							wrong++
						}
					}
					// Three standard errors of the simulation itself.
					require.LessOrEqual(t, float64(wrong)/tables, 0.05+3*math.Sqrt(0.05*0.95/tables))
				})
			}
		}
	}
}

// Whatever a table names, it is nothing absurd: the variant with the best median is among the
// best, and none that is excluded has a better median than one of them. Here a and b are slow,
// c and d fast.
func TestJudge_NamesNoSlowVariantBesideAFastOneThatIsExcluded(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const tables = 100
	for _, repeats := range []int{3, 5} {
		for name, noise := range map[string]map[string]float64{
			"alike":         {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1},
			"the slow more": {"a": 0.3, "b": 0.3, "c": 0.03, "d": 0.03},
			"the best more": {"a": 0.03, "b": 0.03, "c": 0.3, "d": 0.03},
		} {
			t.Run(fmt.Sprintf("%s, %d runs", name, repeats), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(5, uint64(repeats)))
				wrong, said := 0, 0
				for table := range tables {
					f := &fake{metrics: func(job matrix.Job) map[string]float64 {
						of := job.Variant.Name()
						return map[string]float64{"achieved_per_s": map[string]float64{"a": 50, "b": 55, "c": 110, "d": 100}[of] * math.Exp(noise[of]*rng.NormFloat64())}
					}}
					cfg := config(t, f, "{name: a}, {name: b}, {name: c}, {name: d}", repeats)
					judged, _ := matrix.Judge(matrix.Simulate(t, cfg, uint64(table+1)), nil)
					v := verdictOf(t, judged, "achieved_per_s")
					if len(v.Best) == 0 {
						continue
					}
					if said++; !slices.Contains(v.Best, "c") {
						wrong++
					}
					lowestNamed, highestOther := math.Inf(1), 0.0
					for _, variant := range judged.Tables[0].Variants {
						if median := variant.Figures["achieved_per_s"].Median; slices.Contains(v.Best, variant.Names[0]) {
							lowestNamed = min(lowestNamed, median)
						} else {
							highestOther = max(highestOther, median)
						}
					}
					require.GreaterOrEqual(t, lowestNamed, highestOther, v.Text)
				}
				t.Logf("%d of %d say something, %d without the best", said, tables, wrong)
				require.LessOrEqual(t, float64(wrong)/tables, 0.05)
			})
		}
	}
}

// named says whether a table names a winner anywhere.
func named(m result.Matrix) bool {
	groups := m.Tables[0].Groups
	if overall := m.Tables[0].Overall; overall != nil {
		groups = append(groups, *overall)
	}
	return slices.ContainsFunc(groups, func(g result.MatrixGroup) bool {
		return slices.ContainsFunc(g.Verdicts, func(v result.MatrixVerdict) bool { return len(v.Best) > 0 })
	})
}

// simulated judges a table of so many rows, without files.
func simulated(t *testing.T, f *fake, repeats, rows int, seed uint64) result.Matrix {
	t.Helper()
	cfg := config(t, f, abc, repeats)
	if rows > 1 {
		axis := matrix.Axis{Name: "row"}
		for row := range rows {
			axis.Values = append(axis.Values, matrix.Value{Name: fmt.Sprint(row)})
		}
		cfg.File.Tables[0].Axes = append(cfg.File.Tables[0].Axes, axis)
	}
	judged, _ := matrix.Judge(matrix.Simulate(t, cfg, seed), nil)
	return judged
}

// What no row shows alone, because each has only a few runs, all rows together may show.
func TestJudge_ComparesOverAllRows(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	f := &fake{metrics: func(job matrix.Job) map[string]float64 {
		metrics := noisy(rng, nil)(job)
		row := float64(1 + int(job.Variant.Names[1][0]-'0')) // rows differ in level
		metrics["cpu_us"] *= row
		if job.Variant.Names[0] == "c" {
			metrics["cpu_us"] *= 1.15
		}
		return metrics
	}}
	table := simulated(t, f, 3, 6, 1).Tables[0]
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, table.Overall.Where)
	i := slices.IndexFunc(table.Overall.Verdicts, func(v result.MatrixVerdict) bool { return v.Metric == "cpu_us" })
	got := table.Overall.Verdicts[i]
	require.Equal(t, "one of a, b (3 runs each)", got.Text)
	require.InDelta(t, 1-0.01/18, got.Pairs[0].Confidence, 1e-9, "half of the error is for the rows")
	aToC := got.Pairs[1]
	require.Equal(t, "c", aToC.B)
	require.InDelta(t, 1.15, aToC.Ratio, 0.03)
	require.Less(t, *aToC.Low, 1.15)
	require.Greater(t, *aToC.High, 1.15)
	require.InDelta(t, 1-0.01/108, table.Groups[0].Verdicts[0].Pairs[0].Confidence, 1e-9)
	for _, g := range table.Groups {
		require.Equal(t, matrix.NoDifference, g.Verdicts[i].Text)
	}

	// A row that is not ranked does not count, and one alone is no other than its row.
	f.change = func(job matrix.Job, r *result.MatrixRun) error {
		if job.Variant.Names[1] != "2" && job.Variant.Names[0] == "b" {
			r.Run.Store.Durability = "D1"
		}
		return nil
	}
	require.Nil(t, simulated(t, f, 3, 6, 1).Tables[0].Overall)
}
