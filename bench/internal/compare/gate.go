package compare

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sagabench/internal/format"
)

// ErrGate is the error of ParseGate.
var ErrGate = errors.New("not a gate")

// Gate limits how far B may be from A in one metric.
type Gate struct {
	Metric  string
	AtLeast bool    // a lower limit; otherwise an upper one
	Percent float64 // allowed change, in percent of A
}

var gateForm = regexp.MustCompile(`^([a-z0-9_]+)\s*(<=|>=)\s*([+-]?[0-9]+(?:\.[0-9]+)?)%$`)

// ParseGate reads a gate such as "store_cpu_us<=+5%" or "achieved_per_s>=-3%". The
// error wraps ErrGate.
func ParseGate(text string) (Gate, error) {
	parts := gateForm.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Gate{}, fmt.Errorf("%w: %q is not METRIC<=CHANGE%% or METRIC>=CHANGE%%, as in store_cpu_us<=+5%%", ErrGate, text)
	}
	var keys []string
	for _, m := range metrics {
		keys = append(keys, m.key)
	}
	if !slices.Contains(keys, parts[1]) {
		return Gate{}, fmt.Errorf("%w: %q names no metric; there are %s", ErrGate, text, strings.Join(keys, ", "))
	}
	percent, err := strconv.ParseFloat(parts[3], 64)
	if err != nil || percent <= -100 {
		return Gate{}, fmt.Errorf("%w: %q: a change is more than -100%%", ErrGate, text)
	}
	return Gate{Metric: parts[1], AtLeast: parts[2] == ">=", Percent: percent}, nil
}

// String returns the gate in the syntax of ParseGate.
func (g Gate) String() string {
	sign := "<="
	if g.AtLeast {
		sign = ">="
	}
	return fmt.Sprintf("%s%s%+g%%", g.Metric, sign, g.Percent)
}

// Outcome of a gate.
type Outcome string

// A gate is broken if the whole interval of the ratio is beyond the limit, and kept if all
// of it is within. If the interval contains the limit, or the sides are not ranked, the
// comparison cannot tell: more pairs or a wider limit decide. Such a gate should pass in
// CI, because it would fail by chance.
const (
	Kept       Outcome = "kept"
	Broken     Outcome = "broken"
	CannotTell Outcome = "cannot tell"
)

// GateResult is the outcome of a gate.
type GateResult struct {
	Gate     string  `json:"gate"`
	Outcome  Outcome `json:"outcome"`
	Evidence string  `json:"evidence"` // in words, with numbers
}

// Check applies a gate to the comparison.
func (c Comparison) Check(g Gate) GateResult {
	result := GateResult{Gate: g.String(), Outcome: CannotTell}
	i := slices.IndexFunc(c.Metrics, func(m Metric) bool { return m.Metric == g.Metric })
	if i < 0 {
		result.Evidence = notMeasured
		return result
	}
	m := c.Metrics[i]
	switch {
	case len(c.NotRanked) > 0:
		result.Evidence = "not ranked: " + List(c.NotRanked)
		return result
	case m.Ratio == nil || m.Ratio.Low == nil:
		result.Evidence = m.Verdict
		return result
	}
	low, high := 100*(*m.Ratio.Low-1), 100*(*m.Ratio.High-1)
	within, beyond := high <= g.Percent, low > g.Percent
	if g.AtLeast {
		within, beyond = low >= g.Percent, high < g.Percent
	}
	switch {
	case within:
		result.Outcome = Kept
	case beyond:
		result.Outcome = Broken
	}
	result.Evidence = fmt.Sprintf("%s against %s: %s (%s to %s)", c.B.Name, c.A.Name, signed(*m.Effect), signed(low), signed(high))
	return result
}

// signed returns a change in percent, with its sign.
func signed(percent float64) string {
	if percent > 0 {
		return "+" + format.Number(percent) + "%"
	}
	return format.Number(percent) + "%"
}
