package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
	"sagabench/store/open"
)

// tableError is the chance that a table names a winner where there is none. All its
// comparisons share it.
const tableError = 0.05

// Judge returns what the runs show. Incomplete says why runs are missing; nil: none are
// missing for another reason than that they failed.
func Judge(m Matrix, incomplete error) (result.Matrix, result.Validity) {
	all := result.Matrix{
		Title: m.Title, File: m.saved.File, Hash: m.saved.Hash, Seed: m.saved.Seed, Quick: m.saved.Quick,
		Overrides: m.saved.Overrides,
	}
	v := result.Validity{Valid: true}
	if incomplete != nil {
		v.Valid, v.Because = false, []string{fmt.Sprintf("it is incomplete: %v", incomplete)}
	}
	for _, t := range m.Tables {
		judged := t.judge()
		all.Tables = append(all.Tables, judged)
		v.Warnings = append(v.Warnings, tableWarnings(judged)...)
	}
	runs := m.Runs()
	valid := 0
	found := map[string]int64{} // sagas by what is wrong with them
	for _, r := range runs {
		if r.Validity.Valid {
			valid++
		}
		for _, wrong := range r.Check.Violations() {
			found[wrong.Name] += *wrong.N
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		v.Valid = false
		v.Because = append(v.Because, fmt.Sprintf("the audits found %s %s", format.Plural(found[name], "saga"), name))
	}
	if len(runs) > 0 && valid == 0 {
		v.Valid, v.Because = false, append(v.Because, "no run is valid: "+cmp.Or(strings.Join(runs[0].Validity.Because, "; "), "no reason is known"))
	}
	v.Warnings = append(v.Warnings, common(runs)...)
	return all, v
}

// tableWarnings says which variants could not run, and what is not ranked, each reason once.
func tableWarnings(t result.MatrixTable) (warnings []string) {
	names, first, reasons := map[string][]string{}, map[string]string{}, []string{}
	differ := map[string]bool{} // reasons that have other figures for another variant
	for _, v := range t.Variants {
		name := strings.Join(v.Names, ", ")
		if v.Failed != "" {
			warnings = append(warnings, fmt.Sprintf("%s, %s could not run: %s", t.Name, name, v.Failed))
		}
		if len(v.Invalid) > 0 {
			reason := figures.ReplaceAllString(v.Invalid[0], "#")
			if names[reason] = append(names[reason], name); len(names[reason]) == 1 {
				first[reason] = v.Invalid[0]
				reasons = append(reasons, reason)
			}
			differ[reason] = differ[reason] || v.Invalid[0] != first[reason]
		}
	}
	notRanked := "not ranked: "
	if t.Repeats < compare.LeastPairs {
		notRanked = "" // it would not be ranked with valid runs either
	}
	for _, reason := range reasons {
		text := fmt.Sprintf("%s%s, %s: %s", notRanked, t.Name, strings.Join(names[reason], " and "), first[reason])
		if differ[reason] {
			text += " (figures of " + names[reason][0] + ")"
		}
		warnings = append(warnings, text)
	}
	for _, g := range t.Groups {
		if g.NotRanked != "" && len(reasons) == 0 { // else it is said
			warnings = append(warnings, fmt.Sprintf("not ranked: %s: %s", strings.Join(append([]string{t.Name}, g.Where...), ", "), g.NotRanked))
		}
	}
	return warnings
}

var (
	figures = regexp.MustCompile(`[0-9][0-9.,]*`)
	atRate  = regexp.MustCompile(`^at [0-9.,]+/s: `)
)

// minor are the kinds of warnings that come last: a figure that is not there shows.
var minor = []string{"not measured", "plan"}

// common returns the warnings of the runs, each kind once, those of the most runs first.
func common(runs []result.MatrixRun) (warnings []string) {
	count, first, kinds := map[string]int{}, map[string]string{}, []string{}
	differ := map[string]bool{} // kinds that have other figures in another run
	for _, r := range runs {
		seen := map[string]bool{} // a search has some of them several times
		for _, text := range r.Validity.Warnings {
			kind, _, _ := strings.Cut(atRate.ReplaceAllString(text, ""), ":")
			if seen[kind] {
				continue
			}
			seen[kind] = true
			if count[kind]++; count[kind] == 1 {
				first[kind] = text
				kinds = append(kinds, kind)
			}
			differ[kind] = differ[kind] || text != first[kind]
		}
	}
	weight := func(kind string) int {
		if slices.Contains(minor, kind) {
			return 0
		}
		return count[kind]
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return weight(b) - weight(a) })
	for _, kind := range kinds {
		in := fmt.Sprintf("%d of %s", count[kind], format.Plural(len(runs), "run"))
		if count[kind] == len(runs) {
			in = "all runs"
		}
		if differ[kind] {
			in += "; figures of the first"
		}
		warnings = append(warnings, first[kind]+" (in "+in+")")
	}
	for _, r := range runs {
		if a, b := runs[0].Environment.Machine(), r.Environment.Machine(); a != b {
			return append(warnings, fmt.Sprintf("mismatched machine: %s and %s", a, b))
		}
	}
	return warnings
}

func (t RunTable) judge() result.MatrixTable {
	judged := result.MatrixTable{
		Name: t.Name, Title: t.Title, Measure: string(t.Measure), Repeats: t.Repeats, Compare: t.Compare, Set: redacted(t.Set),
	}
	for _, a := range t.Axes {
		axis := result.MatrixAxis{Name: a.Name}
		for _, v := range a.Values {
			axis.Values = append(axis.Values, v.Name)
		}
		judged.Axes = append(judged.Axes, axis)
	}
	for i, v := range t.Variants {
		judged.Variants = append(judged.Variants, v.summary(t, i))
	}
	for _, m := range Metrics[t.Measure] {
		if slices.ContainsFunc(judged.Variants, func(v result.MatrixVariant) bool { _, ok := v.Figures[m.Key]; return ok }) {
			judged.Metrics = append(judged.Metrics, m.MatrixMetric)
		}
	}
	judged.Groups, judged.Overall = t.rank(judged.Variants)
	return judged
}

// redacted returns the values without secrets.
func redacted(v Values) map[string]string {
	shown := map[string]string{}
	for key, value := range v {
		shown[key] = open.Redact(value)
		if name, ok := strings.CutPrefix(key, SettingsPrefix); ok && open.SecretSetting(name) {
			shown[key] = "***"
		}
	}
	return shown
}

func (v RunVariant) summary(t RunTable, index int) result.MatrixVariant {
	s := result.MatrixVariant{Names: v.Names, Figures: map[string]result.MatrixFigure{}}
	if v.Failed != nil {
		s.Failed = v.Failed.Error()
	}
	values := map[string][]float64{}
	for i, r := range v.Runs {
		if r == nil {
			continue
		}
		if len(s.Runs) == 0 {
			s.Store, s.CPULimit = r.Run.Store, r.CPULimit
		}
		s.Runs = append(s.Runs, runDir(t.Name, v.Variant, i+1, index))
		for _, text := range r.Validity.Because {
			s.Invalid = append(s.Invalid, fmt.Sprintf("run %d is not valid: %s", i+1, text))
		}
		if r.Run.Store.Durability != s.Store.Durability {
			s.Invalid = append(s.Invalid, fmt.Sprintf("run %d has durability %s, the first %s", i+1, class(r.Run.Store), class(s.Store)))
		}
		if r.Validity.Valid {
			for key, x := range r.Metrics {
				values[key] = append(values[key], x)
			}
			s.Curve = append(s.Curve, r.Curve...)
		}
	}
	for key, xs := range values {
		s.Figures[key] = result.MatrixFigure{Median: stats.Median(xs), Low: slices.Min(xs), High: slices.Max(xs), Runs: xs}
	}
	slices.SortStableFunc(s.Curve, func(a, b result.RatePoint) int { return cmp.Compare(a.RatePerS, b.RatePerS) })
	return s
}

func class(s result.Store) string { return cmp.Or(s.Durability, "unknown") }

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
		where := slices.Delete(slices.Clone(v.Names), along, along+1)
		at := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.where, where) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{where: where})
		}
		groups[at].variants = append(groups[at].variants, i)
	}
	return groups
}

// rank compares the variants of each group. If there are several groups, it also compares the
// values of the axis over all groups together.
func (t RunTable) rank(variants []result.MatrixVariant) (ranked []result.MatrixGroup, overall *result.MatrixGroup) {
	along := t.axis(t.Compare)
	groups := t.groups()
	tests := 0
	var together group
	for _, g := range groups {
		tests += t.comparisons(g, variants)
		if notRanked(g, variants, along) == "" {
			together.variants = append(together.variants, g.variants...)
			together.where = append(together.where, strings.Join(g.where, ", "))
		}
	}
	share := tableError
	if len(together.where) > 1 {
		share /= 2
		level := 1 - share/float64(max(1, t.comparisons(together, variants)))
		overall = &result.MatrixGroup{Where: together.where, Verdicts: t.verdicts(together, variants, level, "")}
	}
	level := 1 - share/float64(max(1, tests))
	for _, g := range groups {
		one := result.MatrixGroup{Where: g.where, NotRanked: notRanked(g, variants, along)}
		one.Verdicts = t.verdicts(g, variants, level, one.NotRanked)
		ranked = append(ranked, one)
	}
	return ranked, overall
}

// verdicts compares the variants of a group by each ranked metric that two of them have.
func (t RunTable) verdicts(g group, variants []result.MatrixVariant, level float64, notRanked string) (list []result.MatrixVerdict) {
	ran := t.contenders(g, func(i int) bool { return len(variants[i].Runs) > 0 })
	for _, m := range Metrics[t.Measure] {
		if with := t.measured(g, variants, m); m.Ranked && len(with) > 1 {
			list = append(list, t.verdict(m, with, len(ran), level, notRanked))
		}
	}
	return list
}

// comparisons counts the pairs that the verdicts of a group compare.
func (t RunTable) comparisons(g group, variants []result.MatrixVariant) (n int) {
	for _, m := range Metrics[t.Measure] {
		if with := len(t.measured(g, variants, m)); m.Ranked {
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
		list[at].variants[strings.Join(slices.Delete(slices.Clone(names), along, along+1), ", ")] = i
	}
	return list
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
	for k, a := range with {
		for _, b := range with[k+1:] {
			pair := t.pair(m, a, b, level)
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
	var best []string
	for _, c := range with {
		if !slices.ContainsFunc(with, func(other contender) bool { return better[[2]string{other.name, c.name}] }) {
			best = append(best, c.name)
		}
	}
	if len(best) == len(with) {
		v.Text = NoDifference
		return v
	}
	v.Best, v.Text = best, strings.Join(best, " or ")
	if len(best) > 1 {
		v.Text = "one of " + strings.Join(best, ", ")
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

// noInterval says why no pair has an interval. fewest is how many runs each variant has.
func noInterval(pairs []result.MatrixPair, fewest int) string {
	switch {
	case fewest < compare.LeastPairs:
		return "too few runs"
	case !slices.ContainsFunc(pairs, func(p result.MatrixPair) bool { return p.Ratio > 0 }):
		return "no ratio: it was 0 in some runs"
	}
	return "cannot tell: the runs vary too much"
}

type comparedPair struct {
	result.MatrixPair
	blocks int // in which both were measured
}

// pair compares the blocks in which both have a valid run with the metric.
func (t RunTable) pair(m Metric, a, b contender, level float64) comparedPair {
	p := comparedPair{MatrixPair: result.MatrixPair{A: a.name, B: b.name, Confidence: level}}
	var samples []stats.Sample
	for _, where := range slices.Sorted(maps.Keys(a.variants)) {
		of, both := b.variants[where]
		if !both {
			continue
		}
		blocks := 0
		for block := range t.Repeats {
			ofA, ofB := t.Variants[a.variants[where]].Runs[block], t.Variants[of].Runs[block]
			if ofA == nil || ofB == nil || !ofA.Validity.Valid || !ofB.Validity.Valid {
				continue
			}
			x, okA := ofA.Metrics[m.Key]
			y, okB := ofB.Metrics[m.Key]
			if !okA || !okB {
				continue
			}
			blocks++
			samples = append(samples,
				stats.Sample{Of: of, At: float64(ofA.Run.Started.UnixMilli()), Value: x},
				stats.Sample{Of: of, At: float64(ofB.Run.Started.UnixMilli()), Value: y, OfB: true})
		}
		p.blocks = max(p.blocks, blocks)
	}
	if len(samples) == 0 || slices.ContainsFunc(samples, func(s stats.Sample) bool { return !(s.Value > 0) }) {
		return p
	}
	logs := 0.0
	for i := 0; i < len(samples); i += 2 {
		logs += math.Log(samples[i+1].Value / samples[i].Value)
	}
	p.Ratio = math.Exp(logs / float64(len(samples)/2))
	if r, ok := compare.Interval(samples, level); ok && p.blocks >= compare.LeastPairs {
		p.Ratio, p.Low, p.High = r.BToA.Value, &r.BToA.Low, &r.BToA.High
	}
	return p
}
