package matrix

import (
	"context"
	"testing"
)

// Simulate makes the runs in the order that Run has, and writes nothing.
func Simulate(t *testing.T, cfg Config, seed uint64) Matrix {
	t.Helper()
	m := Matrix{}
	for _, table := range cfg.File.Tables {
		one := RunTable{Table: table}
		for _, v := range table.Variants() {
			one.Variants = append(one.Variants, RunVariant{Variant: v})
		}
		for block := 1; block <= table.Repeats; block++ {
			for i := range one.Variants {
				one.Variants[i].Runs = append(one.Variants[i].Runs, nil)
			}
			for _, i := range order(seed, table.Name, block, len(one.Variants)) {
				run, err := cfg.Runners[table.Measure](context.Background(), Job{Table: table, Variant: one.Variants[i].Variant, Block: block})
				if err != nil {
					t.Fatal(err)
				}
				one.Variants[i].Runs[block-1] = &run
			}
		}
		m.Tables = append(m.Tables, one)
	}
	return m
}
