package matrix

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// tableError is the chance that a table names a winner where there is none. All its
// comparisons share it. Of more than two variants, the runs of one may vary more than those
// of the others, with which it shares a variance: with this part of the chance it holds even
// if they vary three times as much.
const (
	tableError  = 0.05
	sharedError = 0.02
)

// group is the variants that differ only along the compared axis, as indexes.
type group struct {
	where    []string
	variants []int
}

// groups returns none if nothing is compared.
func (t RunTable) groups() (groups []group) {
	along := t.axis(t.Compare)
	if along < 0 {
		return nil
	}
	for i, v := range t.Variants {
		where := others(v.Names, along)
		at := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.where, where) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{where: where})
		}
		groups[at].variants = append(groups[at].variants, i)
	}
	return groups
}

// others returns the names without that along the axis.
func others(names []string, along int) []string {
	return slices.Delete(slices.Clone(names), along, along+1)
}

// rank compares the variants of each group. If there are several groups, it also compares the
// values of the axis over all groups together.
func (t RunTable) rank(variants []result.MatrixVariant) (ranked []result.MatrixGroup, overall *result.MatrixGroup) {
	along := t.axis(t.Compare)
	groups := t.groups()
	tests, share := 0, tableError
	var together group
	for _, g := range groups {
		if len(t.ran(g, variants)) > 2 {
			share = sharedError
		}
		one := result.MatrixGroup{Where: g.where, NotRanked: notRanked(g, variants, along)}
		ranked = append(ranked, one)
		tests += t.comparisons(g, variants)
		if one.NotRanked == "" {
			together.variants = append(together.variants, g.variants...)
			together.where = append(together.where, strings.Join(g.where, ", "))
		}
	}
	if len(together.where) > 1 {
		share /= 2
		level := 1 - share/float64(max(1, t.comparisons(together, variants)))
		overall = &result.MatrixGroup{Where: together.where, Verdicts: t.verdicts(together, variants, level, "")}
	}
	level := 1 - share/float64(max(1, tests))
	for i, g := range groups {
		ranked[i].Verdicts = t.verdicts(g, variants, level, ranked[i].NotRanked)
	}
	return ranked, overall
}

// verdicts compares the variants of a group by each ranked metric that two of them have.
func (t RunTable) verdicts(g group, variants []result.MatrixVariant, level float64, notRanked string) (list []result.MatrixVerdict) {
	for _, m := range Metrics[t.Measure] {
		judged := t.judgedBy(g, m)
		if with := t.measured(judged, variants, m); m.Ranked && len(with) > 1 {
			list = append(list, t.verdict(m, with, len(t.ran(judged, variants)), level, notRanked))
		}
	}
	return list
}

// comparisons counts the pairs that the verdicts of a group compare.
func (t RunTable) comparisons(g group, variants []result.MatrixVariant) (n int) {
	for _, m := range Metrics[t.Measure] {
		if with := len(t.measured(t.judgedBy(g, m), variants, m)); m.Ranked {
			n += with * (with - 1) / 2
		}
	}
	return n
}

// contender is a value of the compared axis, with its variant in each group that has one.
type contender struct {
	name     string
	variants map[string]int // by the names of the values of the other axes
}

// rows returns the names of the groups in which it has a variant, sorted.
func (c contender) rows() []string { return slices.Sorted(maps.Keys(c.variants)) }

// contenders returns the values of the compared axis of those variants of the group.
func (t RunTable) contenders(g group, which func(variant int) bool) (list []contender) {
	along := t.axis(t.Compare)
	for _, i := range g.variants {
		if !which(i) {
			continue
		}
		names := t.Variants[i].Names
		at := slices.IndexFunc(list, func(c contender) bool { return c.name == names[along] })
		if at < 0 {
			at = len(list)
			list = append(list, contender{names[along], map[string]int{}})
		}
		list[at].variants[strings.Join(others(names, along), ", ")] = i
	}
	return list
}

func (t RunTable) ran(g group, variants []result.MatrixVariant) []contender {
	return t.contenders(g, func(i int) bool { return len(variants[i].Runs) > 0 })
}

// measured returns the contenders that have the metric. A rate of 0 has no ratio.
func (t RunTable) measured(g group, variants []result.MatrixVariant, m Metric) []contender {
	return t.contenders(g, func(i int) bool {
		f, ok := variants[i].Figures[m.Key]
		return ok && (f.High > 0 || m.Better != result.Higher)
	})
}

// notRanked says why no variant of the group is called better. Variants that did not run do
// not count.
func notRanked(g group, variants []result.MatrixVariant, along int) string {
	var classes []string
	var ran []result.MatrixVariant
	for _, i := range g.variants {
		v := variants[i]
		if len(v.Runs) == 0 {
			continue
		}
		ran = append(ran, v)
		classes = append(classes, fmt.Sprintf("%s is %s", v.Names[along], class(v.Store)))
		if len(v.Invalid) > 0 {
			return v.Names[along] + ": " + v.Invalid[0]
		}
	}
	if len(ran) < 2 {
		return "fewer than two variants ran"
	}
	for _, v := range ran {
		if v.Store.Durability == "" || v.Store.Durability != ran[0].Store.Durability {
			return "mismatched durability: " + compare.List(classes)
		}
	}
	return ""
}

// NoDifference is the verdict if no difference is seen.
const NoDifference = "no difference seen"

const notInEvery = "not measured in every run"

// lacks reports whether a valid run of one of them does not have the metric. Those that have
// it may be the good ones: an overloaded run has no percentiles.
func (t RunTable) lacks(m Metric, of []contender) bool {
	return slices.ContainsFunc(of, func(c contender) bool {
		for _, i := range c.variants {
			for _, r := range t.Variants[i].Runs {
				if r == nil || !r.Validity.Valid {
					continue
				}
				if _, ok := r.Metrics[m.Key]; !ok {
					return true
				}
			}
		}
		return false
	})
}

// verdict compares those that have the metric, of so many that ran.
func (t RunTable) verdict(m Metric, with []contender, of int, level float64, notRanked string) result.MatrixVerdict {
	v := result.MatrixVerdict{Metric: m.Key}
	better := map[[2]string]bool{} // whether the first is better than the second
	fewest, intervals := math.MaxInt, 0
	fit := t.fit(m, with)
	for k, a := range with {
		for _, b := range with[k+1:] {
			pair := t.pair(m, a, b, fit, level)
			v.Pairs = append(v.Pairs, pair.MatrixPair)
			fewest = min(fewest, pair.blocks)
			if pair.Low == nil {
				continue
			}
			intervals++
			if parts := *pair.Low > 1 || *pair.High < 1; !parts || math.Abs(pair.Ratio-1) < compare.Named {
				continue
			}
			if bIsBetter := (pair.Ratio > 1) == (m.Better == result.Higher); bIsBetter {
				better[[2]string{b.name, a.name}] = true
			} else {
				better[[2]string{a.name, b.name}] = true
			}
		}
	}
	switch {
	case notRanked != "":
		v.Text = "not ranked"
		return v
	case t.lacks(m, with):
		v.Text = notInEvery
		return v
	case intervals == 0:
		v.Text = noInterval(v.Pairs, fewest)
		return v
	}
	// Those that no other is better than. With noise, a may be better than b, and neither
	// differ from c: then c stays, too.
	var best, worse []int
	for i, c := range with {
		if slices.ContainsFunc(with, func(other contender) bool { return better[[2]string{other.name, c.name}] }) {
			worse = append(worse, i)
		} else {
			best = append(best, i)
			v.Best = append(v.Best, c.name)
		}
	}
	switch {
	case len(worse) == 0:
		v.Best, v.Text = nil, NoDifference
		return v
	case t.misplaced(m, with, v.Pairs, best, worse):
		v.Best, v.Text = nil, tooVaried
		return v
	}
	v.Text = strings.Join(v.Best, " or ")
	if len(best) > 1 {
		v.Text = "one of " + strings.Join(v.Best, ", ")
	}
	var notes []string
	if fewest < compare.MinPairs {
		notes = append(notes, fmt.Sprintf("%d runs each", fewest))
	}
	if len(with) < of {
		notes = append(notes, fmt.Sprintf("of %d measured", len(with)))
	}
	if len(notes) > 0 {
		v.Text += " (" + strings.Join(notes, ", ") + ")"
	}
	return v
}

// misplaced reports whether one of the worse is shown with a better figure than one of the
// best: its median or, over several rows, its ratio to the first. A variant whose runs vary a
// lot need not differ from the best, although it seems slower than one that does. Nobody would
// understand that it is named and the other is not.
func (t RunTable) misplaced(m Metric, with []contender, pairs []result.MatrixPair, best, worse []int) bool {
	rows := slices.ContainsFunc(with, func(c contender) bool { return len(c.variants) > 1 })
	shown := make([]float64, len(with))
	for i, c := range with {
		switch {
		case !rows:
			shown[i] = stats.Median(t.values(m, c.variants[c.rows()[0]]))
		case i == 0:
			shown[i] = 1
		default:
			shown[i] = pairs[i-1].Ratio // the pairs of the first come first
		}
		if m.Better == result.Higher {
			shown[i] = -shown[i]
		}
	}
	return slices.ContainsFunc(best, func(b int) bool {
		return slices.ContainsFunc(worse, func(w int) bool { return shown[w] < shown[b] })
	})
}

const tooVaried = "cannot tell: the runs vary too much"

// noInterval says why no pair has an interval. fewest is how many runs each variant has.
func noInterval(pairs []result.MatrixPair, fewest int) string {
	switch {
	case fewest < compare.LeastPairs:
		return "too few runs"
	case !slices.ContainsFunc(pairs, func(p result.MatrixPair) bool { return p.Ratio > 0 }):
		return "no ratio: it was 0 in some runs"
	}
	return tooVaried
}
