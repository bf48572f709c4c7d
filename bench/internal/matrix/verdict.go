package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
	"sagabench/store/open"
)

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
		v.Notes = append(v.Notes, t.clockNotes()...)
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

// kind is a warning that several variants or runs have, perhaps with other figures.
type kind struct {
	name   string
	text   string   // of the first
	of     []string // which have it
	differ bool     // another one has another text
}

// kinds are in the order in which they were added.
type kinds []*kind

func (ks *kinds) add(name, text, of string) {
	i := slices.IndexFunc(*ks, func(k *kind) bool { return k.name == name })
	if i < 0 {
		i = len(*ks)
		*ks = append(*ks, &kind{name: name, text: text})
	}
	k := (*ks)[i]
	k.of = append(k.of, of)
	k.differ = k.differ || text != k.text
}

// tableWarnings says which variants could not run, and what is not ranked, each reason once.
func tableWarnings(t result.MatrixTable) (warnings []string) {
	var reasons kinds
	for _, v := range t.Variants {
		name := strings.Join(v.Names, ", ")
		if v.Failed != "" {
			warnings = append(warnings, fmt.Sprintf("%s, %s could not run: %s", t.Name, name, v.Failed))
		}
		if len(v.Invalid) > 0 {
			reasons.add(figures.ReplaceAllString(v.Invalid[0], "#"), v.Invalid[0], name)
		}
	}
	notRanked := "not ranked: "
	if t.Repeats < compare.LeastPairs {
		notRanked = "" // it would not be ranked with valid runs either
	}
	for _, reason := range reasons {
		text := fmt.Sprintf("%s%s, %s: %s", notRanked, t.Name, strings.Join(reason.of, " and "), reason.text)
		if reason.differ {
			text += " (figures of " + reason.of[0] + ")"
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
	var found kinds
	for _, r := range runs {
		seen := map[string]bool{} // a search has some of them several times
		for _, text := range r.Validity.Warnings {
			name, _, _ := strings.Cut(atRate.ReplaceAllString(text, ""), ":")
			if !seen[name] {
				found.add(name, text, r.Run.ID)
			}
			seen[name] = true
		}
	}
	weight := func(k *kind) int {
		if slices.Contains(minor, k.name) {
			return 0
		}
		return len(k.of)
	}
	slices.SortStableFunc(found, func(a, b *kind) int { return weight(b) - weight(a) })
	for _, k := range found {
		in := fmt.Sprintf("%d of %s", len(k.of), format.Plural(len(runs), "run"))
		if len(k.of) == len(runs) {
			in = "all runs"
		}
		if k.differ {
			in += "; figures of the first"
		}
		warnings = append(warnings, k.text+" (in "+in+")")
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
