package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/internal/format"
)

// Headline says for each table what is best.
func Headline(tables []result.MatrixTable) string {
	var texts []string
	allSame := true
	for _, t := range tables {
		text, same := tableHeadline(t)
		if len(tables) > 1 && text != "" && t.Measure != string(MeasureCrash) {
			text = t.Name + ": " + text
		}
		if allSame = allSame && same; text != "" {
			texts = append(texts, text)
		}
	}
	switch {
	case len(texts) == 0:
		return "nothing is ranked"
	case allSame && len(texts) > 1:
		return NoDifference
	}
	return strings.Join(texts, "; ")
}

// tableHeadline names the winner by each metric. If a table has several groups, it counts
// them instead. same reports that no difference is seen.
func tableHeadline(t result.MatrixTable) (text string, same bool) {
	switch {
	case t.Measure == string(MeasureCrash):
		return lostNothing(t), false
	case len(t.Groups) != 1:
		return countWins(t)
	}
	var won, equal, not []string
	for _, v := range t.Groups[0].Verdicts {
		metric := t.Metrics[slices.IndexFunc(t.Metrics, func(m result.MatrixMetric) bool { return m.Key == v.Metric })]
		switch {
		case metric.Detail, v.Metric == "achieved_per_s" && t.Set[KeyRate] != "": // all have the same
		case len(v.Best) > 0:
			won = append(won, metric.Label+": "+strings.Join(v.Best, " or "))
		case v.Text == NoDifference:
			equal = append(equal, metric.Label)
		default:
			not = append(not, metric.Label)
		}
	}
	same = len(won) == 0 && len(not) == 0 && len(equal) > 0
	if len(won) > 0 {
		won[0] = "best " + won[0]
	}
	if len(equal) > 0 {
		won = append(won, NoDifference+" in "+strings.Join(equal, ", "))
	}
	switch {
	case len(not) > 0 && len(won) == 0:
		won = []string{"not ranked, see the warnings"}
	case len(not) > 0:
		won = append(won, "not ranked by "+strings.Join(not, ", "))
	}
	return strings.Join(won, "; "), same
}

// lostNothing names the values of the first axis of a table of crashes for which no crash
// lost an acknowledged saga.
func lostNothing(t result.MatrixTable) string {
	var safe []string
	for _, name := range t.Axes[0].Values {
		if !slices.ContainsFunc(t.Variants, func(v result.MatrixVariant) bool {
			lost, measured := v.Figures["lost"]
			return v.Names[0] == name && (!measured || lost.High > 0)
		}) {
			safe = append(safe, name)
		}
	}
	return "nothing lost in any crash: " + cmp.Or(strings.Join(safe, ", "), "none of the variants")
}

// countWins counts the rows in which a value is best. same reports that there is none.
func countWins(t result.MatrixTable) (text string, same bool) {
	wins, order, rows := map[string]int{}, []string{}, 0
	for _, g := range t.Groups {
		for _, v := range g.Verdicts {
			rows++
			if len(v.Best) == 1 {
				if wins[v.Best[0]]++; wins[v.Best[0]] == 1 {
					order = append(order, v.Best[0])
				}
			}
		}
	}
	switch {
	case rows == 0:
		return "", true
	case len(order) == 0:
		return fmt.Sprintf("%s in %s", NoDifference, format.Plural(rows, "row")), true
	}
	slices.SortStableFunc(order, func(a, b string) int { return wins[b] - wins[a] })
	var texts []string
	for _, name := range order {
		texts = append(texts, fmt.Sprintf("%s best in %d", name, wins[name]))
	}
	return fmt.Sprintf("%s of %s", strings.Join(texts, ", "), format.Plural(rows, "row")), false
}
