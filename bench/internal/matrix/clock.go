package matrix

import (
	"fmt"
	"slices"
)

// judgedBy returns the variants of a group that are compared by the metric. Latencies that count
// from another moment than those of the others are not.
func (t RunTable) judgedBy(g group, m Metric) group {
	if m.Unit == "ms" { // all latencies are, and nothing else
		g.variants = slices.DeleteFunc(slices.Clone(g.variants), func(i int) bool { return t.otherClock(g, i) != "" })
	}
	return g
}

// otherClock returns from when the latencies of a variant count, or "" if those of all variants
// in its row count alike.
func (t RunTable) otherClock(g group, variant int) string {
	along := t.axis(t.Compare)
	clock := func(i int) (row []string, from string, ran bool) {
		for _, r := range t.Variants[i].Runs {
			if r != nil {
				return others(t.Variants[i].Names, along), r.LatencyFrom, true
			}
		}
		return nil, "", false
	}
	row, from, _ := clock(variant)
	if !slices.ContainsFunc(g.variants, func(i int) bool {
		other, usual, ran := clock(i)
		return ran && usual == "" && slices.Equal(other, row)
	}) {
		return ""
	}
	return from
}

// clockNotes says whose latencies are not judged against those of the others, and why.
func (t RunTable) clockNotes() (notes []string) {
	along := t.axis(t.Compare)
	for _, g := range t.groups() {
		for _, i := range g.variants {
			if from := t.otherClock(g, i); from != "" {
				notes = append(notes, fmt.Sprintf("%s: the latencies of %s are not judged against those of the others: they count from %s, the others from before it",
					t.Name, t.Variants[i].Names[along], from))
			}
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}
