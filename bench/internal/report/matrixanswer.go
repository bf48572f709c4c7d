package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/matrix"
	"sagabench/bench/internal/result"
	"sagabench/internal/document"
	"sagabench/internal/format"
)

// answer is a table of searches and one of sagas at a fixed rate, with the same variants.
// Together they say which variant carries the rate, and at what cost.
type answer struct {
	search, sagas matrixTable
}

// answerOf returns the first two tables that are an answer, or nil.
func answerOf(m result.Matrix) *answer {
	for _, search := range m.Tables {
		for _, sagas := range m.Tables {
			if search.Measure == string(matrix.MeasureCapacity) && sagas.Measure == string(matrix.MeasureSaga) &&
				sagas.Set[matrix.KeyRate] != "" && reflect.DeepEqual(search.Axes, sagas.Axes) {
				return &answer{matrixTable{search}, matrixTable{sagas}}
			}
		}
	}
	return nil
}

// has reports whether the table is a part of the answer.
func (a *answer) has(t result.MatrixTable) bool {
	return a != nil && (t.Name == a.search.Name || t.Name == a.sagas.Name)
}

const heldKey, metKey = "held_per_s", "slo_met"

// answerColumns are the metrics of an answer, the most important first.
var answerColumns = []struct {
	key, label string
	spread     bool // shows the lowest and the highest run, too
}{
	{heldKey, "highest rate held", true},
	{metKey, "SLO met", false},
	{"p99_ms", "p99", true},
	{"cpu_us", "CPU per saga", false},
	{"store_bytes_written", "writes per saga", false},
	{"store_fsyncs", "fsyncs per saga", false},
	{"memory_bytes", "memory", false},
	{"app_hosts", "app hosts", true},
	{"store_nodes", "store nodes", true},
}

// find returns the metric of an answer and the table that has it.
func (a *answer) find(key string) (matrixTable, matrix.Metric) {
	for _, t := range []matrixTable{a.search, a.sagas} {
		for _, m := range matrix.Metrics[matrix.Measure(t.Measure)] {
			if m.Key == key {
				return t, m
			}
		}
	}
	panic("no metric " + key)
}

// part has a line for each variant.
func (a *answer) part() document.Part {
	table := &document.Table{Corner: a.sagas.Axes[len(a.sagas.Axes)-1].Name}
	for _, v := range a.sagas.Variants {
		table.Rows = append(table.Rows, document.Row{Name: a.sagas.name(v)})
	}
	for _, c := range answerColumns {
		t, m := a.find(c.key)
		if _, measured := t.Metric(c.key); c.key != heldKey && !measured {
			continue
		}
		m.Label = c.label
		table.Columns = append(table.Columns, m.Heading())
		for i, v := range t.Variants {
			cell := t.cell(v.Names, m.MatrixMetric)
			f := v.Figures[c.key]
			switch all := len(f.Runs) == len(v.Runs); { // else the cell says how many
			case all && c.spread && f.Low < f.High:
				cell += " (" + figure(f.Low, m.Unit) + "–" + figure(f.High, m.Unit) + ")"
			case all && c.key == heldKey && len(f.Runs) == 1:
				cell += " (1 run)"
			}
			table.Rows[i].Cells = append(table.Rows[i].Cells, cell)
		}
	}
	var text []string
	for _, t := range []struct {
		matrixTable
		length string
	}{{a.search, matrix.KeyHold}, {a.sagas, matrix.KeyDuration}} {
		line := fmt.Sprintf("%s: %s of each", t.Title, format.Plural(t.Repeats, "run"))
		if length := t.Set[t.length]; length != "" {
			line += ", " + t.length + " " + length
		}
		text = append(text, line+".")
	}
	of := ""
	for _, v := range a.sagas.Variants {
		of = cmp.Or(of, v.Store.CostNote())
	}
	text = append(text, "In brackets are the lowest and the highest run. CPU and memory are those of store and app together"+of+".")
	return document.Part{Title: "At " + a.demand(), Text: []string{strings.Join(text, " ")}, Table: table}
}

// demand is the asked rate, with the service level and the durability.
func (a *answer) demand() string {
	list := []string{format.Number(matrix.Values(a.sagas.Set).Rate(matrix.KeyRate)) + " sagas/s"}
	if slo, err := result.ParseSLO(a.sagas.Set[matrix.KeySLO]); err == nil {
		list = append(list, slo.LatencyLimits())
	}
	if class := a.sagas.Set[matrix.KeyDurability]; class != "" {
		list = append(list, class)
	}
	return strings.Join(list, ", ")
}

// carried says which variants met the service level at the asked rate.
func (a *answer) carried() string {
	var met, not, unknown []string
	for _, v := range a.sagas.Variants {
		name := a.sagas.name(v)
		f, ok := v.Figures[metKey]
		switch {
		case !ok:
			unknown = append(unknown, name)
		case f.Low == 1 && len(f.Runs) == len(v.Runs):
			met = append(met, name)
		default:
			not = append(not, fmt.Sprintf("%s (%s)", name, inRuns(f.Runs, len(v.Runs))))
		}
	}
	text := "held in every run by none: " + listed(not)
	switch {
	case len(met) == 0 && len(not) == 0:
		return "nothing is known of the service level"
	case len(met) == len(a.sagas.Variants) && len(met) > 1:
		return fmt.Sprintf("held in every run by all %d", len(met))
	case len(met) > 0 && len(not) > 0:
		text = fmt.Sprintf("held in every run by %s, in fewer by %s", listed(met), listed(not))
	case len(met) > 0:
		text = "held in every run by " + listed(met)
	}
	if len(unknown) > 0 {
		text += ", not measured: " + listed(unknown)
	}
	return text
}

// verdicts names the best by each metric where there is one.
func (a *answer) verdicts() []string {
	if len(a.sagas.Groups) != 1 || len(a.search.Groups) != 1 {
		return nil
	}
	var same, sentences, reasons []string
	not := map[string][]string{} // metrics by the reason why they are not ranked
	for _, c := range answerColumns {
		t, m := a.find(c.key)
		if !m.Ranked {
			continue
		}
		verdict := verdictOn(t.Groups[0], c.key)
		switch {
		case len(verdict.Best) > 0:
			text := strings.TrimPrefix(c.label, "highest ") + ": " + strings.Join(verdict.Best, " or ")
			if len(verdict.Best) > 1 {
				text += " (no difference seen between them)"
			}
			sentences = append(sentences, map[string]string{result.Higher: "Highest ", result.Lower: "Lowest "}[m.Better]+text+".")
		case verdict.Text == matrix.NoDifference:
			same = append(same, c.label)
		default:
			why := t.notRanked(verdict)
			if not[why] = append(not[why], c.label); len(not[why]) == 1 {
				reasons = append(reasons, why)
			}
		}
	}
	if len(same) > 0 {
		sentences = append(sentences, "No difference seen: "+strings.Join(same, ", ")+".")
	}
	for _, why := range reasons {
		sentences = append(sentences, fmt.Sprintf("Not ranked: %s (%s).", strings.Join(not[why], ", "), why))
	}
	return []string{strings.Join(sentences, " ")}
}

// notRanked says briefly why a metric of the only group is not ranked.
func (t matrixTable) notRanked(v result.MatrixVerdict) string {
	why := t.Groups[0].NotRanked
	switch {
	case t.Repeats < compare.LeastPairs:
		return format.Plural(t.Repeats, "run") + " of each"
	case slices.ContainsFunc(t.Variants, func(v result.MatrixVariant) bool { return len(v.Invalid) > 0 }):
		return "see the warnings"
	case why != "":
		return why
	}
	return cmp.Or(v.Text, "fewer than two to compare")
}

// listed joins names, as in "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
