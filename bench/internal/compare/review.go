package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
	"sagabench/internal/format"
)

// leastDrift is the smallest change over all runs that is worth a warning.
const leastDrift = 0.05

// review collects what keeps the sides from being ranked, and other warnings.
type review struct {
	notRanked []string
	found     result.Validity
}

func checkSides(a, b Side, pairs int) review {
	r := review{found: result.Validity{Valid: true}}
	// Sides of different durability do different work.
	classA, classB := a.durability(), b.durability()
	if classA != classB || classA == unknown {
		r.unranked("mismatched durability: %s is %s, %s is %s", a.Name, classA, b.Name, classB)
	}
	for _, s := range []Side{a, b} {
		r.checkRuns(s)
		if extra := len(s.Runs) - pairs; extra > 0 {
			r.warn("unpaired: the last %d of the runs of %s have no counterpart and are left out", extra, s.Name)
		}
	}
	if pairs < MinPairs {
		r.unranked("too few runs: %d of each, %d are needed", pairs, MinPairs)
	}
	if !interleaved(a.Runs[:pairs], b.Runs[:pairs]) {
		r.unranked("not interleaved: the runs of %s and %s were not made in pairs one after another, so a change of the machine may be the difference", a.Name, b.Name)
	}
	if n := overloaded(a) + overloaded(b); n > 0 {
		r.warn("overloaded: %d of the runs; their latencies are no service level and are not compared", n)
	}
	return r
}

func (r *review) warn(format string, args ...any) {
	r.found.Warnings = append(r.found.Warnings, fmt.Sprintf(format, args...))
}

func (r *review) unranked(format string, args ...any) {
	r.notRanked = append(r.notRanked, fmt.Sprintf(format, args...))
}

const unknown = "unknown"

func (s Side) durability() string { return cmp.Or(s.Runs[0].Run.Store.Durability, unknown) }

// checkRuns checks that each run is valid, and was made under the conditions of the first.
func (r *review) checkRuns(s Side) {
	refuse := func(format string, args ...any) {
		reason := fmt.Sprintf(format, args...)
		r.notRanked = append(r.notRanked, reason)
		r.found.Valid, r.found.Because = false, append(r.found.Because, reason)
	}
	for i, run := range s.Runs {
		if !run.Validity.Valid {
			refuse("run %d of %s (%s) is %s", i+1, s.Name, run.Run.ID, strings.Replace(run.Validity.Verdict(), "NOT VALID", "not valid", 1))
		}
		for _, d := range differences(s.Runs[0], run) {
			refuse("the runs of %s differ: %s %s was %s in the first and %s in run %d", s.Name, d.Of, d.Name, d.A, d.B, i+1)
		}
	}
}

// warnMismatched warns if the sides differ in more than settings and versions, which is
// what most comparisons are about.
func (r *review) warnMismatched(differences []Difference) {
	for _, d := range differences {
		if d.Of == "scenario" || d.Of == "load" || d.Of == "machine" {
			r.warn("mismatched %s: %s %s and %s", d.Of, d.Name, d.A, d.B)
		}
	}
}

func overloaded(s Side) (n int) {
	for _, r := range s.Runs {
		if r.Load.Overloaded() {
			n++
		}
	}
	return n
}

// interleaved reports whether both runs of each pair began before either of the next.
func interleaved(a, b []result.Summary) bool {
	for i := 1; i < len(a); i++ {
		for _, before := range []result.Summary{a[i-1], b[i-1]} {
			if !before.Run.Started.Before(a[i].Run.Started) || !before.Run.Started.Before(b[i].Run.Started) {
				return false
			}
		}
	}
	return true
}

// warnDrift warns of a change over the runs of both sides.
func (r *review) warnDrift(m Figure, d stats.Interval) {
	if d.Low <= 1 && d.High >= 1 || d.Value > 1-leastDrift && d.Value < 1+leastDrift {
		return
	}
	r.warn("drift: %s was %s at the end of the runs than at the beginning, on both sides; the ratio is corrected for it",
		m.Name, Change(100*(d.Value-1)))
}

func (r *review) validity() result.Validity {
	var warnings []string
	for _, reason := range r.notRanked {
		if !slices.Contains(r.found.Because, reason) {
			warnings = append(warnings, "not ranked: "+reason)
		}
	}
	v := r.found
	v.Warnings = append(warnings, v.Warnings...)
	return v
}

// Change returns a change in percent, as "higher by 5.00%".
func Change(percent float64) string {
	if percent < 0 {
		return "lower by " + format.Number(-percent) + "%"
	}
	return "higher by " + format.Number(percent) + "%"
}

// List returns at most three items, and how many more there are.
func List(items []string) string {
	const shown = 3
	if len(items) > shown {
		items = append(slices.Clone(items[:shown]), fmt.Sprintf("%d more", len(items)-shown))
	}
	return strings.Join(items, "; ")
}
