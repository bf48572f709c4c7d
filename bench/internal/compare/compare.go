// Package compare compares two variants that were each run several times, interleaved:
// A B B A A B and so on. For each metric it gives the ratio of B to A, an interval and a
// verdict.
//
// It guarantees:
//
//   - If a variant is compared with itself, fewer than one comparison of twenty shows a
//     difference in any metric; at most 3.5 in a hundred. Store and app CPU per saga,
//     which vary least from run to run, have 1.25 of those each. All other metrics share
//     the remaining one. So five pairs show a CPU per saga that is a tenth higher nine
//     times of ten, if runs differ by 3%. The intervals are those of package stats.
//   - The interval of a gate is of 95%. If the truth is exactly the limit, the gate is
//     called broken in at most 2.5 of 100 comparisons. Several gates share that.
//   - No side is called better with fewer than [MinPairs] pairs, if the runs were not
//     interleaved, if a run is not valid, if the runs of one side were made under
//     different conditions, or if the durability of the sides differs or is not known.
//   - Other differences of the sides are listed: settings, load, versions, machine.
//
// [Interleave] decides the order of the runs. Making them is left to others, and so is
// whether each is valid.
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
	// Chances that a difference is shown where there is none: in each main metric, and
	// in any of the others.
	mainError   = 0.0125
	othersError = 0.01

	// Named is the smallest effect that is called a difference. The place of a function
	// in the binary, or a fuller disk, have smaller ones.
	Named = 0.01
)

// ErrNothing is the error for a side without runs.
var ErrNothing = errors.New("nothing to compare")

// Side is one of the two variants, with its runs in the order in which they were made.
type Side struct {
	Name    string
	Command string // that makes such a run
	Runs    []result.Summary
}

// Result is summary.json of bench compare. Store and scenario of its Run are A's.
type Result struct {
	result.Envelope
	Compare Comparison   `json:"compare"`
	Gates   []GateResult `json:"gates"`
}

// Comparison is what the runs of both sides show.
type Comparison struct {
	A         Subject  `json:"a"`
	B         Subject  `json:"b"`
	Pairs     int      `json:"pairs"`
	Seeds     []uint64 `json:"seeds"`      // of the random arrivals of each pair, which its runs share; empty: they share none
	NotRanked []string `json:"not_ranked"` // why neither side is called better; empty: one may be
	Metrics   []Metric `json:"metrics"`

	Differences []Difference `json:"differences"`
}

// Subject describes a side by its first run.
type Subject struct {
	Name    string       `json:"name"`
	Command string       `json:"command"`
	Store   result.Store `json:"store"`
	Runs    []string     `json:"runs"` // IDs in order
}

// Metric compares one figure. A and B are null if a run did not measure it. Ratio is null
// if either is, or was 0 in a run.
type Metric struct {
	Metric  string    `json:"metric"`
	Name    string    `json:"-"` // for people
	Unit    string    `json:"-"`
	A       *float64  `json:"a"` // median
	B       *float64  `json:"b"`
	ARuns   []float64 `json:"a_runs"` // of each run, in order
	BRuns   []float64 `json:"b_runs"`
	Ratio   *Ratio    `json:"ratio"`
	Effect  *float64  `json:"effect_percent"` // of B against A, in percent of A
	Verdict string    `json:"verdict"`
	Better  *string   `json:"better"` // name of the side; null: none was shown to be better, or the sides are not ranked

	samples []stats.Sample
}

// Ratio is B divided by A. It has no interval with fewer than three pairs, or if the runs
// vary so much that the interval says nothing.
type Ratio struct {
	Value      float64  `json:"value"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Confidence *float64 `json:"confidence"` // share of such intervals that contain the true ratio
}

// Make compares a with b. Their runs form pairs in order. Make returns the validity of all
// runs together. The error wraps ErrNothing.
func Make(a, b Side) (Comparison, result.Validity, error) {
	for _, s := range []Side{a, b} {
		if len(s.Runs) == 0 {
			return Comparison{}, result.Validity{}, fmt.Errorf("%w: there is no run of %s", ErrNothing, s.Name)
		}
	}
	pairs := min(len(a.Runs), len(b.Runs))
	r := checkSides(a, b, pairs)
	a.Runs, b.Runs = a.Runs[:pairs], b.Runs[:pairs]
	c := Comparison{
		A: a.subject(), B: b.subject(), Pairs: pairs,
		NotRanked:   append([]string{}, r.notRanked...),
		Differences: differences(a.Runs[0], b.Runs[0]),
		Seeds:       sharedSeeds(a.Runs, b.Runs),
	}
	r.warnMismatched(c.Differences)
	figures := figuresOf(a, b)
	for _, m := range figures {
		c.Metrics = append(c.Metrics, m.values(a, b))
	}
	levels := c.levels()
	for i, m := range figures {
		measured := &c.Metrics[i]
		measured.samples = samples(a, b, m.Of)
		drift := measured.setRatio(levels[m.main])
		if m.main && drift != nil {
			r.warnDrift(m, *drift)
		}
		measured.setVerdict(m, c)
	}
	return c, r.validity(), nil
}

func (s Side) subject() Subject {
	sub := Subject{Name: s.Name, Command: s.Command, Store: s.Runs[0].Run.Store}
	for _, r := range s.Runs {
		sub.Runs = append(sub.Runs, r.Run.ID)
	}
	return sub
}

// levels returns the confidence level of the interval of a main metric, and of another.
func (c Comparison) levels() map[bool]float64 {
	others := 0.0
	for i, m := range Figures {
		if !m.main && c.Metrics[i].A != nil && c.Metrics[i].B != nil {
			others++
		}
	}
	return map[bool]float64{true: 1 - mainError, false: 1 - othersError/max(1, others)}
}

// samples returns the runs' values with their times.
func samples(a, b Side, of func(result.Summary) *float64) []stats.Sample {
	var list []stats.Sample
	began := a.Runs[0].Run.Started.Round(0) // wall clock, as in the files
	add := func(s Side, variant int) {
		for _, r := range s.Runs {
			if x := of(r); x != nil {
				list = append(list, stats.Sample{Variant: variant, At: r.Run.Started.Round(0).Sub(began).Seconds(), Value: *x})
			}
		}
	}
	add(a, 0)
	add(b, 1)
	return list
}

// LeastPairs have an interval that says something: two have one degree of freedom.
const LeastPairs = 3

// farthest is the ratio at which, or at its inverse, an end of an interval is unknown.
const farthest = 1000

// Known reports whether the interval of a ratio says something.
func Known(ratio stats.Interval) bool { return ratio.Low >= 1.0/farthest && ratio.High <= farthest }

// interval estimates the ratio of B to A with this confidence level. ok is false if there are
// fewer than three pairs, or if the interval says nothing.
func interval(samples []stats.Sample, level float64) (r stats.Ratio, ok bool) {
	if len(samples) < 2*LeastPairs {
		return r, false
	}
	r, ok = stats.RatioOf(samples, level)
	return r, ok && Known(r.BToA)
}

// setRatio sets the ratio. It returns the drift over all runs, or nil if it is unknown.
func (m *Metric) setRatio(level float64) *stats.Interval {
	if m.A == nil || m.B == nil {
		return nil
	}
	for _, s := range m.samples {
		if !(s.Value > 0) {
			return nil
		}
	}
	m.Ratio = &Ratio{Value: *m.B / *m.A}
	r, ok := interval(m.samples, level)
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
	tooFew       = "too few pairs for an interval"
	fewPairs     = "not judged: too few pairs"
	tooVaried    = "cannot tell: the runs vary too much"
)

// setVerdict sets the verdict and the better side.
func (m *Metric) setVerdict(d Figure, c Comparison) {
	switch r := m.Ratio; {
	case m.A == nil || m.B == nil:
		m.Verdict = notMeasured
	case r == nil && allZero(m.ARuns) && allZero(m.BRuns):
		m.Verdict = NoDifference
	case r == nil:
		m.Verdict = noRatio
	case c.Pairs < LeastPairs:
		m.Verdict = tooFew
	case c.Pairs < MinPairs:
		m.Verdict = fewPairs
	case r.Low == nil:
		m.Verdict = tooVaried
	case *r.Low <= 1 && *r.High >= 1, math.Abs(r.Value-1) < Named:
		m.Verdict = NoDifference
	default:
		m.Verdict = c.B.Name + " " + Change(*m.Effect)
		if len(c.NotRanked) == 0 {
			m.Better = &c.A.Name
			if d.HigherIsBetter == (r.Value > 1) {
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
