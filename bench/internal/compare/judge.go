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

// drifted is the change over all runs from which on it is said.
const drifted = 0.05

type judgement struct {
	notRanked []string
	invalid   []string
	warnings  []string
}

// judge looks for what keeps the two sides from being ranked.
func judge(a, b Side, pairs int) judgement {
	var j judgement
	j.durability(a, b)
	for _, s := range []Side{a, b} {
		j.members(s)
		if extra := len(s.Runs) - pairs; extra > 0 {
			j.warn("unpaired: the last %d of the runs of %s have no counterpart and are left out", extra, s.Name)
		}
	}
	if pairs < MinPairs {
		j.unranked("too few runs: %d of each, %d are needed", pairs, MinPairs)
	}
	if !inTurns(a.Runs[:pairs], b.Runs[:pairs]) {
		j.unranked("not in turns: the runs of %s and %s were not made in pairs one after another, so what else changed meanwhile may be the difference",
			a.Name, b.Name)
	}
	if n := overloaded(a) + overloaded(b); n > 0 {
		j.warn("overloaded: %d of the runs; their latencies are no service level and are not compared", n)
	}
	return j
}

func (j *judgement) warn(format string, args ...any) {
	j.warnings = append(j.warnings, fmt.Sprintf(format, args...))
}

func (j *judgement) unranked(format string, args ...any) {
	j.notRanked = append(j.notRanked, fmt.Sprintf(format, args...))
}

func (j *judgement) refuse(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	j.invalid = append(j.invalid, reason)
	j.notRanked = append(j.notRanked, reason)
}

// durability of one class is what makes two sides comparable.
func (j *judgement) durability(a, b Side) {
	of := func(s Side) string { return cmp.Or(s.Runs[0].Run.Store.Durability, "unknown") }
	if of(a) != of(b) || of(a) == "unknown" {
		j.unranked("unlike durability: that of %s is %s, that of %s is %s", a.Name, of(a), b.Name, of(b))
	}
}

// members of a side are each valid, and runs of one and the same thing.
func (j *judgement) members(s Side) {
	for i, r := range s.Runs {
		if !r.Validity.Valid {
			why := "no reason given"
			if len(r.Validity.Warnings) > 0 {
				why = r.Validity.Warnings[0]
			}
			j.refuse("run %d of %s (%s) is not valid: %s", i+1, s.Name, r.Run.ID, why)
		}
		for _, d := range differences(s.Runs[0], r) {
			j.refuse("the runs of %s are not alike: %s %s was %s in the first and %s in run %d", s.Name, d.Of, d.Name, d.A, d.B, i+1)
		}
	}
}

// unlike says what makes the sides two things in more than one way. That settings and
// versions differ is what most comparisons are of.
func (j *judgement) unlike(differences []Difference) {
	for _, d := range differences {
		if d.Of == "scenario" || d.Of == "load" || d.Of == "machine" {
			j.warn("unlike %s: %s %s and %s", d.Of, d.Name, d.A, d.B)
		}
	}
}

func overloaded(s Side) int {
	n := 0
	for _, r := range s.Runs {
		if r.Load.Overloaded() {
			n++
		}
	}
	return n
}

// inTurns reports whether both runs of each pair began before either of the next.
func inTurns(a, b []result.Summary) bool {
	for i := 1; i < len(a); i++ {
		before := []int64{a[i-1].Run.Started.UnixNano(), b[i-1].Run.Started.UnixNano()}
		after := []int64{a[i].Run.Started.UnixNano(), b[i].Run.Started.UnixNano()}
		if slices.Max(before) >= slices.Min(after) {
			return false
		}
	}
	return true
}

// drift says what changed over the runs whatever the side.
func (j *judgement) drift(m metric, d stats.Interval) {
	if d.Low <= 1 && d.High >= 1 || d.Value > 1-drifted && d.Value < 1+drifted {
		return
	}
	j.warn("drift: %s was %s at the end of the runs than at the beginning, on both sides; it is taken out of the ratio",
		m.name, Change(100*(d.Value-1)))
}

func (j *judgement) validity() result.Validity {
	warnings := []string{}
	for _, reason := range j.notRanked {
		warnings = append(warnings, "not ranked: "+reason)
	}
	return result.Validity{Valid: len(j.invalid) == 0, Warnings: append(warnings, j.warnings...)}
}

// Change writes a change in percent: "higher by 5.00%".
func Change(percent float64) string {
	if percent < 0 {
		return "lower by " + format.Number(-percent) + "%"
	}
	return "higher by " + format.Number(percent) + "%"
}

// List writes at most three items and how many more there are.
func List(items []string) string {
	const shown = 3
	if len(items) > shown {
		items = append(slices.Clone(items[:shown]), fmt.Sprintf("%d more", len(items)-shown))
	}
	return strings.Join(items, "; ")
}
