// Package compare sets two things side by side that were each run several times, in
// turns: A B B A A B and so on. For each metric it gives what B is of A, an interval,
// and a verdict.
//
// What it guarantees:
//
//   - A thing compared with itself shows a difference, in any of the metrics, in less
//     than one comparison of twenty: in at most 3.5 of a hundred. Store and app CPU
//     per saga, which are quoted and hold best from run to run, have 1.25 of those
//     each, all others together the remaining one. Shared evenly, five pairs would
//     seldom show a CPU per saga that is a tenth higher; as it is they show it nine
//     times of ten where runs differ by 3%. The intervals are those of package stats.
//   - Nobody is called the better one with fewer than [MinPairs] pairs, if the runs
//     were not made in turns, if a run is not valid, if the runs of one side were not
//     alike, or if the durability of the two sides differs or is not known.
//   - What else differs between the sides is listed: settings, load, versions, machine.
//
// Making the runs is left to others, and so is whether each of them may be believed.
package compare

import (
	"errors"
	"fmt"
	"math"

	"sagabench/bench/internal/result"
	"sagabench/bench/internal/stats"
)

// MinPairs is how many pairs it takes to call one side the better one.
const MinPairs = 5

const (
	// Chances of a difference where there is none: in each main metric, and in any of
	// the others.
	mainError   = 0.0125
	othersError = 0.01

	// Named is the least effect that is called a difference. Less than that comes with
	// where the linker puts a function, or how full a disk is.
	Named = 0.01
)

// ErrNothing is of a comparison with a side that was not run.
var ErrNothing = errors.New("nothing to compare")

// Side is one of the two, and its runs in the order in which they were made.
type Side struct {
	Name    string
	Command string // to type for such a run
	Runs    []result.Summary
}

// Result is summary.json of bench compare. Store and scenario of its Run are those of A.
type Result struct {
	result.Envelope
	Compare Comparison   `json:"compare"`
	Gates   []GateResult `json:"gates"`
}

// Comparison is two sides measured against each other.
type Comparison struct {
	A         Subject  `json:"a"`
	B         Subject  `json:"b"`
	Pairs     int      `json:"pairs"`
	NotRanked []string `json:"not_ranked"` // why neither is called the better one; empty: one may be
	Metrics   []Metric `json:"metrics"`

	Differences []Difference `json:"differences"`
}

// Subject is a side, as it was first seen.
type Subject struct {
	Name    string       `json:"name"`
	Command string       `json:"command"`
	Store   result.Store `json:"store"`
	Runs    []string     `json:"runs"` // their ids, in order
}

// Metric is one of the figures of both sides. What is null was not measured in each
// run of both, or has no ratio.
type Metric struct {
	Metric  string    `json:"metric"`
	Name    string    `json:"-"` // for people
	Unit    string    `json:"-"`
	A       *float64  `json:"a"` // median
	B       *float64  `json:"b"`
	ARuns   []float64 `json:"a_runs"` // in order
	BRuns   []float64 `json:"b_runs"`
	Ratio   *Ratio    `json:"ratio"`
	Effect  *float64  `json:"effect_percent"` // of B, in percent of A
	Verdict string    `json:"verdict"`
	Better  *string   `json:"better"` // the name of the side; null: none was shown to be, or sides are not ranked
}

// Ratio is what B is of A. Of fewer than two pairs it has no interval.
type Ratio struct {
	Value      float64  `json:"value"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Confidence *float64 `json:"confidence"` // share of such intervals that hold the truth
}

// Make compares a with b, whose runs pair up by their order. The validity is that of
// the comparison: of all runs together. The error wraps ErrNothing.
func Make(a, b Side) (Comparison, result.Validity, error) {
	for _, s := range []Side{a, b} {
		if len(s.Runs) == 0 {
			return Comparison{}, result.Validity{}, fmt.Errorf("%w: there is no run of %s", ErrNothing, s.Name)
		}
	}
	pairs := min(len(a.Runs), len(b.Runs))
	j := judge(a, b, pairs)
	a.Runs, b.Runs = a.Runs[:pairs], b.Runs[:pairs]
	c := Comparison{
		A: a.subject(), B: b.subject(), Pairs: pairs,
		NotRanked:   append([]string{}, j.notRanked...),
		Differences: differences(a.Runs[0], b.Runs[0]),
	}
	j.unlike(c.Differences)
	for _, m := range metrics {
		c.Metrics = append(c.Metrics, m.values(a, b))
	}
	levels := c.levels()
	for i, m := range metrics {
		measured := &c.Metrics[i]
		drift := measured.relate(samples(a, b, m.of), levels[m.main])
		if m.main && drift != nil {
			j.drift(m, *drift)
		}
		measured.judge(m, c)
	}
	return c, j.validity(), nil
}

func (s Side) subject() Subject {
	sub := Subject{Name: s.Name, Command: s.Command, Store: s.Runs[0].Run.Store}
	for _, r := range s.Runs {
		sub.Runs = append(sub.Runs, r.Run.ID)
	}
	return sub
}

// levels are the confidence of the interval of each main metric and of each other.
func (c Comparison) levels() map[bool]float64 {
	others := 0.0
	for i, m := range metrics {
		if !m.main && c.Metrics[i].A != nil && c.Metrics[i].B != nil {
			others++
		}
	}
	return map[bool]float64{true: 1 - mainError, false: 1 - othersError/max(1, others)}
}

// samples are the runs' values with their times.
func samples(a, b Side, of func(result.Summary) *float64) []stats.Sample {
	var list []stats.Sample
	began := a.Runs[0].Run.Started
	add := func(s Side, ofB bool) {
		for _, r := range s.Runs {
			if x := of(r); x != nil {
				list = append(list, stats.Sample{OfB: ofB, At: r.Run.Started.Sub(began).Seconds(), Value: *x})
			}
		}
	}
	add(a, false)
	add(b, true)
	return list
}

// relate sets the ratio, and returns the drift over all runs if it can be seen.
func (m *Metric) relate(samples []stats.Sample, level float64) *stats.Interval {
	if m.A == nil || m.B == nil {
		return nil
	}
	for _, s := range samples {
		if !(s.Value > 0) {
			return nil
		}
	}
	m.Ratio = &Ratio{Value: *m.B / *m.A}
	r, ok := stats.RatioOf(samples, level)
	if ok {
		m.Ratio = &Ratio{Value: r.BToA.Value, Low: &r.BToA.Low, High: &r.BToA.High, Confidence: &level}
	}
	effect := 100 * (m.Ratio.Value - 1)
	m.Effect = &effect
	if !ok {
		return nil
	}
	return &r.Drift
}

// The verdicts of a metric without a difference.
const (
	NoDifference = "no difference shown"
	notMeasured  = "not measured in every run"
	noRatio      = "no ratio: it was 0 in some runs"
	tooFew       = "not judged"
)

// judge sets the verdict, and who is better.
func (m *Metric) judge(d metric, c Comparison) {
	switch r := m.Ratio; {
	case m.A == nil || m.B == nil:
		m.Verdict = notMeasured
	case r == nil && allZero(m.ARuns) && allZero(m.BRuns):
		m.Verdict = NoDifference
	case r == nil:
		m.Verdict = noRatio
	case r.Low == nil || c.Pairs < MinPairs:
		m.Verdict = tooFew
	case *r.Low <= 1 && *r.High >= 1, math.Abs(r.Value-1) < Named:
		m.Verdict = NoDifference
	default:
		m.Verdict = c.B.Name + " " + Change(*m.Effect)
		if len(c.NotRanked) == 0 {
			m.Better = &c.A.Name
			if d.higherIsBetter == (r.Value > 1) {
				m.Better = &c.B.Name
			}
		}
	}
}

func allZero(xs []float64) bool {
	for _, x := range xs {
		if x != 0 {
			return false
		}
	}
	return true
}
