package matrix

import (
	"cmp"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
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

// tableHeadline names the winner by each metric, in all rows together if there are several.
// same reports that no difference is seen.
func tableHeadline(t result.MatrixTable) (text string, same bool) {
	if t.Measure == string(MeasureCrash) {
		return lostNothing(t), false
	}
	var ranked result.MatrixGroup
	switch {
	case len(t.Groups) == 1:
		ranked = t.Groups[0]
	case t.Overall != nil:
		ranked = *t.Overall
	case len(t.Groups) > 1:
		return "not ranked, see the warnings", false
	}
	var won, equal, varied, not, why []string
	for _, v := range ranked.Verdicts {
		metric, _ := t.Metric(v.Metric)
		switch {
		case metric.Detail, v.Metric == "achieved_per_s" && t.Set[KeyRate] != "": // all have the same
		case len(v.Best) > 0:
			won = append(won, metric.Label+": "+strings.Join(v.Best, " or "))
		case v.Text == NoDifference:
			equal = append(equal, metric.Label)
		case v.Text == tooVaried:
			varied = append(varied, metric.Label)
		default:
			not, why = append(not, metric.Label), append(why, v.Text)
		}
	}
	same = len(won) == 0 && len(varied) == 0 && len(not) == 0 && len(equal) > 0
	if len(won) > 0 {
		won[0] = "best " + won[0]
	}
	if len(equal) > 0 {
		won = append(won, NoDifference+" in "+strings.Join(equal, ", "))
	}
	if len(varied) > 0 {
		won = append(won, "cannot tell in "+strings.Join(varied, ", ")+" (the runs vary too much)")
	}
	switch {
	case len(not) > 0 && len(won) == 0 && ranked.NotRanked == "" && len(slices.Compact(why)) == 1:
		won = []string{"not ranked (" + why[0] + ")"}
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
	return "nothing lost in any crash: " + cmp.Or(strings.Join(safe, " and "), "none of the variants")
}
