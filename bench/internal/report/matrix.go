package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/picture"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
	"sagabench/store"
)

// Matrix lays out tables of variants.
func Matrix(s result.MatrixSummary) document.Document {
	m := s.Matrix
	d := document.Document{
		Title:    m.Title,
		Verdict:  s.Validity.Verdict(),
		Headline: m.Title + ": " + matrix.Headline(m.Tables),
		Lead:     classLine(m),
		Command:  s.Run.Command,
		Again:    again,
	}
	whole := answerOf(m)
	if whole != nil {
		others := slices.DeleteFunc(slices.Clone(m.Tables), whole.has)
		d.Headline = m.Title + " at " + whole.demand() + ": " + whole.carried()
		d.Lead = slices.Concat(whole.verdicts(), d.Lead)
		if len(others) > 0 {
			d.Lead = append(d.Lead, "Others: "+matrix.Headline(others)+".")
		}
		d.Parts = append(d.Parts, whole.part())
	}
	var details []document.Part
	for _, t := range m.Tables {
		parts := matrixTable{t}.parts()
		for i := range parts {
			parts[i].Detail = parts[i].Detail || whole.has(t)
		}
		for _, p := range picture.Matrix(t) {
			parts = append(parts, *detail(&p))
		}
		// Pictures come before the tables that are details.
		slices.SortStableFunc(parts, func(a, b document.Part) int { return partOrder(a) - partOrder(b) })
		d.Parts = append(d.Parts, parts...)
		details = append(details, present(
			detail(tablePart(t.Title+": each figure", matrixTable{t}.figures())),
			detail(tablePart(t.Title+": ratios", matrixTable{t}.ratios())),
			detail(tablePart(t.Title+": variants", matrixTable{t}.variants())))...)
	}
	d.Parts = append(d.Parts, document.Part{Title: "Method", Text: method(m)})
	d.Parts = append(d.Parts, present(because(s.Validity), warnings(s.Validity), notes(s.Validity))...)
	d.Parts = append(d.Parts, details...)
	d.Parts = append(d.Parts, present(
		detail(factsPart("Environment", environmentFacts(s.Run, s.Environment))),
		detail(factsPart("Run", matrixFacts(s))))...)
	return d
}

func partOrder(p document.Part) int {
	switch {
	case !p.Detail:
		return 0
	case p.Chart != nil:
		return 1
	}
	return 2
}

func matrixFacts(s result.MatrixSummary) (f facts) {
	f = runFacts(s.Run, "")
	f.add("variant file", s.Matrix.File+", SHA-256 "+s.Matrix.Hash)
	f.add("order", "drawn from seed "+strconv.FormatUint(s.Matrix.Seed, 10))
	return f
}

// classLine returns a line about the durability, if it is the same everywhere.
func classLine(m result.Matrix) []string {
	var classes []string
	for _, t := range m.Tables {
		for _, v := range t.Variants {
			if len(v.Runs) > 0 && !slices.Contains(classes, v.Store.Durability) {
				classes = append(classes, v.Store.Durability)
			}
		}
	}
	if len(classes) == 1 {
		if d, ok := store.ParseDurability(classes[0]); ok {
			return []string{fmt.Sprintf("All at durability %s: %s.", d, store.Settings{Durability: d}.Meaning())}
		}
	}
	return nil
}

// method says how the runs were made and compared.
func method(m result.Matrix) []string {
	fewest, runs := 0, 0
	for _, t := range m.Tables {
		for _, v := range t.Variants {
			runs += len(v.Runs)
		}
		if t.Compare != "" && t.Repeats >= compare.LeastPairs && (fewest == 0 || t.Repeats < fewest) {
			fewest = t.Repeats
		}
	}
	line := fmt.Sprintf("%s in blocks, each in random order.", format.Plural(runs, "run"))
	if fewest > 0 {
		line += " The best is named only where the interval of a ratio excludes 1: among equal variants in at most 1 of 20 tables."
	}
	if fewest > 0 && fewest < compare.MinPairs {
		line += fmt.Sprintf(" With %s of each only large differences are seen.", format.Plural(fewest, "run"))
	}
	return []string{line}
}

// matrixTable renders the parts of a table.
type matrixTable struct{ result.MatrixTable }

// parts returns one table with a row for each metric. If there are several groups, it
// returns a table for each metric, with a row for each group.
func (t matrixTable) parts() (parts []document.Part) {
	title := t.Title
	if set := t.conditions(); set != "" {
		title += " (" + set + ")"
	}
	along := t.along()
	switch {
	case len(t.Metrics) == 0:
		return []document.Part{{Title: title, Text: []string{"No valid run: see the warnings."}}}
	case along < 0:
		return present(tablePart(title, t.byVariant()))
	}
	var columns []string
	for _, value := range t.Axes[along].Values {
		columns = append(columns, picture.ValueName(t.Axes[along].Name, value))
	}
	if len(t.Groups) == 1 {
		table := &document.Table{Columns: append(columns, "best")}
		for _, m := range t.Metrics {
			if !m.Detail {
				r := t.row(m.Heading(), t.Groups[0], along, m)
				r.Cells = append(r.Cells, verdictOn(t.Groups[0], m.Key).Text)
				table.Rows = append(table.Rows, r)
			}
		}
		return present(tablePart(title, table))
	}
	first := 0 // that is ranked
	if len(t.Groups) > 0 && len(t.Groups[0].Verdicts) > 0 {
		first = slices.IndexFunc(t.Metrics, func(m result.MatrixMetric) bool { return m.Key == t.Groups[0].Verdicts[0].Metric })
	}
	for i, m := range t.Metrics {
		table := &document.Table{Columns: columns}
		judged := slices.ContainsFunc(t.Groups, func(g result.MatrixGroup) bool { return verdictOn(g, m.Key).Text != "" })
		if judged {
			table.Columns = append(slices.Clone(columns), "best")
		}
		for _, g := range t.Groups {
			r := t.row(t.whereName(g, along), g, along, m)
			if judged {
				r.Cells = append(r.Cells, verdictOn(g, m.Key).Text)
			}
			table.Rows = append(table.Rows, r)
		}
		if judged && t.Overall != nil && verdictOn(*t.Overall, m.Key).Text != "" {
			table.Rows = append(table.Rows, t.overall(along, m.Key))
		}
		part := tablePart(title+": "+m.Heading(), table)
		if i != first {
			detail(part)
		}
		parts = append(parts, present(part)...)
	}
	return parts
}

// along is the index of the compared axis, or -1.
func (t matrixTable) along() int {
	return slices.IndexFunc(t.Axes, func(a result.MatrixAxis) bool { return a.Name == t.Compare })
}

// conditions lists what all variants have in common.
func (t matrixTable) conditions() string {
	var list []string
	for _, key := range []string{"rate", "slo", "hold", "in_flight", "duration", "durability"} {
		if value := t.Set[key]; value != "" {
			list = append(list, strings.ReplaceAll(key, "_", " ")+" "+value)
		}
	}
	return strings.Join(list, ", ")
}

// row has the figures of a group by one metric.
func (t matrixTable) row(name string, g result.MatrixGroup, along int, m result.MatrixMetric) document.Row {
	r := document.Row{Name: name}
	for _, value := range t.Axes[along].Values {
		r.Cells = append(r.Cells, t.cell(slices.Insert(slices.Clone(g.Where), along, value), m))
	}
	return r
}

// overall has the ratios of all ranked rows together to the first value.
func (t matrixTable) overall(along int, metric string) document.Row {
	rows := format.Plural(len(t.Overall.Where), "row")
	if len(t.Overall.Where) < len(t.Groups) {
		rows = fmt.Sprintf("%d of %s", len(t.Overall.Where), format.Plural(len(t.Groups), "row"))
	}
	verdict := verdictOn(*t.Overall, metric)
	r := document.Row{Name: rows + " together, ratio"}
	first := verdict.Pairs[0].A
	for _, value := range t.Axes[along].Values {
		cell := format.Unknown
		if i := slices.IndexFunc(verdict.Pairs, func(p result.MatrixPair) bool { return p.A == first && p.B == value }); value == first {
			cell = "1"
		} else if i >= 0 && verdict.Pairs[i].Ratio > 0 {
			cell = format.Ratio(verdict.Pairs[i].Ratio)
		}
		r.Cells = append(r.Cells, cell)
	}
	r.Cells = append(r.Cells, verdict.Text)
	return r
}

// name is that of a variant.
func (t matrixTable) name(v result.MatrixVariant) string {
	var names []string
	for i, value := range v.Names {
		names = append(names, picture.ValueName(t.Axes[i].Name, value))
	}
	return strings.Join(names, ", ")
}

// whereName names the values that the variants of a group have in common.
func (t matrixTable) whereName(g result.MatrixGroup, along int) string {
	common := t
	common.Axes = slices.Delete(slices.Clone(t.Axes), along, along+1)
	return common.name(result.MatrixVariant{Names: g.Where})
}

// verdictOn returns the verdict of a group by one metric, which is empty if there is none.
func verdictOn(g result.MatrixGroup, metric string) (v result.MatrixVerdict) {
	if i := slices.IndexFunc(g.Verdicts, func(v result.MatrixVerdict) bool { return v.Metric == metric }); i >= 0 {
		v = g.Verdicts[i]
	}
	return v
}

// cell writes the median of a variant.
func (t matrixTable) cell(names []string, m result.MatrixMetric) string {
	v := t.Variants[slices.IndexFunc(t.Variants, func(v result.MatrixVariant) bool { return slices.Equal(v.Names, names) })]
	f, ok := v.Figures[m.Key]
	switch {
	case !ok:
		return t.absent(v, m.Key)
	case m.Unit == "yes":
		return inRuns(f.Runs, len(v.Runs))
	case m.Key == heldKey && f.Median == 0:
		return noneHeld
	case t.Measure == string(matrix.MeasureCrash) && f.Low < f.High: // a crash is as bad as its worst moment
		return figure(f.Low, m.Unit) + " to " + figure(f.High, m.Unit)
	case len(f.Runs) < len(v.Runs): // an overloaded run has no percentiles: the others are the good ones
		return fmt.Sprintf("%s (%d of %d runs)", figure(f.Median, m.Unit), len(f.Runs), len(v.Runs))
	}
	return figure(f.Median, m.Unit)
}

const noneHeld = "none held"

// absent says why a variant lacks a metric, if it is its main one.
func (t matrixTable) absent(v result.MatrixVariant, key string) string {
	switch {
	case len(v.Runs) == 0 && v.Failed != "":
		return "failed"
	case len(v.Runs) == 0 || key != heldKey && key != metKey:
		return format.Unknown
	case len(v.Invalid) > 0 && strings.Contains(v.Invalid[0], "cannot tell"):
		return "cannot tell"
	case len(v.Invalid) > 0:
		return "not valid"
	case key == heldKey:
		return noneHeld
	}
	return format.Unknown
}

// inRuns says in how many of n runs a figure is yes.
func inRuns(valid []float64, n int) string {
	yes := 0
	for _, x := range valid {
		yes += int(x)
	}
	return fmt.Sprintf("%d of %d", yes, n)
}

func figure(x float64, unit string) string {
	switch unit {
	case "bytes":
		return format.Bytes(x)
	case "share":
		return format.Percent(x)
	case "yes":
		return cmp.Or(map[float64]string{0: "no", 1: "yes"}[x], format.Unknown)
	case "":
		return format.Short(result.Round(x))
	}
	return format.Number(x)
}

// byVariant has a row for each variant and a column for each metric. It names the
// durability if that differs.
func (t matrixTable) byVariant() *document.Table {
	table := &document.Table{}
	classes := slices.ContainsFunc(t.Variants, func(v result.MatrixVariant) bool { return v.Store.Durability != t.Variants[0].Store.Durability })
	if classes {
		table.Columns = append(table.Columns, "durability")
	}
	for _, m := range t.Metrics {
		if !m.Detail {
			table.Columns = append(table.Columns, m.Heading())
		}
	}
	for _, v := range t.Variants {
		r := document.Row{Name: t.name(v)}
		if classes {
			r.Cells = append(r.Cells, cmp.Or(v.Store.Durability, format.Unknown))
		}
		for _, m := range t.Metrics {
			if !m.Detail {
				r.Cells = append(r.Cells, t.cell(v.Names, m))
			}
		}
		table.Rows = append(table.Rows, r)
	}
	return table
}

// figures has each metric of each variant with its lowest and highest run.
func (t matrixTable) figures() *document.Table {
	table := &document.Table{Columns: []string{"metric", "median", "lowest", "highest", "runs"}}
	for _, v := range t.Variants {
		for _, m := range t.Metrics {
			if f, ok := v.Figures[m.Key]; ok {
				table.Rows = append(table.Rows, document.Row{Name: t.name(v), Cells: []string{
					m.Heading(), figure(f.Median, m.Unit), figure(f.Low, m.Unit), figure(f.High, m.Unit), format.Count(len(f.Runs)),
				}})
			}
		}
	}
	return table
}

// ratios has the intervals that the verdicts are from.
func (t matrixTable) ratios() *document.Table {
	table := &document.Table{Columns: []string{"metric", "ratio", "from", "to"}}
	along := t.along()
	groups := t.Groups
	if t.Overall != nil {
		groups = append(slices.Clone(groups), result.MatrixGroup{Where: []string{"together"}, Verdicts: t.Overall.Verdicts})
	}
	for _, g := range groups {
		for _, v := range g.Verdicts {
			metric, _ := t.Metric(v.Metric)
			for _, p := range v.Pairs {
				table.Rows = append(table.Rows, document.Row{
					Name: strings.TrimPrefix(t.whereName(g, along)+", "+p.B+" / "+p.A, ", "),
					Cells: []string{
						metric.Label, format.Ratio(p.Ratio), format.Optional(p.Low, format.Ratio), format.Optional(p.High, format.Ratio),
					},
				})
			}
		}
	}
	return table
}

// variants has what each variant is.
func (t matrixTable) variants() *document.Table {
	table := &document.Table{Columns: []string{"store", "durability", "CPU limit", "runs", "not valid"}}
	for _, v := range t.Variants {
		table.Rows = append(table.Rows, document.Row{Name: t.name(v), Cells: []string{
			strings.TrimSpace(v.Store.Driver+" "+v.Store.Version) + v.Store.Nodes(), cmp.Or(v.Store.Durability, format.Unknown), cmp.Or(v.CPULimit, format.Unknown), format.Count(len(v.Runs)), strings.Join(v.Invalid, "; "),
		}})
	}
	return table
}
