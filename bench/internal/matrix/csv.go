package matrix

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sagabench/bench/internal/result"
)

// WriteTables writes NAME.csv for each table into the directory.
func WriteTables(dir string, m result.Matrix) error {
	for _, t := range m.Tables {
		if err := result.WriteFile(dir, t.Name+".csv", func(w io.Writer) error { return WriteCSV(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// WriteCSV writes a table with a row for each variant, and the median, the lowest and the
// highest run of each metric.
func WriteCSV(w io.Writer, t result.MatrixTable) error {
	const digits = 12 // all that a measurement has, without 0.30000000000000004
	var head []string
	for _, a := range t.Axes {
		head = append(head, a.Name)
	}
	head = append(head, "store_version", "durability", "cpu_limit", "runs", "failed")
	for _, m := range t.Metrics {
		head = append(head, m.Key, m.Key+"_low", m.Key+"_high")
	}
	rows := [][]string{head}
	for _, v := range t.Variants {
		row := append(slices.Clone(v.Names), strings.TrimSpace(v.Store.Driver+" "+v.Store.Version), v.Store.Durability, v.CPULimit, strconv.Itoa(len(v.Runs)), v.Failed)
		for _, m := range t.Metrics {
			f, ok := v.Figures[m.Key]
			for _, x := range []float64{f.Median, f.Low, f.High} {
				cell := ""
				if ok {
					cell = strconv.FormatFloat(x, 'g', digits, 64)
				}
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	out := csv.NewWriter(w)
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	return nil
}
